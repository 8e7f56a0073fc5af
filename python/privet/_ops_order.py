"""Order: the least and the largest, sorting, and what follows from it."""

from __future__ import annotations

from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_compare import greater
from ._ops_gather import take
from ._ops_layers import dims_of, permute, reshape_to
from ._ops_pointwise import mul_scalar
from ._ops_shape import cut
from ._ops_smooth import smooth

MOST_SORTED = 1024
"""Longest line that is sorted."""


def largest(lo: Lowering, x: int, dims: list[int], shape: list[int], sign: float = 1.0) -> int:
    """The maximum over dimensions, or with ``sign`` -1 the minimum: one window each."""
    given = lo.shape_at(x)
    kept = [d for d in range(len(given)) if d not in dims]
    extent = int(torch.tensor([given[d] for d in dims]).prod()) if dims else 1
    outer = int(torch.tensor([given[d] for d in kept]).prod()) if kept else 1
    node = mul_scalar(lo, x, sign)
    order = [*kept, *dims]
    if order != list(range(len(given))):
        node = permute(lo, node, order)
    node = reshape_to(lo, node, [outer, 1, extent, 1])
    kernel = [extent, 1]
    window = {"kernel": kernel, "stride": kernel, "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False}
    node = lo.emit({"kind": "max_pool2d", "window": window}, [node], [outer, 1, 1, 1])
    return mul_scalar(lo, reshape_to(lo, node, shape), sign)


def over(lo: Lowering, a: Args, sign: float) -> Value:
    x = lo.use(a["self"])
    return largest(lo, x, dims_of(a.get("dim"), len(lo.shape_at(x))), lo.shape, sign)


@op("aten.amax.default", "aten.max.default")
def amax(lo: Lowering, a: Args) -> Value:
    """The maximum over dimensions."""
    return over(lo, a, 1.0)


@op("aten.amin.default", "aten.min.default")
def amin(lo: Lowering, a: Args) -> Value:
    """The minimum over dimensions."""
    return over(lo, a, -1.0)


@op("aten.aminmax.default")
def aminmax(lo: Lowering, a: Args) -> Value:
    """Both."""
    return over(lo, a, -1.0), over(lo, a, 1.0)


@op("aten.logsumexp.default")
def logsumexp(lo: Lowering, a: Args) -> Value:
    """The maximum, and the logarithm of the sum of exponentials below it."""
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    dims = dims_of(a["dim"], len(shape))
    kept = [1 if d in dims else n for d, n in enumerate(shape)]
    top = largest(lo, x, dims, kept)
    below = smooth(lo, "exp", lo.emit({"kind": "sub"}, [x, top], shape))
    log = smooth(lo, "log", lo.emit({"kind": "sum", "dims": dims, "keepdim": True}, [below], kept))
    return reshape_to(lo, lo.emit({"kind": "add"}, [top, log], kept), lo.shape)


def place(lo: Lowering, a: Args, sign: float) -> int:
    """The index of the largest or least element; without a dimension, in the flattened tensor."""
    x = mul_scalar(lo, lo.use(a["self"]), sign)
    shape = lo.shape_at(x)
    if a["dim"] is None:
        if a["keepdim"]:
            raise Decline("keepdim without a dimension")
        flat = reshape_to(lo, x, [int(torch.tensor(shape).prod())])
        return lo.emit({"kind": "argmax", "dim": 0, "keepdim": False}, [flat], [])
    node: dict[str, Any] = {"kind": "argmax", "dim": int(a["dim"]) % len(shape), "keepdim": bool(a["keepdim"])}
    return lo.emit(node, [x], lo.shape)


@op("aten.argmax.default")
def argmax(lo: Lowering, a: Args) -> Value:
    """Index of the largest value."""
    return place(lo, a, 1.0)


@op("aten.argmin.default")
def argmin(lo: Lowering, a: Args) -> Value:
    """Index of the least value."""
    return place(lo, a, -1.0)


@op("aten.max.dim")
def max_dim(lo: Lowering, a: Args) -> Value:
    """``x.max(dim)``: the maximum, and where it is."""
    return pair_of(lo, a, 1.0)


@op("aten.min.dim")
def min_dim(lo: Lowering, a: Args) -> Value:
    """``x.min(dim)``: the minimum, and where it is."""
    return pair_of(lo, a, -1.0)


def pair_of(lo: Lowering, a: Args, sign: float) -> Value:
    return over(lo, a, sign) if lo.is_read(0) else None, place(lo, a, sign) if lo.is_read(1) else None


# --- Sorting -----------------------------------------------------------------------------------------


def levels(n: int) -> list[list[tuple[int, int]]]:
    """Comparators of Batcher's odd-even merge sort for any n, those of one level together."""
    found: list[list[tuple[int, int]]] = []
    p = 1
    while p < n:
        k = p
        while k >= 1:
            level = []
            for j in range(k % p, n - k, 2 * k):
                for i in range(min(k, n - j - k)):
                    if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                        level.append((i + j, i + j + k))
            if level:
                found.append(level)
            k //= 2
        p *= 2
    return found


def ordered(lo: Lowering, x: int, dim: int, descending: bool, indices: bool) -> tuple[int, int | None]:
    """x sorted along a dimension, and where each element was: all comparators of a level at once."""
    shape = lo.shape_at(x)
    n = shape[dim]
    if n > MOST_SORTED:
        raise Decline(f"{n} numbers, at most {MOST_SORTED} are sorted")
    where: int | None = None
    if indices:
        steps = torch.arange(n, dtype=torch.float32).reshape([-1 if d == dim else 1 for d in range(len(shape))])
        where = lo.use(lo.constant(steps.expand(shape).contiguous()))
    for level in levels(n):
        first, second = [i for i, _ in level], [j for _, j in level]
        rest = [i for i in range(n) if i not in {*first, *second}]
        back = [0] * n
        for at, i in enumerate([*first, *second, *rest]):
            back[i] = at
        low, high = take(lo, x, dim, first), take(lo, x, dim, second)
        # what the second gives the first, where they stand in the wrong order
        left, right = (high, low) if descending else (low, high)
        gap = lo.emit({"kind": "sub"}, [left, right], lo.shape_at(low))
        bit = greater(lo, gap).node
        signed = lo.emit({"kind": "sub"}, [low, high], lo.shape_at(low))
        x = exchanged(lo, (x, low, high), (bit, signed), (dim, rest, back))
        if where is not None:
            wl, wh = take(lo, where, dim, first), take(lo, where, dim, second)
            signed = lo.emit({"kind": "sub"}, [wl, wh], lo.shape_at(wl))
            where = exchanged(lo, (where, wl, wh), (bit, signed), (dim, rest, back))
            lo.bounds[where] = (0, n - 1)
    return x, where


def exchanged(
    lo: Lowering, values: tuple[int, int, int], swap: tuple[int, int], line: tuple[int, list[int], list[int]]
) -> int:
    """A line whose pairs are exchanged where the bit is 1."""
    (x, low, high), (bit, gap), (dim, rest, back) = values, swap, line
    shape = lo.shape_at(low)
    change = lo.emit({"kind": "choose"}, [bit, gap], shape)
    parts = [lo.emit({"kind": "sub"}, [low, change], shape), lo.emit({"kind": "add"}, [high, change], shape)]
    if rest:
        parts.append(take(lo, x, dim, rest))
    joined = lo.emit({"kind": "concat", "dim": dim}, parts, lo.shape_at(x))
    return take(lo, joined, dim, back)


@op("aten.sort.default", "aten.sort.stable")
def sort(lo: Lowering, a: Args) -> Value:
    """Batcher's odd-even merge sort; equal elements may come in either order."""
    x = lo.use(a["self"])
    return ordered(lo, x, int(a["dim"]) % len(lo.shape_at(x)), bool(a["descending"]), lo.is_read(1))


@op("aten.argsort.default", "aten.argsort.stable")
def argsort(lo: Lowering, a: Args) -> Value:
    """Where the sorted elements were."""
    x = lo.use(a["self"])
    return ordered(lo, x, int(a["dim"]) % len(lo.shape_at(x)), bool(a["descending"]), True)[1]


@op("aten.topk.default")
def topk(lo: Lowering, a: Args) -> Value:
    """The first k of all, sorted."""
    x, k = lo.use(a["self"]), int(a["k"])
    dim = int(a["dim"]) % len(lo.shape_at(x))
    values, where = ordered(lo, x, dim, bool(a["largest"]), lo.is_read(1))
    first = cut(lo, values, dim, 0, k)
    if where is None:
        return first, None
    found = cut(lo, where, dim, 0, k)
    lo.bounds[found] = (0, lo.shape_at(x)[dim] - 1)
    return first, found


def ranked(lo: Lowering, a: Args, at: int) -> Value:
    """The element of a rank along a dimension, and where it is."""
    x = lo.use(a["self"])
    dim = int(a["dim"]) % len(lo.shape_at(x))
    values, where = ordered(lo, x, dim, False, lo.is_read(1))
    shape = lo.shape
    found = reshape_to(lo, cut(lo, values, dim, at, at + 1), shape)
    return found, None if where is None else reshape_to(lo, cut(lo, where, dim, at, at + 1), shape)


@op("aten.median.dim")
def median(lo: Lowering, a: Args) -> Value:
    """The lower of the two in the middle."""
    return ranked(lo, a, (lo.shape_arg(a["self"])[int(a["dim"])] - 1) // 2)


@op("aten.kthvalue.default")
def kthvalue(lo: Lowering, a: Args) -> Value:
    """The k-th smallest."""
    return ranked(lo, a, int(a["k"]) - 1)


@op("aten.median.default")
def median_of_all(lo: Lowering, a: Args) -> Value:
    """The lower of the two in the middle of all elements."""
    x = lo.use(a["self"])
    n = int(torch.tensor(lo.shape_at(x)).prod())
    values, _ = ordered(lo, reshape_to(lo, x, [n]), 0, False, False)
    return reshape_to(lo, cut(lo, values, 0, (n - 1) // 2, (n - 1) // 2 + 1), [])
