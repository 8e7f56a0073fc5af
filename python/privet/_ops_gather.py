"""Elements in another order, repeated or left out: by constant places, and by private ones along one dimension."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ._inputs import Ids
from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_compare import one_hot
from ._ops_layers import expand_to, matmul_values, permute, reshape_to
from ._ops_shape import cut

MOST_PIECES = 4096
"""Most slices that one operation becomes; a constant matrix where there were more."""
MOST_MATRIX = 1 << 24
"""Most elements of that matrix."""


def runs(places: list[int]) -> list[tuple[int, int, int]]:
    """``(first, count, step)`` of what is evenly spaced; a place of -1 is a zero, and so are those after it."""
    found: list[tuple[int, int, int]] = []
    at = 0
    while at < len(places):
        first, count = places[at], 1
        step = places[at + 1] - first if at + 1 < len(places) and min(first, places[at + 1]) >= 0 else 0
        if first < 0:
            while at + count < len(places) and places[at + count] < 0:
                count += 1
        else:
            while at + count < len(places) and places[at + count] == first + count * step and places[at + count] >= 0:
                count += 1
        found.append((first, count, step if count > 1 else 1))
        at += count
    return found


def take(lo: Lowering, x: int, dim: int, places: list[int]) -> int:
    """``x`` at constant places along a dimension: slices put together; -1 gives zeros."""
    shape = list(lo.shape_at(x))
    if places == list(range(shape[dim])):
        return x
    pieces = runs(places)
    if len(pieces) > MOST_PIECES:
        if len(places) * shape[dim] > MOST_MATRIX:
            raise Decline(f"constant indices in {len(pieces)} pieces")
        matrix = torch.zeros(len(places), shape[dim])
        for row, place in enumerate(places):
            if place >= 0:
                matrix[row, place] = 1.0
        return along(lo, x, dim, matrix)
    parts = [piece(lo, x, dim, *p) for p in pieces]
    if len(parts) == 1:
        return parts[0]
    shape[dim] = len(places)
    return lo.emit({"kind": "concat", "dim": dim}, parts, shape)


def piece(lo: Lowering, x: int, dim: int, first: int, count: int, step: int) -> int:
    shape = list(lo.shape_at(x))
    if first < 0:
        shape[dim] = count
        zero = lo.emit(
            {"kind": "mul_scalar", "value": 0.0}, [cut(lo, x, dim, 0, 1)], [*shape[:dim], 1, *shape[dim + 1 :]]
        )
        return expand_to(lo, zero, shape)
    if step == 0:
        shape[dim] = count
        return expand_to(lo, cut(lo, x, dim, first, first + 1), shape)
    if step > 0:
        return cut(lo, x, dim, first, first + (count - 1) * step + 1, step)
    part = cut(lo, x, dim, first + (count - 1) * step, first + 1, -step)
    return lo.emit({"kind": "reverse", "dims": [dim]}, [part], lo.shape_at(part))


def along(lo: Lowering, x: int, dim: int, matrix: Tensor) -> int:
    """A constant matrix ``[out, in]`` times each line along a dimension."""
    rank = len(lo.shape_at(x))
    order = [d for d in range(rank) if d != dim] + [dim]
    moved = x if dim == rank - 1 else permute(lo, x, order)
    weight = lo.use(lo.constant(matrix.to(torch.float32)))
    found = lo.emit({"kind": "linear"}, [moved, weight], [*lo.shape_at(moved)[:-1], matrix.shape[0]])
    if dim == rank - 1:
        return found
    back = [order.index(d) for d in range(rank)]
    return permute(lo, found, back)


def lines(lo: Lowering, x: int, dim: int, matrix: Tensor) -> int:
    """The same; slices where every row picks one element or none."""
    picks = ((matrix == 0) | (matrix == 1)).all() and (matrix.sum(1) <= 1).all()
    if bool(picks):
        places = [int(row.argmax()) if bool(row.any()) else -1 for row in matrix]
        return take(lo, x, dim, places)
    return along(lo, x, dim, matrix)


def gathered(lo: Lowering, x: int, places: Tensor) -> int:
    """The elements of x at flat places, of any shape; -1 gives zeros.

    Leading and trailing dimensions that keep their place are left out, so that only what moves is sliced.
    """
    shape, out = list(lo.shape_at(x)), list(places.shape)
    lead = 0
    flat = places
    size = int(torch.tensor(shape).prod()) if shape else 1
    while lead < min(len(shape), len(out)) - 1 and shape[lead] == out[lead]:
        inner = size // shape[lead]
        steps = torch.arange(shape[lead]).reshape([-1] + [1] * (flat.dim() - 1)) * inner
        same = torch.where(flat[:1] < 0, flat[:1], flat[:1] + steps)
        if not torch.equal(same, flat):
            break
        flat, size, lead = flat[0], inner, lead + 1
    tail = 0
    width = 1
    while tail < min(len(shape), len(out)) - lead - 1 and shape[-1 - tail] == out[-1 - tail]:
        wider = width * shape[-1 - tail]
        rows = flat.reshape(-1, wider)
        if not bool(
            ((rows[:, :1] >= 0) & (rows == rows[:, :1] + torch.arange(wider)) & (rows[:, :1] % wider == 0)).all()
        ):
            break
        width, tail = wider, tail + 1
    chosen = flat.reshape(-1, width)[:, 0]
    chosen = torch.where(chosen < 0, chosen, chosen // width)
    line = reshape_to(lo, x, [*shape[:lead], size // width, width])
    taken = take(lo, line, lead, chosen.tolist())
    return reshape_to(lo, taken, out)


def moved(lo: Lowering, name: str, argument: Any) -> int:
    """What an operator that only moves elements makes of a value: seen from what it does with their numbers."""
    x = lo.use(argument)
    shape = lo.shape_at(x)
    numbers = torch.arange(1, int(torch.tensor(shape).prod()) + 1, dtype=torch.float64).reshape(shape)
    result = lo.apply({name: numbers})
    if not isinstance(result, Tensor):
        raise Decline("several results")
    return gathered(lo, x, result.round().to(torch.int64) - 1)


@op(
    "aten.diagonal.default",
    "aten.tril.default",
    "aten.triu.default",
    "aten.diag_embed.default",
    "aten.unfold.default",
    "aten.rot90.default",
    "aten.im2col.default",
    "aten.as_strided.default",
    "aten.pixel_unshuffle.default",
    "aten.channel_shuffle.default",
    "aten.repeat_interleave.self_int",
    "aten.diagonal_copy.default",
)
def rearranged(lo: Lowering, a: Args) -> Value:
    """Elements at constant places."""
    return moved(lo, "input" if "input" in a else "self", a["input"] if "input" in a else a["self"])


@op("aten.flip.default")
def flip(lo: Lowering, a: Args) -> Value:
    """The elements of some dimensions in reverse order."""
    x = lo.use(a["self"])
    dims = sorted(int(d) % len(lo.shape_at(x)) for d in a["dims"])
    return lo.emit({"kind": "reverse", "dims": dims}, [x], lo.shape_at(x)) if dims else x


@op("aten.roll.default")
def roll(lo: Lowering, a: Args) -> Value:
    """Two slices a dimension, in the other order."""
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    shifts = [a["shifts"]] if isinstance(a["shifts"], int) else list(a["shifts"])
    dims = [a["dims"]] if isinstance(a["dims"], int) else list(a["dims"] or [])
    flat = not dims
    node = reshape_to(lo, x, [int(torch.tensor(shape).prod())]) if flat else x
    for shift, dim in zip(shifts, dims or [0], strict=True):
        extent = lo.shape_at(node)[dim]
        node = take(lo, node, int(dim) % len(lo.shape_at(node)), [(i - shift) % extent for i in range(extent)])
    return reshape_to(lo, node, shape)


@op("aten.cumsum.default")
def cumsum(lo: Lowering, a: Args) -> Value:
    """Sums of the first 1, 2, 4, ... elements before each: additions alone."""
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    if not shape:
        return x
    dim = int(a["dim"]) % len(shape)
    step = 1
    while step < shape[dim]:
        amounts = [[step, 0] if d == dim else [0, 0] for d in range(len(shape))]
        part = cut(lo, x, dim, 0, shape[dim] - step)
        later = lo.emit({"kind": "pad", "amounts": amounts}, [part], shape)
        x = lo.emit({"kind": "add"}, [x, later], shape)
        step *= 2
    return x


# --- Padding -----------------------------------------------------------------------------------------


def pad_places(mode: str, extent: int, before: int, after: int) -> list[int]:
    """Where each element of a padded line comes from."""
    places = []
    for i in range(-before, extent + after):
        if mode == "circular":
            places.append(i % extent)
        elif mode == "replicate":
            places.append(min(max(i, 0), extent - 1))
        else:
            i = abs(i)
            places.append(i if i < extent else 2 * (extent - 1) - i)
    return places


def pad_lines(lo: Lowering, x: int, given: list[int], mode: str) -> int:
    """Padding by the operand's own elements, from the last dimension back."""
    rank = len(lo.shape_at(x))
    for i, (before, after) in enumerate(zip(given[::2], given[1::2], strict=True)):
        dim = rank - 1 - i
        x = take(lo, x, dim, pad_places(mode, lo.shape_at(x)[dim], before, after))
    return x


