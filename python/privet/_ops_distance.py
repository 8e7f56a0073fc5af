"""Distances between vectors: of every pair, of pairs in order, and lengths of two numbers."""

from __future__ import annotations

import math

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_gather import take
from ._ops_layers import broadcast_shape, matmul_values, permute, reshape_to
from ._ops_norm import magnitude
from ._ops_order import largest
from ._ops_pointwise import mul_scalar, relu_of
from ._ops_smooth import power_of, smooth


def length(lo: Lowering, x: int, order: float, shape: list[int]) -> int:
    """The p-norm along the last dimension."""
    last = len(lo.shape_at(x)) - 1
    if math.isinf(order):
        return largest(lo, magnitude(lo, x), [last], shape)
    if order == 0:
        raise Decline("a count of elements that differ")
    powers = power_of(lo, x if order % 2 == 0 else magnitude(lo, x), order)
    total = lo.emit({"kind": "sum", "dims": [last], "keepdim": False}, [powers], shape)
    return total if order == 1 else power_of(lo, total, 1.0 / order)


def squares(lo: Lowering, x: int) -> int:
    """Sums of squares along the last dimension, which stays."""
    shape = lo.shape_at(x)
    square = lo.emit({"kind": "mul"}, [x, x], shape)
    return lo.emit({"kind": "sum", "dims": [len(shape) - 1], "keepdim": True}, [square], [*shape[:-1], 1])


@op("aten._cdist_forward.default", "aten.cdist.default")
def cdist(lo: Lowering, a: Args) -> Value:
    """Every row with every row; for squares ``|x|^2 - 2 x y + |y|^2``, so that a matrix product does it."""
    x, y = lo.use(a["x1"]), lo.use(a["x2"])
    xs, ys, order = lo.shape_at(x), lo.shape_at(y), float(a["p"])
    out = lo.shape
    if order == 2 and xs[:-2] == ys[:-2]:
        rank = len(ys)
        turned = permute(lo, y, [*range(rank - 2), rank - 1, rank - 2])
        products = mul_scalar(lo, matmul_values(lo, x, turned, out), -2.0)
        left, right = squares(lo, x), squares(lo, y)
        right = permute(lo, right, [*range(rank - 2), rank - 1, rank - 2])
        total = lo.emit({"kind": "add"}, [lo.emit({"kind": "add"}, [products, left], out), right], out)
        return smooth(lo, "sqrt", relu_of(lo, total))
    left = reshape_to(lo, x, [*xs[:-1], 1, xs[-1]])
    right = reshape_to(lo, y, [*ys[:-2], 1, *ys[-2:]])
    gap = lo.emit({"kind": "sub"}, [left, right], [*out, xs[-1]])
    return length(lo, gap, order, out)


@op("aten._pdist_forward.default", "aten.pdist.default")
def pdist(lo: Lowering, a: Args) -> Value:
    """Every row with those after it."""
    x = lo.use(a["self"])
    rows, width = lo.shape_at(x)
    first, second = torch.triu_indices(rows, rows, 1).tolist()
    count = len(first)
    gap = lo.emit({"kind": "sub"}, [take(lo, x, 0, first), take(lo, x, 0, second)], [count, width])
    return length(lo, gap, float(a["p"]), [count])


@op("aten.dist.default")
def dist(lo: Lowering, a: Args) -> Value:
    """The norm of all elements of a difference."""
    x, y = lo.use(a["self"]), lo.use(a["other"])
    shape = broadcast_shape(lo.shape_at(x), lo.shape_at(y))
    gap = lo.emit({"kind": "sub"}, [x, y], shape)
    return length(lo, reshape_to(lo, gap, [math.prod(shape)]), float(a["p"]), [])


@op("aten.hypot.default")
def hypot(lo: Lowering, a: Args) -> Value:
    """``sqrt(x^2 + y^2)``."""
    x, y = lo.use(a["self"]), lo.use(a["other"])
    parts = [lo.emit({"kind": "mul"}, [v, v], lo.shape_at(v)) for v in (x, y)]
    return smooth(lo, "sqrt", lo.emit({"kind": "add"}, parts, lo.shape))
