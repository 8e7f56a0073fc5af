"""Layers: convolution, matrix products, normalisation, pooling, reductions."""

from __future__ import annotations

from typing import Any

import torch

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


# --- Convolution and products ------------------------------------------------------------------------


@op("aten.conv2d.default", "aten.conv2d.padding")
def conv2d(lo: Lowering, a: Args) -> Value:
    """NCHW convolution; ``padding="same"`` is split left and right as torch does."""
    if len(lo.shape) != 4:
        raise Decline("input without a batch dimension")
    return convolve(lo, a)


def convolve(lo: Lowering, a: Args) -> int:
    """Emit a convolution from arguments in conv2d's naming."""
    x, w = lo.use(a["input"]), lo.use(a["weight"])
    kernel, dilation = lo.shape_at(w)[2:], pair(a["dilation"])
    padding = [0, 0] if a["padding"] == "valid" else a["padding"]
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        padding = [t // 2 for t in total]
        extra = [t % 2 for t in total]  # torch puts the odd one below and to the right
        if any(extra):
            n, c, height, width = lo.shape_at(x)
            amounts = [[0, 0], [0, 0], [0, extra[0]], [0, extra[1]]]
            # The symmetric part stays with the convolution: only the extra row and column are explicit.
            x = lo.emit({"kind": "pad", "amounts": amounts}, [x], [n, c, height + extra[0], width + extra[1]])
    node: Op = {
        "kind": "conv2d",
        "stride": pair(a["stride"]),
        "padding": pair(padding),
        "dilation": dilation,
        "groups": int(a["groups"]),
    }
    bias = [] if a["bias"] is None else [lo.use(a["bias"])]
    return lo.emit(node, [x, w, *bias], lo.shape)


@op("aten.convolution.default")
def convolution(lo: Lowering, a: Args) -> Value:
    """The general form; only two-dimensional and not transposed."""
    if a["transposed"]:
        raise Decline("transposed convolution")
    if len(lo.shape) != 4:
        raise Decline("not two-dimensional")
    return convolve(lo, a)


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


@op("aten.addmm.default")
def addmm(lo: Lowering, a: Args) -> Value:
    """``beta * c + alpha * x y``."""
    if a["alpha"] != 1 or a["beta"] != 1:
        raise Decline("alpha or beta other than 1")
    return product(lo, a["mat1"], a["mat2"], a["self"])


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
    lead = broadcast_shape(xs[:-2], ys[:-2])
    x = expand_to(lo, x, [*lead, *xs[-2:]])
    y = expand_to(lo, y, [*lead, *ys[-2:]])
    out = lo.emit({"kind": "mat_mul"}, [x, y], [*lead, xs[-2], ys[-1]])
    return reshape_to(lo, out, shape)


# --- Normalisation -----------------------------------------------------------------------------------


@op("aten._native_batch_norm_legit_no_training.default")
def batch_norm_eval(lo: Lowering, a: Args) -> Value:
    """Evaluation-mode BatchNorm; missing gamma and beta are ones and zeros."""
    x = lo.use(a["input"])
    channels = lo.shape_at(x)[1]
    mean, variance = a["running_mean"], a["running_var"]
    gamma = lo.constant(torch.ones(channels)) if a["weight"] is None else a["weight"]
    beta = lo.constant(torch.zeros(channels)) if a["bias"] is None else a["bias"]
    operands = [lo.use(t) for t in (gamma, beta, mean, variance)]
    out = lo.emit({"kind": "batch_norm", "eps": float(a["eps"])}, [x, *operands], lo.shape)
    return (out, None, None)


@op(
    "aten.batch_norm.default",
    "aten._native_batch_norm_legit.default",
    "aten._native_batch_norm_legit.no_stats",
    "aten._native_batch_norm_legit_functional.default",
    "aten.native_batch_norm.default",
)
def batch_norm(lo: Lowering, a: Args) -> Value:
    """BatchNorm with a training flag or without running statistics."""
    if a.get("training") or a.get("running_mean") is None:
        raise Decline("statistics of the batch instead of running statistics")
    out = batch_norm_eval(lo, a)
    assert isinstance(out, tuple)
    return out[0] if lo.single_result else out


# --- Pooling -----------------------------------------------------------------------------------------


def window(a: Args, dilation: Any) -> dict[str, Any]:
    """A pooling window in the planner's naming."""
    kernel = pair(a["kernel_size"])
    return {
        "kernel": kernel,
        "stride": pair(a["stride"]) if a["stride"] else kernel,
        "padding": pair(a["padding"]),
        "dilation": pair(dilation),
        "ceil_mode": bool(a["ceil_mode"]),
    }


def images(lo: Lowering, argument: Any, emit: Any) -> int:
    """Run a pooling on NCHW, adding the batch dimension where the model has none."""
    x, shape = lo.use(argument), lo.shape
    if len(shape) == 4:
        return int(emit(x, shape))
    if len(shape) != 3:
        raise Decline("not two-dimensional")
    return reshape_to(lo, emit(reshape_to(lo, x, [1, *lo.shape_at(x)]), [1, *shape]), shape)


@op("aten.max_pool2d.default", "aten.max_pool2d_with_indices.default")
def max_pool2d(lo: Lowering, a: Args) -> Value:
    """Maximum over windows; the indices are not available."""
    node: Op = {"kind": "max_pool2d", "window": window(a, a["dilation"])}
    out = images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape))
    return out if lo.single_result else (out, Decline("indices of the maxima"))