@op(*(f"aten.{m}_pad{d}d.default" for m in ("reflection", "replication") for d in (1, 2, 3)))
def pad_by_itself(lo: Lowering, a: Args) -> Value:
    """Reflected or repeated borders."""
    mode = "reflect" if "reflection" in str(lo.operator) else "replicate"
    return pad_lines(lo, lo.use(a["self"]), [int(v) for v in a["padding"]], mode)


# --- Places that are constants, or private along one dimension -----------------------------------------


@op("aten.gather.default")
def gather(lo: Lowering, a: Args) -> Value:
    """``x[..., index, ...]``: constant places; or one-hot rows of a private index, times x."""
    known = lo.tensor(a["index"])
    if known is not None:
        return moved(lo, "self", a["self"])
    table = lo.tensor(a["self"])
    if table is not None and table.dim():
        line = table.narrow(int(a["dim"]), 0, 1)
        if bool((table == line).all()):  # the same at every place
            name = None if lo.is_literal(table) else f"{lo.name_of(table)}.line"
            return lo.constant(line.expand(lo.shape).contiguous(), name)
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    dim = int(a["dim"]) % len(shape)
    lead = [n for d, n in enumerate(shape) if d != dim]
    if [n for d, n in enumerate(lo.shape) if d != dim] != lead:
        raise Decline("a private index of another shape")
    order = [d for d in range(len(shape)) if d != dim] + [dim]
    index = lo.value(a["index"])
    if isinstance(index, Ids) and index.classes == shape[dim]:
        rows = permute(lo, index.node, [*order, len(shape)])
    else:
        rows = picked(lo, permute(lo, lo.use(a["index"]), order), shape[dim])  # [..., count, extent]
    lines_of = permute(lo, x, order)
    column = reshape_to(lo, lines_of, [*lead, shape[dim], 1])
    count = lo.shape[dim]
    found = reshape_to(lo, matmul_values(lo, rows, column, [*lead, count, 1]), [*lead, count])
    return permute(lo, found, [order.index(d) for d in range(len(shape))])


