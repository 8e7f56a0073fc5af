"""Matrix products, reductions, and the layouts that layers need."""

from __future__ import annotations

import math
from typing import Any

from ._lowering import Args, Decline, Lowering, Value, op
from .graph import Op


def pair(value: Any) -> list[int]:
    """torch's ``[3]`` or ``[3, 3]`` as two numbers."""
    values = [int(v) for v in value]
    return values * 2 if len(values) == 1 else values


def reshape_to(lo: Lowering, node: int, shape: list[int]) -> int:
    """The same elements in another shape; nothing where the shape is the same."""
    return node if lo.shape_at(node) == shape else lo.emit({"kind": "reshape"}, [node], shape)


def expand_to(lo: Lowering, node: int, shape: list[int]) -> int:
    """Broadcast to a shape; nothing where it is the same."""
    return node if lo.shape_at(node) == shape else lo.emit({"kind": "expand"}, [node], shape)


def permute(lo: Lowering, node: int, dims: list[int]) -> int:
    """Reorder dimensions."""
    shape = [lo.shape_at(node)[d] for d in dims]
    return lo.emit({"kind": "permute", "dims": dims}, [node], shape)


def dims_of(dims: Any, rank: int) -> list[int]:
    """Dimensions as sorted non-negative numbers; none given means all."""
    if dims is None or dims == []:
        return list(range(rank))
    dims = [dims] if isinstance(dims, int) else dims
    return sorted(int(d) % rank for d in dims)


# --- Products ------------------------------------------------------------------------


@op("aten.linear.default")
def linear(lo: Lowering, a: Args) -> Value:
    """``x W^T + b``; a weight computed from the input becomes a matrix product."""
    x, w = lo.use(a["input"]), lo.use(a["weight"])
    bias = [] if a["bias"] is None else [lo.use(a["bias"])]
    if lo.tensor(a["weight"]) is not None:
        return lo.emit({"kind": "linear"}, [x, w, *bias], lo.shape)
    out = matmul_values(lo, x, permute(lo, w, [1, 0]), lo.shape)
    return lo.emit({"kind": "add"}, [out, *bias], lo.shape) if bias else out


@op("aten.matmul.default", "aten.mm.default", "aten.bmm.default", "aten.mv.default", "aten.dot.default")
def matmul(lo: Lowering, a: Args) -> Value:
    """Matrix product with numpy's rules; by a constant matrix it is a linear layer."""
    x, y = a["self"], next(a[k] for k in ("other", "mat2", "vec", "tensor") if k in a)
    return product(lo, x, y, None)


@op("aten.addmm.default", "aten.addmv.default")
def addmm(lo: Lowering, a: Args) -> Value:
    """``beta * c + alpha * x y``."""
    x, y = (a["mat1"], a["mat2"]) if "mat1" in a else (a["mat"], a["vec"])
    if a["alpha"] == 1 and a["beta"] == 1:
        return product(lo, x, y, a["self"])
    parts = [(a["self"], float(a["beta"])), (product(lo, x, y, None), float(a["alpha"]))]
    nodes = [times(lo, n if isinstance(n, int) else lo.use(n), factor) for n, factor in parts]
    return lo.emit({"kind": "add"}, nodes, lo.shape)


def times(lo: Lowering, x: int, factor: float) -> int:
    """A public factor."""
    return x if factor == 1 else lo.emit({"kind": "mul_scalar", "value": factor}, [x], lo.shape_at(x))


