"""The guard of a plan: one bit a row that says whether every value inside was in range (``docs/guard.md``)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from .errors import OutOfRange
from .interface import Interface


def guard_of(plan: str, interface: Interface) -> str | None:
    """The name of the plan's result that is its guard; none where it has none."""
    known = {port.name for port in interface.outputs}
    names = [output["name"] for output in json.loads(plan).get("outputs", [])]
    return next((name for name in names if name not in known), None)


def require(guard: str | None, parts: Sequence[Mapping[str, Tensor]], rows: int) -> None:
    """Raise :class:`OutOfRange` with the rows that a run's guard names."""
    if guard is None:
        return
    good = torch.cat([part[guard].flatten() for part in parts])[:rows] == 1
    bad = torch.nonzero(~good).flatten().tolist()
    if bad:
        raise OutOfRange(
            f"inside the model, values of {listed(bad)} left the range of calibration, and may have overflowed: the"
            f" result of {'this row is' if len(bad) == 1 else 'these rows is'} not to be used. `compare` names the"
            " layers; calibrate with rows like these",
            bad,
        )


def listed(rows: Sequence[int]) -> str:
    """``row 3``, or the first few of several."""
    names = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
    return f"row {names}" if len(rows) == 1 else f"rows {names}"


def beyond(seen: Iterable[tuple[str, float, float]], factor: float) -> list[tuple[str, float]]:
    """Layers with the factor by which a value exceeds its range, where that is above ``factor``; in order."""
    found: dict[str, float] = {}
    for layer, largest, limit in seen:
        ratio = largest / max(limit, 1.0)
        if ratio > factor:
            found[layer] = max(found.get(layer, 0.0), ratio)
    return list(found.items())
