"""Draws docs/numerics/fidelity.png and prints the table of docs/numerics.md from benches/results/fidelity-*.json.

Left: losses of the private training and of PyTorch's. Right: how far apart they are, and how far PyTorch is from itself
where rounding alone differs (scripts/fidelity.py --plaintext).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

ROOT = Path(__file__).parent.parent
SMALLEST = 1e-6  # differences below are drawn here
SECURITIES = {"semi-honest": "", "malicious": " malicious"}


def runs(folder: Path) -> list[dict[str, Any]]:
    """Private and simulated trainings, in the order of their files."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("fidelity-*.json"))]
    return [f for f in found if "private" in f]


def yardstick(folder: Path, setting: str) -> dict[str, Any]:
    """PyTorch against PyTorch."""
    found: dict[str, Any] = json.loads((folder / f"fidelity-{setting}-plaintext.json").read_text())
    return found


def apart(losses: list[float], others: list[float]) -> list[float]:
    """Differences by step, as far as both go."""
    return [abs(a - b) for a, b in zip(losses, others, strict=False)]


def name_of(run: dict[str, Any]) -> str:
    """``lenet, rep3 malicious``; integers in the clear are those of any protocol."""
    protocol = "simulated" if run["simulated"] else f"{run['protocol']}{SECURITIES[run['security']]}"
    return f"{run['setting']}, {protocol}"


def draw(run: dict[str, Any], yard: dict[str, Any], losses: Axes, differences: Axes) -> None:
    """One training: its curves, and their differences beside the yardstick's."""
    private, torchs = run["private"]["losses"], run["plaintext"]["losses"]
    steps = range(1, len(private) + 1)
    losses.plot(steps, torchs, linewidth=2.4, color="C1", label="PyTorch, float32")
    losses.plot(steps, private, linewidth=0.8, color="C0", label="private")
    losses.set_title(name_of(run), fontsize="medium")
    others = [apart(r["losses"], yard["runs"]["float32"]["losses"]) for r in yard["runs"].values()][1:]
    most = [max(SMALLEST, *step) for step in zip(*others, strict=True)][: len(private)]
    differences.fill_between(steps, SMALLEST, most, color="0.85", label="PyTorch from PyTorch, at most")
    shown = [max(d, SMALLEST) for d in apart(private, torchs)]
    differences.plot(steps, shown, linewidth=0.8, color="C0", label="private from PyTorch")
    differences.set_yscale("log")


def row(run: dict[str, Any], yard: dict[str, Any]) -> str:
    """A line of the table: accuracies in per cent, differences in points."""
    ours, theirs = 100 * run["private"]["accuracy"], 100 * run["plaintext"]["accuracy"]
    whole = run["steps"] == yard["steps"]
    noise = f"{100 * yard['largest_difference']:.2f}" if whole else "-"
    others = [apart(r["losses"], yard["runs"]["float32"]["losses"]) for r in yard["runs"].values()][1:]
    means = [sum(o[: run["steps"]]) / run["steps"] for o in others]
    mean = run["loss_difference"]["mean"]
    what = name_of(run).replace(", ", " | ")
    scores = f"{ours:.2f} | {theirs:.2f} | {ours - theirs:+.2f} | {noise}"
    return f"| {what} | {run['steps']} | {scores} | {mean:.1e} | {min(means):.1e} to {max(means):.1e} |"


def main() -> None:
    """Draw and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "benches" / "results")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "numerics" / "fidelity.png")
    options = parser.parse_args()
    found = runs(options.results)
    plt.rcParams["path.simplify_threshold"] = 0.5
    figure, grid = plt.subplots(len(found), 2, figsize=(10, 2.2 * len(found)), layout="constrained", squeeze=False)
    for run, (left, right) in zip(found, grid, strict=True):
        yard = yardstick(options.results, run["setting"])
        draw(run, yard, left, right)
        print(row(run, yard))
    grid[0][0].legend(fontsize="small")
    grid[0][1].legend(fontsize="small")
    grid[0][0].set_ylabel("loss")
    grid[0][1].set_ylabel("difference of losses")
    for axes in grid[-1]:
        axes.set_xlabel("step")
    figure.savefig(options.out, dpi=70, metadata={"Software": None})


if __name__ == "__main__":
    main()
