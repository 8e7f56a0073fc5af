"""Order: the least and the largest, sorting, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_compare import greater
from ._ops_gather import take
from ._ops_layers import dims_of, permute, reshape_to
from ._ops_pointwise import mul_scalar
from ._ops_shape import cut
from ._ops_smooth import smooth

MOST_COMPARATORS = 1 << 18
"""Most comparators of a network that sorts or selects, for one line."""


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


Comparators = list[tuple[int, int]]
"""Pairs of places: the one that gets the element that comes first, and the other."""


def merge(a: list[int], b: list[int], count: int, found: Comparators) -> list[int]:
    """Batcher's odd-even merge of two sorted lists of places, as far as it tells the first ``count`` elements.

    Elements behind the first ``count`` of a list are none of these, so they are compared with nothing. Gives the places
    of the first ``count`` in their order.
    """
    a, b = a[:count], b[:count]
    if not a or not b:
        return a or b
    if len(a) == len(b) == 1:
        found.append((a[0], b[0]))
        return [a[0], b[0]][:count]
    even = merge(a[::2], b[::2], count // 2 + 1, found)
    odd = merge(a[1::2], b[1::2], count // 2, found)
    pairs = list(zip(odd, even[1:], strict=False))
    found += pairs
    merged = [even[0], *(place for pair in pairs for place in pair)]
    return [*merged, *odd[len(pairs) :], *even[1 + len(pairs) :]][:count]


def network(n: int, count: int) -> tuple[list[Comparators], list[int]]:
    """Comparators that bring the first ``count`` of n elements to places, level by level, and these places in order.

    Batcher's merge sort, of whose lists the first ``count`` elements alone are kept: n - 1 comparators for the first
    one, and some ``n (log k)^2 / 4`` for the first k of many, where all n take ``n (log n)^2 / 4``.
    """
    lists = [[i] for i in range(n)]
    ready = [0] * n
    found: list[Comparators] = []
    while len(lists) > 1:
        pairs: Comparators = []
        merged = [merge(a, b, count, pairs) for a, b in zip(lists[::2], lists[1::2], strict=False)]
        lists = [*merged, *lists[2 * len(merged) :]]
        for first, second in pairs:
            level = max(ready[first], ready[second])
            ready[first] = ready[second] = level + 1
            found += [[] for _ in range(level + 1 - len(found))]
            found[level].append((first, second))
    return found, lists[0]


def ordered(
    lo: Lowering, x: int, dim: int, descending: bool, indices: bool, count: int | None = None
) -> tuple[int, int | None]:
    """The first ``count`` of x in order along a dimension, and where they were: all comparators of a level at once."""
    shape = lo.shape_at(x)
    n = shape[dim]
    levels, result = network(n, n if count is None else count)
    if (cost := sum(map(len, levels))) > MOST_COMPARATORS:
        raise Decline(f"an order of {n} numbers by {cost} comparisons, at most {MOST_COMPARATORS}")
    where: int | None = None
    if indices:
        steps = torch.arange(n, dtype=torch.float32).reshape([-1 if d == dim else 1 for d in range(len(shape))])
        where = lo.use(lo.constant(steps.expand(shape).contiguous()))
    last = {place: at for at, level in enumerate(levels) for pair in level for place in pair}
    last |= dict.fromkeys(result, len(levels))
    held = list(range(n))  # the place that each element of the line stands for
    for at, level in enumerate(levels):
        position = {place: i for i, place in enumerate(held)}
        pairs = sorted((position[i], position[j]) for i, j in level)
        compared = {i for pair in pairs for i in pair}
        rest = [i for i, place in enumerate(held) if i not in compared and last.get(place, -1) > at]
        line = Level(dim, [i for i, _ in pairs], [j for _, j in pairs], rest)
        low, high = take(lo, x, dim, line.first), take(lo, x, dim, line.second)
        # what the second gives the first, where they stand in the wrong order
        left, right = (high, low) if descending else (low, high)
        bit = greater(lo, lo.emit({"kind": "sub"}, [left, right], lo.shape_at(low))).node
        x = exchanged(lo, (x, low, high), bit, line)
        if where is not None:
            whose = take(lo, where, dim, line.first), take(lo, where, dim, line.second)
            where = exchanged(lo, (where, *whose), bit, line)
            lo.bounds[where] = (0, n - 1)
        held = [held[i] for i in (*line.first, *line.second, *line.rest)]
    back = [held.index(place) for place in result]
    x = take(lo, x, dim, back)
    if where is not None:
        where = take(lo, where, dim, back)
        lo.bounds[where] = (0, n - 1)
    return x, where


@dataclass(frozen=True)
class Level:
    """Comparators at once: of a line along ``dim`` those that stand first, their partners, and who else is needed."""

    dim: int
    first: list[int]
    second: list[int]
    rest: list[int]


def exchanged(lo: Lowering, values: tuple[int, int, int], bit: int, line: Level) -> int:
    """A line whose pairs are exchanged where the bit is 1: the first ones, the second ones, the rest."""
    x, low, high = values
    shape = lo.shape_at(low)
    change = lo.emit({"kind": "choose"}, [bit, lo.emit({"kind": "sub"}, [low, high], shape)], shape)
    parts = [lo.emit({"kind": "sub"}, [low, change], shape), lo.emit({"kind": "add"}, [high, change], shape)]
    if line.rest:
        parts.append(take(lo, x, line.dim, line.rest))
    whole = list(shape)
    whole[line.dim] = sum(lo.shape_at(part)[line.dim] for part in parts)
    return lo.emit({"kind": "concat", "dim": line.dim}, parts, whole)


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
    """The first k of all, sorted; of the first one alone a tournament."""
    x, k = lo.use(a["self"]), int(a["k"])
    shape = lo.shape_at(x)
    if not shape:
        raise Decline("a number alone")
    dim = int(a["dim"]) % len(shape)
    sign = 1.0 if a["largest"] else -1.0
    if k == 1:
        one = [1 if d == dim else n for d, n in enumerate(shape)]
        value = largest(lo, x, [dim], one, sign) if lo.is_read(0) else None
        place = {"kind": "argmax", "dim": dim, "keepdim": True}
        return value, lo.emit(place, [mul_scalar(lo, x, sign)], one) if lo.is_read(1) else None
    return ordered(lo, x, dim, bool(a["largest"]), lo.is_read(1), k)


def ranked(lo: Lowering, a: Args, at: int) -> Value:
    """The element of a rank along a dimension, and where it is."""
    x = lo.use(a["self"])
    dim = int(a["dim"]) % len(lo.shape_at(x))
    value, where = ranked_line(lo, x, dim, at, lo.is_read(1))
    return reshape_to(lo, value, lo.shape), None if where is None else reshape_to(lo, where, lo.shape)


def ranked_line(lo: Lowering, x: int, dim: int, at: int, indices: bool) -> tuple[int, int | None]:
    """The same, along a dimension that is kept: from the nearer end."""
    n = lo.shape_at(x)[dim]
    count = min(at + 1, n - at)
    values, where = ordered(lo, x, dim, count < at + 1, indices, count)
    found = cut(lo, values, dim, count - 1, count)
    return found, None if where is None else cut(lo, where, dim, count - 1, count)


@op("aten.median.dim", "aten.nanmedian.dim")
def median(lo: Lowering, a: Args) -> Value:
    """The lower of the two in the middle."""
    return ranked(lo, a, (lo.shape_arg(a["self"])[int(a["dim"])] - 1) // 2)


@op("aten.kthvalue.default")
def kthvalue(lo: Lowering, a: Args) -> Value:
    """The k-th smallest."""
    return ranked(lo, a, int(a["k"]) - 1)


@op("aten.median.default", "aten.nanmedian.default")
def median_of_all(lo: Lowering, a: Args) -> Value:
    """The lower of the two in the middle of all elements."""
    x = lo.use(a["self"])
    n = int(torch.tensor(lo.shape_at(x)).prod())
    return reshape_to(lo, ranked_line(lo, reshape_to(lo, x, [n]), 0, (n - 1) // 2, False)[0], [])
