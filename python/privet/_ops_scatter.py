"""Elements put into places of another value: by slices and constant places, and back to where a maximum was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ._lowering import Args, Decline, Lowering, Movable, Value, op
from ._ops_compare import one_hot
from ._ops_convolution import several
from ._ops_gather import gathered
from ._ops_layers import expand_to, reshape_to
from ._ops_pointwise import mul_scalar

MOST_SUMMANDS = 1024
"""Most elements that are added up at one place."""


def known_places(lo: Lowering, *arguments: Any) -> None:
    """Refuse places that are private: a place of each element by comparisons would be another operation."""
    for argument in arguments:
        if argument is not None and lo.tensor(argument) is None:
            raise Decline("private places")


def total(lo: Lowering, parts: Sequence[int], shape: list[int]) -> int:
    """The sum of values, of which there is at least one."""
    found = parts[0]
    for part in parts[1:]:
        found = lo.emit({"kind": "add"}, [found, part], shape)
    return found


def merged(lo: Lowering, a: Args, *names: str) -> int:
    """What an operator that takes each element from one of several values makes of them.

    It is seen from what it does with their numbers: 1, 2, ... of the first, going on with the second.
    """
    shape, numbers, first = lo.shape, {}, {}
    count = 1
    for name in names:
        extents = lo.shape_arg(a[name])
        size = math.prod(extents)
        numbers[name] = torch.arange(count, count + size, dtype=torch.float64).reshape(extents)
        first[name], count = count, count + size
    origin = lo.apply(numbers).round().to(torch.int64)
    parts = []
    for name in names:
        places = origin - first[name]
        places = torch.where((places >= 0) & (places < numbers[name].numel()), places, -1)
        if bool((places >= 0).any()):
            parts += placed(lo, a[name], places)
    return total(lo, parts, shape) if parts else mul_scalar(lo, gathered(lo, lo.use(a[names[0]]), origin * 0), 0.0)


def placed(lo: Lowering, argument: Any, places: Tensor) -> list[int]:
    """The elements of an operand at flat places, zeros where there is none; nothing for zeros alone."""
    known = lo.tensor(argument)
    if known is None:
        return [gathered(lo, lo.use(argument), places)]
    tensor = torch.where(places >= 0, known.reshape(-1)[places.clamp(min=0)], torch.zeros((), dtype=known.dtype))
    if lo.is_literal(known):
        return [lo.use(lo.constant(tensor))] if bool((tensor != 0).any()) else []
    return [lo.use(lo.constant(tensor, f"{lo.name_of(known)}.placed{len(lo.graph.nodes)}"))]


def summed(lo: Lowering, x: int, targets: Tensor, out: list[int], lead: list[int]) -> int:
    """Elements of ``[*lead, *targets]`` added up at flat places of ``[*lead, *out]``; those below 0 are left out."""
    flat = targets.reshape(-1)
    order = torch.argsort(flat, stable=True)
    order = order[flat[order] >= 0]
    sorted_targets = flat[order]
    starts = torch.searchsorted(sorted_targets, sorted_targets)  # where the run of each place begins
    rank = torch.arange(len(order)) - starts
    rounds = int(rank.max()) + 1 if len(order) else 0
    if rounds > MOST_SUMMANDS:
        raise Decline(f"{rounds} elements that are added up at one place, at most {MOST_SUMMANDS}")
    size, extent, rows = math.prod(out), flat.numel(), math.prod(lead)
    x = reshape_to(lo, x, [*lead, extent])
    steps = torch.arange(rows).reshape(-1, 1) * extent
    parts = []
    for number in range(rounds):
        places = torch.full((size,), -1)
        now = rank == number
        places[sorted_targets[now]] = order[now]
        wide = torch.where(places < 0, places, places + steps).reshape([*lead, size])
        parts.append(gathered(lo, x, wide))
    if not parts:
        raise Decline("no elements at all")
    return reshape_to(lo, total(lo, parts, [*lead, size]), [*lead, *out])


# --- Slices and constant places ----------------------------------------------------------------------


@op("aten.copy.default")
def copy(lo: Lowering, a: Args) -> Value:
    """The source in the shape of what it is written to."""
    source = lo.dtype(a["src"])
    if source is not None and source.is_floating_point and not lo.result_dtype.is_floating_point:
        raise Decline("real numbers written into whole ones")
    return expand_to(lo, lo.use(a["src"]), lo.shape)


@op("aten.slice_scatter.default", "aten.select_scatter.default", "aten.diagonal_scatter.default")
def written(lo: Lowering, a: Args) -> Value:
    """A value of which a part is replaced."""
    return merged(lo, a, "self", "src")


@op("aten.scatter.src")
def scatter(lo: Lowering, a: Args) -> Value:
    """Elements of the source at constant places."""
    known_places(lo, a["index"])
    return merged(lo, a, "self", "src")


@op("aten.scatter.value")
def scatter_number(lo: Lowering, a: Args) -> Value:
    """A number at constant places."""
    known_places(lo, a["index"])
    index = lo.tensor(a["index"])
    assert index is not None
    kept = torch.ones(lo.shape).scatter(int(a["dim"]), index, 0.0)
    keep, added = (lo.use(lo.constant(t)) for t in (kept, (1.0 - kept) * float(a["value"])))
    node = lo.emit({"kind": "mul"}, [lo.use(a["self"]), keep], lo.shape)
    return lo.emit({"kind": "add"}, [node, added], lo.shape)


@op("aten.masked_scatter.default")
def masked_scatter(lo: Lowering, a: Args) -> Value:
    """Elements of the source, one after the other, where a constant mask holds."""
    known_places(lo, a["mask"])
    return merged(lo, a, "self", "source")


@op("aten.scatter_add.default")
def scatter_add(lo: Lowering, a: Args) -> Value:
    """Elements of the source added at constant places."""
    known_places(lo, a["index"])
    index = lo.tensor(a["index"])
    assert index is not None
    shape = lo.shape
    places = torch.arange(math.prod(shape)).reshape(shape).gather(int(a["dim"]), index)
    return added_at(lo, a["self"], part_of(lo, a["src"], list(index.shape)), places)


@op("aten.scatter_reduce.two")
def scatter_reduce(lo: Lowering, a: Args) -> Value:
    """Sums alone."""
    if a["reduce"] != "sum" or not a["include_self"]:
        raise Decline(f"reduce='{a['reduce']}'")
    return scatter_add(lo, a)


@op("aten.index_put.default")
def index_put(lo: Lowering, a: Args) -> Value:
    """Values at constant places, or added there."""
    known_places(lo, *a["indices"])
    if not a["accumulate"]:
        return merged(lo, a, "self", "values")
    shape = lo.shape
    index = tuple(slice(None) if i is None else lo.tensor(i) for i in a["indices"])
    places = torch.arange(math.prod(shape)).reshape(shape)[index]
    return added_at(lo, a["self"], expand_to(lo, lo.use(a["values"]), list(places.shape)), places)


def part_of(lo: Lowering, argument: Any, shape: list[int]) -> int:
    """The first elements of a value along each dimension."""
    from ._ops_shape import cut

    x = lo.use(argument)
    for dim, extent in enumerate(shape):
        x = cut(lo, x, dim, 0, extent)
    return x


def added_at(lo: Lowering, argument: Any, x: int, places: Tensor) -> int:
    """An operand with elements added at flat places."""
    shape = lo.shape
    found = summed(lo, x, places, shape, [])
    known = lo.tensor(argument)
    if known is not None and lo.is_literal(known) and not bool((known != 0).any()):
        return found
    return lo.emit({"kind": "add"}, [lo.use(argument), found], shape)


@op("aten.col2im.default")
def fold(lo: Lowering, a: Args) -> Value:
    """Windows added up where they came from, which is what unfolding numbers shows."""
    x, out = lo.use(a["self"]), lo.shape[-2:]
    image = torch.arange(1, math.prod(out) + 1, dtype=torch.float64).reshape(1, 1, *out)
    how = {k: several(a[k], 2) for k in ("kernel_size", "dilation", "padding", "stride")}
    windows = torch.nn.functional.unfold(image, **how)[0].round().to(torch.int64) - 1  # type: ignore[arg-type]
    return summed(lo, x, windows, list(out), lo.shape[:-2])


# --- Where maxima were -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places(Movable):
    """Where the maximum of each window was: one-hot rows, and the flat place of each element of a window."""

    hot: int
    """The node ``[..., windows, elements]``."""
    table: Tensor
    """``[windows, elements]``."""
    shape: list[int]
    """Shape of the indices."""
    extents: list[int]
    """Of the image that they are places of."""

    def number(self, lo: Lowering) -> int:
        """The flat places, as PyTorch counts them."""
        table = lo.use(lo.constant(self.table.to(torch.float32)))
        full = lo.shape_at(self.hot)
        rows = lo.emit({"kind": "mul"}, [self.hot, table], full)
        found = lo.emit({"kind": "sum", "dims": [len(full) - 1], "keepdim": False}, [rows], full[:-1])
        node = reshape_to(lo, found, self.shape)
        lo.bounds[node] = (0, math.prod(self.extents) - 1)
        return node

    def moved(self, lo: Lowering, operator: str, a: Args) -> Value:
        """Another shape of the same places; anything else computes with numbers."""
        if operator not in ("aten.unsqueeze.default", "aten.squeeze.dim", "aten.view.default", "aten.reshape.default"):
            raise Decline("places of maxima that are moved before they are used")
        return Places(self.hot, self.table, lo.shape, self.extents)


def window_places(extents: list[int], windows: list[list[list[int]]]) -> Tensor:
    """Flat places ``[windows, elements]`` of an image, for the places of each window along each dimension.

    A place outside of the image becomes another one of its window, which is there and cannot be the only largest.
    """
    outs = [len(axis) for axis in windows]
    most = [max(map(len, axis)) for axis in windows]
    rows = []
    for window in torch.cartesian_prod(*(torch.arange(n) for n in outs)).reshape(-1, len(outs)).tolist():
        places = []
        for element in torch.cartesian_prod(*(torch.arange(n) for n in most)).reshape(-1, len(most)).tolist():
            at = 0
            for d, extent in enumerate(extents):
                line = windows[d][window[d]]
                inside = element[d] < len(line) and 0 <= line[element[d]] < extent
                at = at * extent + line[element[d]] if inside and at >= 0 else -1
            places.append(at)
        first = next(p for p in places if p >= 0)
        rows.append([first if p < 0 else p for p in places])
    return torch.tensor(rows)


def places_of(lo: Lowering, x: int, windows: list[list[list[int]]], shape: list[int]) -> Places:
    """Where the maximum of each window of a value is."""
    dims = len(windows)
    given = lo.shape_at(x)
    lead, extents = given[:-dims], given[-dims:]
    table = window_places(extents, windows)
    steps = torch.arange(math.prod(lead)).reshape(-1, 1, 1) * math.prod(extents)
    full = [*lead, *table.shape]
    elements = gathered(lo, reshape_to(lo, x, [*lead, math.prod(extents)]), (table + steps).reshape(full))
    index = lo.emit({"kind": "argmax", "dim": len(full) - 1, "keepdim": False}, [elements], full[:-1])
    hot, _ = one_hot(lo, index, full[-1])
    return Places(hot, table, shape, extents)


@op("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def max_unpool(lo: Lowering, a: Args) -> Value:
    """Each value where the maximum of its window was, zeros elsewhere: a product with one-hot rows."""
    places = lo.value(a["indices"])
    if not isinstance(places, Places):
        raise Decline("places that are no indices of a max pool")
    if len(set(places.table.reshape(-1).tolist())) != places.table.numel():
        raise Decline("windows that overlap")
    x = lo.use(a["self"])
    hot = lo.shape_at(places.hot)
    rows = lo.emit({"kind": "mul"}, [reshape_to(lo, x, [*hot[:-1], 1]), places.hot], hot)
    lead = hot[:-2]
    dims = len(lo.shape) - len(lead)
    if math.prod(lo.shape[-dims:]) < math.prod(places.extents):
        raise Decline("a result that is smaller than what was pooled")
    return summed(lo, rows, places.table, lo.shape[-dims:], lead)
