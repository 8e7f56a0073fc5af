#!/usr/bin/env python3
"""What it costs that keys come over TLS: scripts/stream.py OUT.json [NAME...].

Deals the keys of `fss` for one run into files of this machine, and over TLS into the parties' stores, in turns.
Prints the medians of both and their ratio. Ends with status 1 where it is above 2.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

PRIVET = Path(__file__).parent.parent / "target" / "release" / "privet"
MOST = 2.0
SERIES = 5
# with the runs of a series
WORKLOADS = {"relu-1000000": 21, "lenet --batch 128": 7, "resnet18": 7}
OPTIONS = "--protocol fss --bits 64 --fraction 24"
COMMAND = f"privet bench WORKLOAD {OPTIONS} --runs N --json [--stream], the median of offline_s"


def bench(workload: str, runs: int, *more: str) -> tuple[float, int]:
    """Seconds until the keys of a run are there, and their bytes."""
    call = [str(PRIVET), "bench", *shlex.split(workload), *OPTIONS.split(), "--runs", str(runs), "--json", *more]
    ran = subprocess.run(call, check=True, capture_output=True, text=True)
    said = json.loads(ran.stdout.strip().splitlines()[-1])
    return said["offline_s"]["median"], said["key_bytes"]


def measured(workload: str, runs: int) -> dict[str, Any]:
    """Series of both, in turns."""
    series = []
    for _ in range(SERIES):
        (files, key_bytes), (tls, _) = bench(workload, runs), bench(workload, runs, "--stream")
        series.append({"into_files_s": files, "over_tls_s": tls, "key_bytes": key_bytes})
    files, tls = (median(one[figure] for one in series) for figure in ("into_files_s", "over_tls_s"))
    of = {"workload": workload, "runs": runs, "key_bytes": series[0]["key_bytes"]}
    return of | {"into_files_s": files, "over_tls_s": tls, "ratio": tls / files, "series": series}


def main() -> int:
    """Measure, print, write."""
    out, *names = sys.argv[1:]
    results: list[dict[str, Any]] = []
    for name in names or WORKLOADS:
        result = measured(name, WORKLOADS[name])
        results.append(result)
        said = "{workload}: {into_files_s:.4f} s into files, {over_tls_s:.4f} s over TLS ({ratio:.2f})"
        print(said.format(**result), flush=True)
        Path(out).write_text(json.dumps({"command": COMMAND, "results": results}, indent=1) + "\n")
    return any(result["ratio"] > MOST for result in results)


if __name__ == "__main__":
    sys.exit(main())