def picked(lo: Lowering, index: int, extent: int) -> int:
    """One-hot rows of all places of a dimension."""
    found, first = one_hot(lo, index, extent)
    count = lo.shape_at(found)[-1]
    if count == extent:
        return found
    none = [[0, 0] for _ in lo.shape_at(index)]
    amounts = [*none, [first, extent - first - count]]
    return lo.emit({"kind": "pad", "amounts": amounts}, [found], [*lo.shape_at(index), extent])


@op("aten.index_select.default", "aten.index.Tensor", "aten.take.default")
def index(lo: Lowering, a: Args) -> Value:
    """Constant indices; or one private index a row, beside the numbers of the rows."""
    given = [a["index"]] if "index" in a else [i for i in a["indices"] if i is not None]
    if all(lo.tensor(i) is not None for i in given):
        x = lo.use(a["self"])
        dims = [d for d, i in enumerate(a.get("indices", [])) if i is not None]
        if "dim" in a or (len(dims) == 1 and lo.tensor(given[0]).dim() == 1):  # type: ignore[union-attr]
            dim = int(a["dim"]) % len(lo.shape_at(x)) if "dim" in a else dims[0]
            which = lo.tensor(given[0])
            assert which is not None
            places = torch.nonzero(which).reshape(-1) if which.dtype == torch.bool else which
            extent = lo.shape_at(x)[dim]
            return take(lo, x, dim, [int(i) % extent for i in places.reshape(-1)])
        return moved(lo, "self", a["self"])
    indices = a.get("indices")
    if len(given) == 1 and (indices is None or len(indices) == 1):
        return looked_up_along(lo, a["self"], given[0], 0 if indices is not None else int(a["dim"]))
    if indices is None or len(indices) != 2 or any(i is None for i in indices):
        raise Decline("private indices along more than one dimension")
    rows, at = lo.tensor(indices[0]), lo.use(indices[1])
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    if rows is None or rows.tolist() != list(range(shape[0])) or lo.shape_at(at) != [shape[0]]:
        raise Decline("private indices along more than one dimension")
    hot = picked(lo, at, shape[1])
    rest = shape[2:]
    width = int(torch.tensor(rest).prod()) if rest else 1
    table = reshape_to(lo, x, [shape[0], shape[1], width])
    one = reshape_to(lo, hot, [shape[0], 1, shape[1]])
    return reshape_to(lo, matmul_values(lo, one, table, [shape[0], 1, width]), lo.shape)


