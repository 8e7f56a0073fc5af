#!/usr/bin/env python3
"""Bytes of all that passes between the parties, whoever sends it: `scripts/traffic.py WORKLOAD [OPTION...]`.

Runs `privet bench WORKLOAD OPTION...` in a network of its own (`unshare`), and reads what its loopback carried: TLS,
headers and what clients and owners send are counted. Prints megabytes (10^6) of a single run with nothing cached, its
session included, and of each of ten runs of one session that were prepared before it began.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PRIVET = Path(__file__).parent.parent / "target" / "release" / "privet"
COUNT = "ip link set lo up && {} >/dev/null && grep lo: /proc/net/dev"


def carried(arguments: list[str]) -> int:
    """Bytes on loopback while the benchmark ran."""
    words = " ".join([str(PRIVET), "bench", *arguments, "--json"])
    call = ["unshare", "--map-root-user", "--net", "sh", "-c", COUNT.format(words)]
    said = subprocess.run(call, capture_output=True, text=True, check=True).stdout
    return int(said.split("lo:")[1].split()[0])


def main() -> int:
    """Print both figures."""
    if len(sys.argv) < 2 or not PRIVET.exists():
        print(__doc__, file=sys.stderr)
        return 2
    of = sys.argv[1:]
    # the benchmark has a run more than it counts: a session and two runs, a session and three
    two, three = (carried([*of, "--runs", str(runs)]) for runs in (1, 2))
    ten = carried([*of, "--runs", "9", "--together", "10"])
    figures = {"workload": of[0], "options": of[1:], "single_mb": (2 * two - three) / 1e6, "of_ten_mb": ten / 10 / 1e6}
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
