"""What becomes of one row: compiled and near to PyTorch, refused with a reason, or an error that no user should see."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import privet

from .cases import Build

OK, DIFFERS, REFUSED, RAW, LATE = "ok", "differs", "refused", "RAW", "no end"
"""What a row can come to; the last one is for what took longer than its limit, or ended its process."""

WORST = 0.05
"""Largest difference of "ok", relative to the largest result, or to 1 where that is larger."""


@dataclass(frozen=True)
class Row:
    """What became of one model, layer or function."""

    group: str
    name: str
    status: str
    reason: str = ""
    difference: float = 0.0
    seconds: float = 0.0


def judge(group: str, name: str, build: Build) -> Row:
    """Compile it as it is, and compare its integer plan, run in the clear, with PyTorch."""
    torch.manual_seed(1)
    began = time.monotonic()
    status, reason, gap = OK, "", 0.0
    try:
        model, inputs = build()
        model.eval()
        private = privet.compile(model, inputs)
        problems = private.check()
        if problems:
            found = dict.fromkeys(f"{p['op']}: {p['remedy']}" for p in problems)
            status, reason = REFUSED, "; ".join(found)
        else:
            gap = difference(model, private, inputs)
            if not gap <= WORST:
                status, reason = DIFFERS, f"by {gap:.3g}"
    except privet.CaptureError as error:  # the last line says what to do; the one before quotes this census
        status, reason = REFUSED, f"CaptureError: {str(error).splitlines()[-1]}"
    except privet.PrivetError as error:
        status, reason = REFUSED, f"{type(error).__name__}: {error}"
    except Exception as error:  # what a user must never see is counted here
        status, reason = RAW, f"{type(error).__name__}: {error}"
    reason = " ".join(reason.split())[:400]
    return Row(group, name, status, reason, gap, round(time.monotonic() - began, 1))


def difference(model: torch.nn.Module, private: privet.PrivateModel, inputs: Any) -> float:
    """The largest difference of a result; whole numbers and bits have to be equal."""
    given = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs] if isinstance(inputs, Tensor) else inputs
    tensors = [t for t in given if isinstance(t, Tensor)]
    found = list(flat(private.simulate(*(t.clone() for t in tensors))))
    with torch.no_grad():
        kept = {k: v.clone() if isinstance(v, Tensor) else v for k, v in inputs.items()} if isinstance(
            inputs, Mapping) else {}  # fmt: skip
        result = model(**kept) if kept else model(*(t.clone() for t in tensors))
    wanted = list(flat(result))
    assert len(found) == len(wanted), "results of the plan and of the model"
    worst = 0.0
    for ours, theirs in zip(found, wanted, strict=True):
        assert list(ours.shape) == list(theirs.shape), "the shape of a result"
        if theirs.numel():
            reference = theirs.to(torch.float64)
            gap = (ours.to(torch.float64) - reference).abs().max()
            worst = max(worst, float(gap / reference.abs().max().clamp(min=1.0)))
    return worst


def flat(value: Any) -> Iterator[Tensor]:
    """The tensors of a result."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from flat(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from flat(item)
