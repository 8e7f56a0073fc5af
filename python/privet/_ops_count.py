"""Where numbers stand among others: counts of comparisons with boundaries, which are public or private."""

from __future__ import annotations

import math

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_compare import greater
from ._ops_pointwise import add_scalar, mul_scalar


@op("aten.bucketize.Tensor", "aten.searchsorted.Tensor")
def bucketize(lo: Lowering, a: Args) -> Value:
    """How many of the boundaries are below each number, or with ``right`` not above it: a comparison for each pair."""
    sorted_by = "boundaries" if "bucketize" in str(lo.operator) else "sorted_sequence"
    if a.get("sorter") is not None:
        raise Decline("an order that is given apart")
    right = bool(a["right"]) or a.get("side") == "right"
    x, ends = lo.use(a["self"]), lo.use(a[sorted_by])
    shape, count = lo.shape, lo.shape_at(ends)[-1]
    wide = [*shape, count]
    rank = len(lo.shape_at(ends))
    given = lo.shape_at(ends)
    ends = lo.emit({"kind": "reshape"}, [ends], [*given[:-1], 1, count]) if rank > 1 else ends
    column = lo.emit({"kind": "reshape"}, [x], [*lo.shape_at(x), 1])
    gap = lo.emit({"kind": "sub"}, [column, ends], wide)
    bits = greater(lo, gap).number(lo)
    if right:  # not (end > x)
        above = greater(lo, mul_scalar(lo, gap, -1.0)).number(lo)
        bits = add_scalar(lo, mul_scalar(lo, above, -1.0), 1.0)
    node = lo.emit({"kind": "sum", "dims": [len(shape)], "keepdim": False}, [bits], shape)
    lo.bounds[node] = (0, count)
    return node


@op("aten.histc.default")
def histc(lo: Lowering, a: Args) -> Value:
    """How many numbers are in each of equal ranges, the last one with its end."""
    low, high, bins = float(a["min"]), float(a["max"]), int(a["bins"])
    if low >= high:
        raise Decline("a range that follows from the values")
    x = lo.use(a["self"])
    size = math.prod(lo.shape_at(x))
    column = lo.emit({"kind": "reshape"}, [x], [size, 1])
    ends = torch.linspace(low, high, bins + 1)
    edges = lo.use(lo.constant(ends))
    below = greater(lo, lo.emit({"kind": "sub"}, [edges, column], [size, bins + 1]))  # x < end
    last = greater(lo, add_scalar(lo, column, -high)).number(lo)  # x > the last end
    shape = [bins + 1]
    counts = lo.emit({"kind": "sum", "dims": [0], "keepdim": False}, [below.number(lo)], shape)
    total = lo.emit({"kind": "sum", "dims": [0], "keepdim": False}, [last], [1])
    inside = add_scalar(lo, mul_scalar(lo, total, -1.0), float(size))  # x <= the last end

    def part(start: int, end: int) -> int:
        return lo.emit({"kind": "slice", "dim": 0, "start": start, "end": end, "step": 1}, [counts], [end - start])

    upper = [part(1, bins), inside] if bins > 1 else [inside]
    joined = lo.emit({"kind": "concat", "dim": 0}, upper, [bins]) if bins > 1 else inside
    return lo.emit({"kind": "sub"}, [joined, part(0, bins)], [bins])
