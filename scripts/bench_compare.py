#!/usr/bin/env python3
"""Two binaries on the same workloads, in turns: scripts/bench_compare.py BEFORE AFTER OUT.json [NAME...].

Needs a quiet machine. A run of `privet bench` gives medians of five; each binary has ROUNDS of them a workload, in
turns, and the smaller one counts. Prints ratios after / before, and writes both binaries' figures with their commands.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROUNDS = 2
FIGURES = ("wall_s", "online_s", "offline_s")
COUNTED = ("bytes_sent", "key_bytes", "rounds")
WORKLOADS = {
    "relu": "relu-1000000",
    "matmul": "matmul-1024",
    "mlp-128": "mlp --batch 128",
    "lenet-1": "lenet --batch 1",
    "lenet-128": "lenet --batch 128",
    "squeezenet-1": "squeezenet --batch 1",
    "gelu": "gelu-100000",
    "softmax": "softmax-64 --batch 1000",
    "train-mlp-128": "mlp --train --batch 128",
    "train-lenet-128": "lenet --train --batch 128",
}
for workload in ("relu", "mlp-128", "lenet-128", "train-mlp-128"):
    for security in ("semi-honest", "malicious"):
        command = f"{WORKLOADS[workload]} --protocol rep3 --security {security}"
        WORKLOADS[f"rep3-{workload}-{security}"] = command
for workload in ("relu", "lenet-1", "lenet-128", "gelu"):
    for protocol in ("semi2k", "heot"):
        WORKLOADS[f"{protocol}-{workload}"] = f"{WORKLOADS[workload]} --protocol {protocol}"


def bench(binary: str, command: str) -> dict[str, Any]:
    """One run, as its JSON line says."""
    ran = subprocess.run([binary, "bench", *shlex.split(command), "--json"], check=True, capture_output=True, text=True)
    return json.loads(ran.stdout.strip().splitlines()[-1])


def best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The smallest median of each figure, and what is counted."""
    figures = {f: min(r[f]["median"] for r in runs) for f in FIGURES if runs[0].get(f)}
    return figures | {c: runs[0].get(c) for c in COUNTED}


def main() -> None:
    """Measure, print, write."""
    before, after, out, *names = sys.argv[1:]
    results = {}
    for name in names or WORKLOADS:
        command = WORKLOADS[name]
        pairs = [(bench(before, command), bench(after, command)) for _ in range(ROUNDS)]
        old, new = (best([pair[i] for pair in pairs]) for i in (0, 1))
        results[name] = {"command": f"privet bench {command}", "before": old, "after": new}
        ratios = [f"{f} {old[f]:.4f} -> {new[f]:.4f} ({new[f] / old[f]:.2f})" for f in FIGURES if old.get(f)]
        counted = [f"{c} {old[c]} -> {new[c]}" for c in COUNTED if old[c] != new[c]]
        print(f"{name}: {', '.join(ratios + counted)}", flush=True)
        Path(out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
