"""Operations that move elements without computing on them, and those that do nothing in evaluation mode."""

from __future__ import annotations

from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_layers import expand_to, permute, reshape_to

# --- Nothing to do -----------------------------------------------------------------------------------


@op(
    "aten.alias.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.detach.default",
    "aten.detach_.default",
    "aten.lift_fresh.default",
    "aten.lift_fresh_copy.default",
)
def same(lo: Lowering, a: Args) -> Value:
    """The operand itself."""
    return lo.use(a["self"])


@op(
    "aten.dropout.default",
    "aten.dropout_.default",
    "aten.feature_dropout.default",
    "aten.alpha_dropout.default",
    "aten.feature_alpha_dropout.default",
    "aten.native_dropout.default",
)
def dropout(lo: Lowering, a: Args) -> Value:
    """The operand itself, unless the model asks for dropout in evaluation mode too."""
    if a["train"]:
        raise Decline("dropout that stays active in evaluation mode")
    x = lo.use(a["input"])
    return x if lo.single_result else (x, None)


@op(
    "aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout", "aten.to.device", "aten.to.other",
    "aten.type_as.default",
)  # fmt: skip
def convert(lo: Lowering, a: Args) -> Value:
    """A change of device or type; to whole numbers by truncation, to bits by comparison."""
    wanted, given = lo.result_dtype, lo.dtype(a["self"])
    if wanted == torch.bool and given != torch.bool:
        from ._ops_compare import truth  # which needs this table

        return truth(lo, a["self"])
    if not wanted.is_floating_point and (given is None or given.is_floating_point):
        from ._ops_round import trunc_of  # the same

        return trunc_of(lo, lo.use(a["self"]))
    return lo.use(a["self"])


# --- Shape -------------------------------------------------------------------------------------------


@op(
    "aten.view.default",
    "aten._unsafe_view.default",
    "aten.reshape.default",
    "aten.flatten.using_ints",
    "aten.unflatten.int",
    "aten.unsqueeze.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
)
def reshape(lo: Lowering, a: Args) -> Value:
    """The same elements in the order of the operand."""
    return reshape_to(lo, lo.use(a["self"]), lo.shape)


@op("aten.expand.default", "aten.expand_as.default", "aten.broadcast_to.default")
def expand(lo: Lowering, a: Args) -> Value:
    """Broadcast to the result's shape."""
    return expand_to(lo, lo.use(a["self"]), lo.shape)


@op("aten.permute.default")
def permute_op(lo: Lowering, a: Args) -> Value:
    """Reorder dimensions."""
    x = lo.use(a["self"])
    rank = len(lo.shape_at(x))
    return permute(lo, x, [int(d) % rank for d in a["dims"]])


@op("aten.transpose.int", "aten.t.default", "aten.numpy_T.default")
def transpose(lo: Lowering, a: Args) -> Value:
    """Exchange two dimensions; ``t`` exchanges the only two."""
    x = lo.use(a["self"])
    rank = len(lo.shape_at(x))
    if rank < 2:
        return x
    dims = list(range(rank))
    i, j = int(a.get("dim0", 0)) % rank, int(a.get("dim1", 1)) % rank
    if "dim0" not in a and rank != 2:
        raise Decline("transpose without dimensions of more than a matrix")
    dims[i], dims[j] = dims[j], dims[i]
    return permute(lo, x, dims)


# --- Slicing -----------------------------------------------------------------------------------------


