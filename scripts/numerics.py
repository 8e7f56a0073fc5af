"""Measures smooth functions against float64 and draws docs/numerics/*.svg: ``scripts/python.sh scripts/numerics.py``.

What is measured is the integer plan, run in the clear: what both protocols compute, integer by integer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import torch
from torch import Tensor, nn

import privet
from privet.evaluate import SMOOTH

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

BITS, FRACTION = 64, 24
UNIT = 2.0**-FRACTION
BOUND = 2.0**-16
POINTS = 4000
PER_BIN = 20


@dataclass(frozen=True)
class Domain:
    """Where a function is measured, evenly or by magnitude."""

    low: float
    high: float
    by_magnitude: bool = False

    def points(self, count: int) -> Tensor:
        """So many numbers, each exactly representable."""
        if not self.by_magnitude:
            x = torch.linspace(self.low, self.high, count, dtype=torch.float64)
        else:
            x = self.low * (self.high / self.low) ** torch.linspace(0, 1, count, dtype=torch.float64)
        return (x / UNIT).round() * UNIT


# up to where results, or operands, of 40 ring bits and 24 fraction bits end
DOMAINS = {
    "exp": Domain(-18.0, 10.3),
    "log": Domain(UNIT, 32000.0, by_magnitude=True),
    "reciprocal": Domain(4e-5, 32000.0, by_magnitude=True),
    "sqrt": Domain(UNIT, 32000.0, by_magnitude=True),
    "rsqrt": Domain(UNIT, 32000.0, by_magnitude=True),
    "sigmoid": Domain(-20.0, 20.0),
    "tanh": Domain(-10.0, 10.0),
    "gelu": Domain(-8.0, 8.0),
    "silu": Domain(-20.0, 20.0),
}


class Apply(nn.Module):
    """One function as a model."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        """The function of every element."""
        return self.function(x)


def measured(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """What the plan gives for ``function`` of ``x``."""
    precision = privet.Precision(bits=BITS, fraction=FRACTION)
    private = privet.compile(Apply(function), x[:1].float(), precision=precision, calibration=x.float())
    result: Tensor = private.simulate(x)
    return result.double()


def smooth(name: str, axes: Axes) -> dict[str, float]:
    """Measure and draw one elementwise function."""
    x = DOMAINS[name].points(POINTS)
    truth = SMOOTH[name](x)
    error = (measured(SMOOTH[name], x.reshape(1, -1)).reshape(-1) - truth).abs()
    allowed = torch.maximum(torch.full_like(truth, 2 * UNIT), truth.abs() * BOUND)

    bins = x.reshape(-1, PER_BIN)
    axes.plot(bins.mean(1), (error / UNIT).reshape(-1, PER_BIN).amax(1).clamp_min(0.1), label="largest error")
    axes.plot(bins.mean(1), (allowed / UNIT).reshape(-1, PER_BIN).amin(1), linewidth=1, label="bound")
    axes.set_yscale("log")
    if DOMAINS[name].by_magnitude:
        axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_title(name)
    return {"share_of_bound": float((error / allowed).max()), "largest_units": float((error / UNIT).max())}


def softmax(folder: Path) -> dict[str, float]:
    """The largest error of a softmax by its number of classes, for logits in [-60, 60]."""
    generator = torch.Generator().manual_seed(1)
    classes = [2, 3, 10, 30, 100, 300, 1000]
    worst = []
    for count in classes:
        logits = 120 * torch.rand(20, count, generator=generator, dtype=torch.float64) - 60
        logits[1] = 60.0
        logits[2] = -60.0
        logits[3] = torch.linspace(-60, 60, count, dtype=torch.float64)
        logits = (logits / UNIT).round() * UNIT
        truth = torch.softmax(logits, 1)
        found = measured(lambda x: torch.softmax(x, 1), logits)
        worst.append(float((found - truth).abs().max()))

    figure, axes = plt.subplots(figsize=(6, 2.6), layout="constrained")
    axes.loglog(classes, worst, "o-", label="largest error")
    axes.axhline(2.0**-18, linewidth=1, color="C1", label="bound: 2^-18")
    axes.set_title("softmax of logits in [-60, 60]")
    axes.set_xlabel("classes")
    axes.legend(loc="best", fontsize="small")
    figure.savefig(folder / "softmax.svg", metadata={"Date": None})
    plt.close(figure)
    return {"largest": max(worst), "share_of_bound": max(worst) * 2**18}


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs" / "numerics")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "privet"
    plt.rcParams["svg.fonttype"] = "none"
    figure, grid = plt.subplots(3, 3, figsize=(11, 8), layout="constrained")
    results = {name: smooth(name, axes) for name, axes in zip(DOMAINS, grid.flat, strict=True)}
    figure.supylabel(f"units of 2^-{FRACTION}")
    grid.flat[0].legend(loc="best", fontsize="small")
    figure.savefig(folder / "functions.svg", metadata={"Date": None})
    results["softmax"] = softmax(folder)
    for name, figures in results.items():
        print(f"{name:12}", "  ".join(f"{key} {value:.3g}" for key, value in figures.items()))
    (folder / "errors.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
