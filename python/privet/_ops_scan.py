"""Products, maxima and sums of exponentials of all elements up to each one, by steps of 1, 2, 4, ..."""

from __future__ import annotations

import math
from collections.abc import Callable

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_layers import dims_of, permute, reshape_to
from ._ops_pointwise import relu_of
from ._ops_shape import cut
from ._ops_smooth import softplus_of

Combine = Callable[[Lowering, int, int], int]
"""What two values of one shape become."""


def scan(lo: Lowering, x: int, dim: int, combine: Combine) -> int:
    """Every element combined with all before it (Hillis and Steele, 1986): steps of 1, 2, 4, ..."""
    shape = lo.shape_at(x)
    step = 1
    while step < shape[dim]:
        first = cut(lo, x, dim, 0, step)
        earlier, later = cut(lo, x, dim, 0, shape[dim] - step), cut(lo, x, dim, step, shape[dim])
        x = lo.emit({"kind": "concat", "dim": dim}, [first, combine(lo, earlier, later)], shape)
        step *= 2
    return x


def tree(lo: Lowering, x: int, dim: int, combine: Combine) -> int:
    """All elements along a dimension combined, which is kept with extent 1."""
    while (extent := lo.shape_at(x)[dim]) > 1:
        half = extent // 2
        both = combine(lo, cut(lo, x, dim, 0, half), cut(lo, x, dim, half, 2 * half))
        if extent % 2:
            shape = list(lo.shape_at(both))
            shape[dim] += 1
            both = lo.emit({"kind": "concat", "dim": dim}, [both, cut(lo, x, dim, extent - 1, extent)], shape)
        x = both
    return x


def times(lo: Lowering, x: int, y: int) -> int:
    """x y."""
    return lo.emit({"kind": "mul"}, [x, y], lo.shape_at(x))


def larger(lo: Lowering, x: int, y: int) -> int:
    """The larger of two: ``y + relu(x - y)``."""
    shape = lo.shape_at(x)
    return lo.emit({"kind": "add"}, [y, relu_of(lo, lo.emit({"kind": "sub"}, [x, y], shape))], shape)


def smaller(lo: Lowering, x: int, y: int) -> int:
    """The smaller of two: ``y - relu(y - x)``."""
    shape = lo.shape_at(x)
    return lo.emit({"kind": "sub"}, [y, relu_of(lo, lo.emit({"kind": "sub"}, [y, x], shape))], shape)


def log_of_sum(lo: Lowering, x: int, y: int) -> int:
    """``log(e^x + e^y) = x + softplus(y - x)``."""
    shape = lo.shape_at(x)
    return lo.emit({"kind": "add"}, [x, softplus_of(lo, lo.emit({"kind": "sub"}, [y, x], shape))], shape)


def scanned(lo: Lowering, a: Args, combine: Combine) -> int:
    """Along the dimension of the arguments."""
    x = lo.use(a["self"])
    rank = len(lo.shape_at(x))
    return scan(lo, x, int(a["dim"]) % rank, combine) if rank else x


@op("aten.cumprod.default")
def cumprod(lo: Lowering, a: Args) -> Value:
    """Products so far."""
    return scanned(lo, a, times)


@op("aten.logcumsumexp.default")
def logcumsumexp(lo: Lowering, a: Args) -> Value:
    """Logarithms of the sums of exponentials so far."""
    return scanned(lo, a, log_of_sum)


@op("aten.cummax.default", "aten.cummin.default")
def cumulative_extreme(lo: Lowering, a: Args) -> Value:
    """Maxima or minima so far."""
    combine = larger if "cummax" in str(lo.operator) else smaller
    return scanned(lo, a, combine) if lo.is_read(0) else None, Decline("indices of maxima so far")


@op("aten.prod.default", "aten.prod.dim_int")
def prod(lo: Lowering, a: Args) -> Value:
    """The product over a dimension, or of all elements."""
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    dims = dims_of(a.get("dim"), len(shape))
    order = [*(d for d in range(len(shape)) if d not in dims), *dims]
    if order != list(range(len(shape))):
        x = permute(lo, x, order)
    kept = [n for d, n in enumerate(shape) if d not in dims]
    line = reshape_to(lo, x, [*kept, math.prod(shape[d] for d in dims)])
    return reshape_to(lo, tree(lo, line, len(kept), times), lo.shape)