def looked_up_along(lo: Lowering, argument: Any, index: Any, dim: int) -> int:
    """Whole slices of a value along one dimension, at private places."""
    if lo.dtype(index) == torch.bool:
        raise Decline("as many elements as a private mask keeps")
    x, value = lo.use(argument), lo.value(index)
    shape = lo.shape_at(x)
    dim %= len(shape)
    hot = (
        value.node if isinstance(value, Ids) and value.classes == shape[dim] else picked(lo, lo.use(index), shape[dim])
    )
    places = lo.shape_at(hot)[:-1]
    order = [dim, *(d for d in range(len(shape)) if d != dim)]
    rest = [shape[d] for d in order[1:]]
    table = reshape_to(lo, permute(lo, x, order) if dim else x, [shape[dim], math.prod(rest)])
    flat = reshape_to(lo, hot, [math.prod(places), shape[dim]])
    found = matmul_values(lo, flat, table, [math.prod(places), math.prod(rest)])
    if dim == 0:
        return reshape_to(lo, found, [*places, *rest])
    found = reshape_to(lo, found, [math.prod(places), *rest])
    back = [*range(1, dim + 1), 0, *range(dim + 1, len(shape))]
    return reshape_to(lo, permute(lo, found, back), lo.shape)


# --- Resampling --------------------------------------------------------------------------------------


def resample(lo: Lowering, a: Args, name: str) -> int:
    """A constant matrix for every image axis: what the operator makes of each line's unit vectors."""
    x = lo.use(a[name])
    spatial = lo.shape[2:]
    for axis in range(len(spatial)):
        dim = axis + 2
        now = lo.shape_at(x)
        extents = lo.shape_arg(a[name])[2:]
        units = torch.eye(extents[axis]).reshape(
            [extents[axis], 1, *(extents[axis] if i == axis else 1 for i in range(len(extents)))]
        )
        images = units.expand(extents[axis], 1, *extents).contiguous()
        result = lo.apply({name: images})
        result = result[0] if isinstance(result, (tuple, list)) else result
        at: list[Any] = [slice(None), 0, *(slice(None) if i == axis else 0 for i in range(len(extents)))]
        matrix = result[tuple(at)].t()
        if now[dim] != matrix.shape[1]:
            raise Decline("a resampling that does not treat its axes apart")
        x = lines(lo, x, dim, matrix)
    return x


@op(
    *(f"aten.upsample_{m}.{v}" for m in ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "bicubic2d",
      "trilinear3d") for v in ("vec", "default")),
    *(f"aten._upsample_{m}.{v}" for m in ("nearest_exact1d", "nearest_exact2d", "nearest_exact3d", "bilinear2d_aa",
      "bicubic2d_aa") for v in ("vec", "default")),
)  # fmt: skip
def upsample(lo: Lowering, a: Args) -> Value:
    """Nearest neighbours by whole factors move elements alone; else matrices."""
    name = "input" if "input" in a else "self"
    shape, out = lo.shape_arg(a[name]), lo.shape
    factors = [o // i for o, i in zip(out[2:], shape[2:], strict=True)]
    whole = all(o == i * f for o, i, f in zip(out[2:], shape[2:], factors, strict=True))
    if "nearest" not in str(lo.operator) or not whole:
        return resample(lo, a, name)
    x = lo.use(a[name])
    split = [*shape[:2], *(n for i in shape[2:] for n in (i, 1))]
    wide = [*shape[:2], *(n for i, f in zip(shape[2:], factors, strict=True) for n in (i, f))]
    return reshape_to(lo, expand_to(lo, reshape_to(lo, x, split), wide), out)
