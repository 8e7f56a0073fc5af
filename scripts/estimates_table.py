"""What estimates said of runs beside what the runs took: `scripts/estimates_table.py benches/results [--write FILE]`.

Reads what `privet bench --json` wrote. Its `predicted_s` goes by the machine's own profile where `privet bench
--calibrate` has measured one. `--profile FILE` predicts anew by a profile that was kept with the results, with
`target/release/privet`. Ends with status 1 where a ratio is outside 0.7 to 1.4.

Rounds, bytes and keys of a plan are exact. A result that has others is of an older version, which made
another plan of the workload: it is shown as such, and not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from pathlib import Path

LEAST, MOST = 0.7, 1.4
# What bytes and keys may differ by and still be of one plan. Layers with hints are packed by their weights, which the
# estimates do not see, and forms of comparisons may change. Older results' keys leave out what is kept for hints.
SAME_PLAN = {"bytes_sent": 0.05, "key_bytes": 0.25}
# Steps of clients and states, which estimates have and runs have not.
CLIENT_ROUNDS = range(6)
PRIVET = Path(__file__).parent.parent / "target" / "release" / "privet"


def predict(data: dict, profile: Path) -> dict:
    """What the profile says of a run like that of the results."""
    options = {"batch": data["batch"], "protocol": data["protocol"], "security": data["security"].split(",")[0]}
    options |= {"bits": data["bits"], "fraction": data["fraction"], "rounding": data["rounding"]}
    options |= {"network": data["network"], "compile-for": data["compiled_for"]}
    options |= {"parties": data["parties"]} if "parties" in data else {}
    words = [f"--{name}={value}" for name, value in options.items()] + ["--train"] * bool(data.get("train"))
    words += [f"--set={value}" for value in data.get("settings", [])]
    words += [f"--model-owner={data['model_owner']}"] if "model_owner" in data else []
    words += [f"--max-key-bytes={data['max_key_bytes']}"] if "max_key_bytes" in data else []
    call = [str(PRIVET), "bench", data["workload"], *words, "--predict", "--json"]
    said = subprocess.run(call, env=os.environ | {"PRIVET_PROFILE": str(profile)}, capture_output=True, check=True)
    found = json.loads(said.stdout)
    if "PRIVET_PROFILE" not in found["rates_from"]:
        raise SystemExit(f"{profile} holds no rates of {data['protocol']}, {options['security']}")
    return found


def of_this_plan(said: dict, data: dict) -> bool:
    """Whether the results' bytes and keys are those of the plan that is made today."""
    rounds = said["rounds"] - data["rounds"] in CLIENT_ROUNDS
    return rounds and all(abs(said[name] - data[name]) <= most * data[name] for name, most in SAME_PLAN.items())


def cells(predicted: float | None, measured: float, today: bool) -> tuple[list[str], list[float]]:
    """What the table says of a prediction, and its ratio; blanks where nothing was predicted."""
    if predicted is None:
        return [""] * 3, []
    ratio = predicted / measured
    if not today:
        return [f"{predicted:.3g} s", f"{measured:.3g} s", "older plan"], []
    mark = "" if LEAST <= ratio <= MOST else " **outside**"
    return [f"{predicted:.3g} s", f"{measured:.3g} s", f"{ratio:.2f}{mark}"], [ratio]


def row(file: Path, profile: Path | None) -> tuple[str, list[float]] | None:
    """A line of the table and its ratios; nothing for other files, and for results of versions that did not predict."""
    data = json.loads(file.read_text())
    if not isinstance(data, dict) or "predicted_s" not in data or "online_s" not in data:
        return None
    said = predict(data, profile) if profile else data
    # over an emulated network what the client sends and gets takes time as well, and the estimate has it
    taken = data["online_s" if data["network"] == "lan" else "wall_s"]["median"]
    today = of_this_plan(said, data)
    run, ratios = cells(said["predicted_s"], taken, today)
    before, more = cells(said.get("predicted_offline_s"), data["offline_s"]["median"], today)
    name = data["workload"] + (", training" if data.get("train") else "")
    protocol = data["protocol"] + (f", {data['parties']}" if "predicted_offline_s" in data else "")
    against = data["security"].split(",")[0]
    first = [name, data["batch"], protocol, against, f"{data['bits']} / {data['fraction']}", data["network"]]
    return "| " + " | ".join(map(str, [*first, *run, *before])) + " |", ratios + more


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
    head += " prepared, predicted | measured | ratio |"
    text = "\n".join([head, "|---" * 12 + "|", *(line for line, _ in rows)]) + "\n"
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text, end="")
    ratios = [ratio for _, found in rows for ratio in found]
    outside = sum(not LEAST <= ratio <= MOST for ratio in ratios)
    older = sum("older plan" in line for line, _ in rows)
    print(f"{len(ratios) - outside} of {len(ratios)} between {LEAST} and {MOST}; {older} workloads are of older plans")
    return 1 if outside else 0


if __name__ == "__main__":
    raise SystemExit(main())