def cut(lo: Lowering, x: int, dim: int, start: int, end: int, step: int = 1) -> int:
    """``x[start:end:step]`` along a dimension, all within its extent."""
    shape = list(lo.shape_at(x))
    if start == 0 and end == shape[dim] and step == 1:
        return x
    shape[dim] = max(0, -(-(end - start) // step))
    return lo.emit({"kind": "slice", "dim": dim, "start": start, "end": end, "step": step}, [x], shape)


def clamp_index(value: Any, extent: int, default: int) -> int:
    """A slice bound as torch reads it: negative from the end, cut to the extent."""
    if value is None:
        return default
    return min(max(int(value) + extent if value < 0 else int(value), 0), extent)


@op("aten.slice.Tensor", "aten.narrow.default")
def slice_op(lo: Lowering, a: Args) -> Value:
    """Part of a dimension."""
    x = lo.use(a["self"])
    dim = int(a["dim"]) % len(lo.shape_at(x))
    extent = lo.shape_at(x)[dim]
    start = clamp_index(a["start"], extent, 0)
    end = start + int(a["length"]) if "length" in a else clamp_index(a["end"], extent, extent)
    return cut(lo, x, dim, start, max(start, end), int(a.get("step", 1)))


def pick(lo: Lowering, x: int, dim: int, index: int) -> int:
    """One index of a dimension, which goes away."""
    part = cut(lo, x, dim, index, index + 1)
    shape = list(lo.shape_at(x))
    del shape[dim]
    return reshape_to(lo, part, shape)


@op("aten.select.int")
def select(lo: Lowering, a: Args) -> Value:
    """``x[..., i, ...]``."""
    x = lo.use(a["self"])
    dim = int(a["dim"]) % len(lo.shape_at(x))
    return pick(lo, x, dim, int(a["index"]) % lo.shape_at(x)[dim])


@op("aten.unbind.int")
def unbind(lo: Lowering, a: Args) -> Value:
    """All indices of a dimension."""
    x = lo.use(a["self"])
    dim = int(a["dim"]) % len(lo.shape_at(x))
    return tuple(pick(lo, x, dim, i) for i in range(lo.shape_at(x)[dim]))


def pieces(lo: Lowering, x: int, dim: int, sizes: list[int]) -> Value:
    """Consecutive parts of a dimension."""
    dim %= len(lo.shape_at(x))
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(cut(lo, x, dim, s, s + n) for s, n in zip(starts, sizes, strict=True))


@op("aten.split.Tensor", "aten.chunk.default")
def split(lo: Lowering, a: Args) -> Value:
    """Parts of one size, the last one smaller."""
    x = lo.use(a["self"])
    extent = lo.shape_at(x)[int(a["dim"])]
    size = int(a["split_size"]) if "split_size" in a else -(-extent // int(a["chunks"]))
    return pieces(lo, x, int(a["dim"]), [min(size, extent - s) for s in range(0, extent, size)])


@op("aten.split_with_sizes.default", "aten.split.sizes")
def split_with_sizes(lo: Lowering, a: Args) -> Value:
    """Parts of given sizes."""
    sizes = a["split_sizes"] if "split_sizes" in a else a["split_size"]
    return pieces(lo, lo.use(a["self"]), int(a["dim"]), [int(s) for s in sizes])


# --- Joining and padding -----------------------------------------------------------------------------


@op("aten.cat.default", "aten.concat.default")
def cat(lo: Lowering, a: Args) -> Value:
    """Concatenation of what is not empty."""
    parts = [lo.use(t) for t in a["tensors"] if 0 not in lo.shape_arg(t)]
    if len(parts) == 1:
        return parts[0]
    return lo.emit({"kind": "concat", "dim": int(a["dim"]) % len(lo.shape)}, parts, lo.shape)


@op("aten.stack.default")
def stack(lo: Lowering, a: Args) -> Value:
    """Concatenation along a new dimension."""
    dim = int(a["dim"]) % len(lo.shape)
    shape = [1 if i == dim else extent for i, extent in enumerate(lo.shape)]
    parts = [reshape_to(lo, lo.use(t), shape) for t in a["tensors"]]
    return parts[0] if len(parts) == 1 else lo.emit({"kind": "concat", "dim": dim}, parts, lo.shape)


@op("aten.repeat.default")
def repeat(lo: Lowering, a: Args) -> Value:
    """Copies side by side: concatenation of a value with itself."""
    repeats = [int(r) for r in a["repeats"]]
    x = lo.use(a["self"])
    x = reshape_to(lo, x, [1] * (len(repeats) - len(lo.shape_at(x))) + lo.shape_at(x))
    for dim, count in enumerate(repeats):
        if count == 0:
            raise Decline("no copies at all")
        if count > 1:
            shape = list(lo.shape_at(x))
            shape[dim] *= count
            x = lo.emit({"kind": "concat", "dim": dim}, [x] * count, shape)
    return x


@op("aten.pad.default", "aten.constant_pad_nd.default")
def pad(lo: Lowering, a: Args) -> Value:
    """Padding by a number or by the operand's own elements, from the last dimension back; negative amounts cut."""
    x = lo.use(a["self"])
    if a.get("mode", "constant") != "constant":
        from ._ops_gather import pad_lines  # which is made of slices, and so comes after this module

        return pad_lines(lo, x, [int(v) for v in a["pad"]], a["mode"])
    rank = len(lo.shape_at(x))
    amounts = [[0, 0] for _ in range(rank)]
    given = [int(v) for v in a["pad"]]
    for i in range(0, len(given), 2):
        amounts[rank - 1 - i // 2] = given[i : i + 2]
    for dim, (before, after) in enumerate(amounts):
        extent = lo.shape_at(x)[dim]
        x = cut(lo, x, dim, max(-before, 0), extent - max(-after, 0))
    amounts = [[max(before, 0), max(after, 0)] for before, after in amounts]
    if not any(map(any, amounts)):
        return x
    padded = lo.emit({"kind": "pad", "amounts": amounts}, [x], lo.shape)
    value = float(a.get("value") or 0.0)
    if value == 0:
        return padded
    around = torch.full(lo.shape, value)
    around[tuple(slice(b, e - after) for (b, after), e in zip(amounts, lo.shape, strict=True))] = 0.0
    return lo.emit({"kind": "add"}, [padded, lo.use(lo.constant(around))], lo.shape)


@op("aten.pixel_shuffle.default")
def pixel_shuffle(lo: Lowering, a: Args) -> Value:
    """Channels into pixels."""
    x, r = lo.use(a["self"]), int(a["upscale_factor"])
    n, c, h, w = lo.shape_at(x)
    split_up = reshape_to(lo, x, [n, c // (r * r), r, r, h, w])
    return reshape_to(lo, permute(lo, split_up, [0, 1, 4, 2, 5, 3]), lo.shape)
