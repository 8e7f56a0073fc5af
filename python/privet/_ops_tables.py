"""Tables of which several rows are added up, and tables whose rows are cut to a length."""

from __future__ import annotations

import torch

from ._inputs import Ids
from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_layers import reshape_to
from ._ops_order import largest
from ._ops_shape import cut

ADDED, AVERAGED, MOST = range(3)
"""torch's modes of a bag."""


@op("aten._embedding_bag.default", "aten.embedding_bag.padding_idx", "aten.embedding_bag.default")
def embedding_bag(lo: Lowering, a: Args) -> Value:
    """Sum, mean or maximum of a table's rows: one-hot rows are added up first, so that a bag is one product."""
    ids = lo.value(a["indices"])
    if not isinstance(ids, Ids):
        raise Decline("rows that are not looked up by an input of integers")
    offsets = lo.tensor(a["offsets"])
    if offsets is None:
        raise Decline("bags of private sizes")
    if a.get("padding_idx", -1) is not None and int(a.get("padding_idx", -1)) >= 0:
        raise Decline("a row that does not count")
    count = lo.shape_at(ids.node)[0]
    starts = [int(i) for i in offsets]
    stops = starts[1:] if a["include_last_offset"] else [*starts[1:], count]
    starts = starts[: len(stops)]
    table, mode = lo.use(a["weight"]), int(a["mode"])
    width = lo.shape_at(table)[1]
    if mode == MOST or a["per_sample_weights"] is not None:
        rows = ids.look_up(lo, table)
        if a["per_sample_weights"] is not None:
            column = reshape_to(lo, lo.use(a["per_sample_weights"]), [count, 1])
            rows = lo.emit({"kind": "mul"}, [rows, column], [count, width])
        found = bags(lo, rows, starts, stops, mode)
    else:
        found = Ids(bags(lo, ids.node, starts, stops, mode), ids.classes).look_up(lo, table)
    return found if lo.single_result else (found, None, None, None)


def bags(lo: Lowering, rows: int, starts: list[int], stops: list[int], mode: int) -> int:
    """Lines of a matrix, put together from one place to another."""
    width = lo.shape_at(rows)[1]
    parts = []
    sizes = {stop - start for start, stop in zip(starts, stops, strict=True)}
    if min(sizes) < 1:
        raise Decline("a bag of nothing")
    if len(sizes) == 1 and starts[0] == 0:
        shape = [len(starts), sizes.pop(), width]
        x = reshape_to(lo, cut(lo, rows, 0, 0, shape[0] * shape[1]), shape)
        groups = [(x, [len(starts), width], 1)]
    else:
        groups = [(cut(lo, rows, 0, b, e), [1, width], 0) for b, e in zip(starts, stops, strict=True)]
    for x, shape, dim in groups:
        if mode == MOST:
            parts.append(largest(lo, x, [dim], shape))
            continue
        kind = "sum" if mode == ADDED else "mean"
        total = lo.emit({"kind": kind, "dims": [dim], "keepdim": False}, [x], shape[:1] * dim + [width])
        parts.append(reshape_to(lo, total, shape))
    return parts[0] if len(parts) == 1 else lo.emit({"kind": "concat", "dim": 0}, parts, [len(parts), width])


@op("aten.embedding_renorm.default")
def renormed(lo: Lowering, a: Args) -> Value:
    """A table whose rows are at most so long: all of its rows, as those that are looked up are secret."""
    table = lo.tensor(a["self"])
    if table is None:
        raise Decline("a table that is computed")
    most = float(a["max_norm"])
    norms = table.norm(float(a["norm_type"]), dim=1, keepdim=True)
    rows = torch.where(norms > most, table * (most / (norms + 1e-7)), table)
    return lo.constant(rows, f"{lo.name_of(table)}.renormed")
