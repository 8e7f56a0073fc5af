#!/usr/bin/env python3
"""What 512-bit instructions are worth: scripts/avx2.py OUT.json [NAME...].

Runs the README's workloads of a second or less with `PRIVET_CPU=avx512` and with `PRIVET_CPU=avx2`, one after the
other, and prints both medians and their ratio. Needs a quiet machine with AVX-512. Ends with status 1 where a ratio
is above 2.5.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

PRIVET = Path(__file__).parent.parent / "target" / "release" / "privet"
MOST = 2.5
RUNS = 3
FIGURES = ("online_s", "offline_s")
WORKLOADS = {
    "relu": "relu-1000000",
    "mlp-128": "mlp --batch 128",
    "lenet-1": "lenet --batch 1",
    "lenet-128": "lenet --batch 128",
    "squeezenet-1": "squeezenet --batch 1",
    "resnet18-1": "resnet18 --batch 1",
    "gelu-100000": "gelu-100000",
    "softmax-1536x128": "softmax-128 --batch 1536",
    "train-mlp-128": "mlp --train --batch 128",
    "train-lenet-128": "lenet --train --batch 128",
}
for workload in ("relu", "mlp-128", "lenet-128", "gelu-100000", "softmax-1536x128"):
    for security in ("semi-honest", "malicious"):
        command = f"{WORKLOADS[workload]} --protocol rep3 --security {security}"
        WORKLOADS[f"rep3-{workload}-{security}"] = command
WORKLOADS["rep3-exp-100000-semi-honest"] = "exp-100000 --protocol rep3 --security semi-honest"


def bench(command: str, cpu: str) -> dict[str, Any]:
    """One run of several, as its JSON line says."""
    call = [str(PRIVET), "bench", *shlex.split(command), "--runs", str(RUNS), "--json"]
    ran = subprocess.run(call, env=os.environ | {"PRIVET_CPU": cpu}, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout.strip().splitlines()[-1])


def main() -> int:
    """Measure, print, write."""
    out, *names = sys.argv[1:]
    results = json.loads(Path(out).read_text()) if names and Path(out).exists() else {}
    above = []
    for name in names or WORKLOADS:
        runs = {cpu: bench(WORKLOADS[name], cpu) for cpu in ("avx512", "avx2")}
        row: dict[str, Any] = {"command": f"privet bench {WORKLOADS[name]} --runs {RUNS}"}
        said = []
        for figure in FIGURES:
            before, after = (runs[cpu][figure]["median"] for cpu in ("avx512", "avx2"))
            if before:
                row[figure] = {"avx512": before, "avx2": after, "ratio": round(after / before, 3)}
                said.append(f"{figure} {before:.4f} -> {after:.4f} ({after / before:.2f})")
                above += [f"{name} {figure}"] if after > MOST * before else []
        results[name] = row
        print(f"{name}: {', '.join(said)}", flush=True)
        Path(out).write_text(json.dumps(results, indent=1) + "\n")
    if above:
        print(f"above {MOST}: {', '.join(above)}", file=sys.stderr)
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
