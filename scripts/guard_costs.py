"""What a guard costs, as a table for docs/guard.md: `scripts/python.sh scripts/guard_costs.py [NETWORK...]`.

Small networks with random weights, compiled for each family without a guard, with one, and as by default. Figures are
the estimate's, one row, on a LAN, at the shipped rates wherever this runs.
"""

from __future__ import annotations

import argparse
import os
import re

import torch
from torch import nn

import privet
from privet import models
from privet.protocols import PROTOCOLS

NETWORKS = {
    "lenet": (models.LeNet, (1, 1, 28, 28)),
    "bert-small": (models.bert_small, (1, 16, 64)),
    "resnet20": (models.ResNet20, (1, 3, 32, 32)),
}
ROWS = 32
"""Of calibration."""

HEAD = (
    "network", "family", "bits", "fraction bits", "seconds", "sent, MB", "rounds", "keys, MB", "values watched",
    "costs", "by default",
)  # fmt: skip


def made(model: nn.Module, rows: torch.Tensor, family: tuple[str, str], guard: bool | None) -> privet.PrivateModel:
    """The network, compiled."""
    protocol, security = family
    return privet.compile(model, rows[:1], protocol, security=security, calibration=rows, guard=guard)


def numbers(private: privet.PrivateModel) -> tuple[list[int], dict[str, float]]:
    """Ring and fraction bits, and the estimate's total."""
    note = next(n for n in private.notes if "ring bits" in n and "fraction bits" in n)
    bits, fraction = re.findall(r"(\d+) ring bits; (\d+) fraction bits", note)[0]
    return [int(bits), int(fraction)], private.estimate().total


def line(name: str, model: nn.Module, rows: torch.Tensor, family: tuple[str, str]) -> str:
    """A row of the table: without -> with."""
    off, on, default = (made(model, rows, family, guard) for guard in (False, True, None))
    (bits, without), (more, total) = numbers(off), numbers(on)
    notes = " ".join(n for n in on.notes if n.startswith("guard"))
    watched = re.search(r"(\d+) values", notes)
    pairs = [f"{a} -> {b}" for a, b in zip(bits, more, strict=True)]
    pairs.append(f"{without['seconds']:.4f} -> {total['seconds']:.4f}")
    pairs.append(f"{without['wire_bytes'] / 1e6:.3f} -> {total['wire_bytes'] / 1e6:.3f}")
    pairs.append(f"{without['rounds']} -> {total['rounds']}")
    pairs.append(f"{without['key_bytes'] / 1e6:.2f} -> {total['key_bytes'] / 1e6:.2f}")
    # a plan with fewer fraction bits is another plan: its seconds tell nothing about the guard
    cost = f"{100 * (total['seconds'] / without['seconds'] - 1):+.0f} %" if more[1] == bits[1] else "fraction bits"
    chosen = "on" if default.guard is not None else "off"
    return "| " + " | ".join([name, ", ".join(family), *pairs, watched[1] if watched else notes, cost, chosen]) + " |"


def main() -> None:
    """Print the table as it is made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; default: all")
    names = parser.parse_args().names or NETWORKS
    os.environ["PRIVET_PROFILE"] = os.devnull
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    for name in names:
        build, shape = NETWORKS[name]
        torch.manual_seed(0)
        model = build().eval()
        rows = torch.randn(ROWS, *shape[1:]) if name == "bert-small" else torch.rand(ROWS, *shape[1:])
        for protocol in PROTOCOLS.values():
            for security in protocol.withstands:
                print(line(name, model, rows, (protocol.name, security)), flush=True)


if __name__ == "__main__":
    main()
