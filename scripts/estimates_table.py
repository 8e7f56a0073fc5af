"""What estimates said of runs beside what the runs took: `scripts/estimates_table.py benches/results [--write FILE]`.

Reads what `privet bench --json` wrote. Its `predicted_s` goes by the machine's own profile where `privet bench
--calibrate` has measured one. `--profile FILE` predicts anew by a profile that was kept with the results, with
`target/release/privet`. Ends with status 1 where a ratio is outside 0.7 to 1.4.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path

LEAST, MOST = 0.7, 1.4
PRIVET = Path(__file__).parent.parent / "target" / "release" / "privet"


def predict(data: dict, profile: Path) -> float:
    """Seconds online that the profile says of a run like that of the results."""
    options = {"batch": data["batch"], "protocol": data["protocol"], "security": data["security"].split(",")[0]}
    options |= {"bits": data["bits"], "fraction": data["fraction"], "rounding": data["rounding"]}
    options |= {"network": data["network"], "compile-for": data["compiled_for"]}
    words = [f"--{name}={value}" for name, value in options.items()] + ["--train"] * bool(data.get("train"))
    call = [str(PRIVET), "bench", data["workload"], *words, "--predict", "--json"]
    said = subprocess.run(call, env=os.environ | {"PRIVET_PROFILE": str(profile)}, capture_output=True, check=True)
    found = json.loads(said.stdout)
    if "PRIVET_PROFILE" not in found["rates_from"]:
        raise SystemExit(f"{profile} holds no rates of {data['protocol']}, {options['security']}")
    return found["predicted_s"]


def row(file: Path, profile: Path | None) -> tuple[str, float] | None:
    """A line of the table and its ratio; nothing for other files, and for results of versions that did not predict."""
    data = json.loads(file.read_text())
    if not isinstance(data, dict) or "predicted_s" not in data or "online_s" not in data:
        return None
    predicted = predict(data, profile) if profile else data["predicted_s"]
    measured = data["online_s"]["median"]
    ratio = predicted / measured
    name = data["workload"] + (", training" if data.get("train") else "")
    against = data["security"].split(",")[0]
    mark = "" if LEAST <= ratio <= MOST else " **outside**"
    cells = [name, data["batch"], data["protocol"], against, f"{data['bits']} / {data['fraction']}", data["network"]]
    cells += [f"{predicted:.3g} s", f"{measured:.3g} s", f"{ratio:.2f}{mark}"]
    return "| " + " | ".join(map(str, cells)) + " |", ratio


def main() -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description="predicted and measured times")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profile", type=Path, help="the machine's profile, to predict anew")
    parser.add_argument("--write", type=Path, help="a file for the table")
    arguments = parser.parse_args()
    rows = [found for file in sorted(arguments.folder.glob("*.json")) if (found := row(file, arguments.profile))]
    if not rows:
        parser.error(f"{arguments.folder} holds no results of a version that predicts: run scripts/bench.sh again")
    head = "| workload | batch | protocol | against | ring / fraction | network | predicted | measured | ratio |"
    text = "\n".join([head, "|---" * 9 + "|", *(line for line, _ in rows)]) + "\n"
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text, end="")
    outside = sum(not LEAST <= ratio <= MOST for _, ratio in rows)
    print(f"{len(rows) - outside} of {len(rows)} between {LEAST} and {MOST}")
    return 1 if outside else 0


if __name__ == "__main__":
    raise SystemExit(main())