@op("aten.avg_pool2d.default")
def avg_pool2d(lo: Lowering, a: Args) -> Value:
    """Mean over windows."""
    divisor = a["divisor_override"]
    if divisor is not None and divisor <= 0:
        raise Decline("divisor below 1")
    node: Op = {"kind": "avg_pool2d", "window": window(a, [1, 1]), "count_include_pad": bool(a["count_include_pad"])}
    if divisor is not None:
        node["divisor"] = int(divisor)
    return images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape))


@op("aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(lo: Lowering, a: Args) -> Value:
    """Mean over adaptive windows."""
    node: Op = {"kind": "adaptive_avg_pool2d", "output": lo.shape[-2:]}
    return images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape))


@op("aten.adaptive_max_pool2d.default")
def adaptive_max_pool2d(lo: Lowering, a: Args) -> Value:
    """Maximum over adaptive windows, where they are all of one size."""
    extent, output = lo.shape_arg(a["self"])[-2:], lo.shape[-2:]
    if any(e % o for e, o in zip(extent, output, strict=True)):
        raise Decline("windows of different sizes")
    kernel = [e // o for e, o in zip(extent, output, strict=True)]
    shape = {"kernel": kernel, "stride": kernel, "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False}
    node: Op = {"kind": "max_pool2d", "window": shape}
    out = images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape))
    return (out, Decline("indices of the maxima"))


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


@op("aten.argmax.default")
def argmax(lo: Lowering, a: Args) -> Value:
    """Index of the largest value; without a dimension, in the flattened tensor."""
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    if a["dim"] is None:
        if a["keepdim"]:
            raise Decline("keepdim without a dimension")
        size = 1
        for extent in shape:
            size *= extent
        flat = reshape_to(lo, x, [size])
        return lo.emit({"kind": "argmax", "dim": 0, "keepdim": False}, [flat], [])
    node: Op = {"kind": "argmax", "dim": int(a["dim"]) % len(shape), "keepdim": bool(a["keepdim"])}
    return lo.emit(node, [x], lo.shape)


@op("aten.max.dim")
def max_dim(lo: Lowering, a: Args) -> Value:
    """``x.max(dim)``: only the indices, which are an argmax, can be used."""
    x = lo.use(a["self"])
    node: Op = {"kind": "argmax", "dim": int(a["dim"]) % len(lo.shape_at(x)), "keepdim": bool(a["keepdim"])}
    return (Decline("the maximum itself"), lo.emit(node, [x], lo.shape))