@op("aten.bilinear.default")
def bilinear(lo: Lowering, a: Args) -> Value:
    """``x^T W_o y + b_o`` for every output o: a product with all W at once, then one with y."""
    x, y, weight = lo.use(a["input1"]), lo.use(a["input2"]), lo.tensor(a["weight"])
    if weight is None:
        raise Decline("a weight computed from the input")
    outputs, left, right = weight.shape
    lines = weight.transpose(1, 2).reshape(outputs * right, left).contiguous()
    w = lo.use(lo.constant(lines, f"{lo.name_of(weight)}.lines"))
    lead = lo.shape[:-1]
    first = reshape_to(lo, lo.emit({"kind": "linear"}, [x, w], [*lead, outputs * right]), [*lead, outputs, right])
    found = reshape_to(
        lo, matmul_values(lo, first, reshape_to(lo, y, [*lead, right, 1]), [*lead, outputs, 1]), lo.shape
    )
    return found if a["bias"] is None else lo.emit({"kind": "add"}, [found, lo.use(a["bias"])], lo.shape)


def product(lo: Lowering, x: Any, y: Any, bias: Any) -> int:
    """``x y + bias``, as a linear layer where y is a constant matrix and bias a constant vector."""
    y_known, b_known = lo.tensor(y), lo.tensor(bias) if bias is not None else None
    vector_bias = bias is None or (b_known is not None and b_known.dim() == 1 and b_known.shape[0] == lo.shape[-1])
    if lo.tensor(x) is None and y_known is not None and y_known.dim() == 2 and vector_bias:
        name = f"{lo.name_of(y_known)}.t"
        w = lo.use(lo.constant(y_known.t().contiguous(), name))
        extra = [] if bias is None else [lo.use(bias)]
        return lo.emit({"kind": "linear"}, [lo.use(x), w, *extra], lo.shape)
    out = matmul_values(lo, lo.use(x), lo.use(y), lo.shape)
    return out if bias is None else lo.emit({"kind": "add"}, [out, lo.use(bias)], lo.shape)


def broadcast_shape(xs: list[int], ys: list[int]) -> list[int]:
    """The common shape of two operands by numpy's rules; torch has checked that there is one."""
    rank = max(len(xs), len(ys))
    left, right = ([1] * (rank - len(s)) + s for s in (xs, ys))
    return [b if a == 1 else a for a, b in zip(left, right, strict=True)]


def matmul_values(lo: Lowering, x: int, y: int, shape: list[int]) -> int:
    """Product of two values of any rank, brought to equal leading dimensions first."""
    xs, ys = lo.shape_at(x), lo.shape_at(y)
    if len(xs) == 1:
        x, xs = reshape_to(lo, x, [1, *xs]), [1, *xs]
    if len(ys) == 1:
        y, ys = reshape_to(lo, y, [*ys, 1]), [*ys, 1]
    if len(ys) == 2 and len(xs) > 2:  # one matrix for all: its own product, which a weight is masked for once a session
        x, xs = reshape_to(lo, x, [math.prod(xs[:-1]), xs[-1]]), [math.prod(xs[:-1]), xs[-1]]
    lead = broadcast_shape(xs[:-2], ys[:-2])
    x = expand_to(lo, x, [*lead, *xs[-2:]])
    y = expand_to(lo, y, [*lead, *ys[-2:]])
    out = lo.emit({"kind": "mat_mul"}, [x, y], [*lead, xs[-2], ys[-1]])
    return reshape_to(lo, out, shape)


# --- Reductions --------------------------------------------------------------------------------------


def reduction(lo: Lowering, a: Args, kind: str) -> Value:
    """Mean or sum over dimensions (all of them where none are named)."""
    x = lo.use(a["self"])
    rank = len(lo.shape_at(x))
    if rank == 0:
        return x
    node: Op = {"kind": kind, "dims": dims_of(a.get("dim"), rank), "keepdim": bool(a.get("keepdim", False))}
    return lo.emit(node, [x], lo.shape)


@op("aten.mean.default", "aten.mean.dim")
def mean(lo: Lowering, a: Args) -> Value:
    """Mean over dimensions."""
    return reduction(lo, a, "mean")


@op("aten.sum.default", "aten.sum.dim_IntList")
def total(lo: Lowering, a: Args) -> Value:
    """Sum over dimensions."""
    return reduction(lo, a, "sum")
