"""Normalisation: by running statistics, and by those of the value itself."""

from __future__ import annotations

from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_compare import greater
from ._ops_layers import dims_of, reshape_to
from ._ops_order import largest
from ._ops_pointwise import add_scalar, mul_scalar, relu_of
from ._ops_smooth import power_of, smooth
from .graph import Op

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
    if a.get("running_mean") is None:
        return of_the_batch(lo, a)
    if a.get("training"):
        raise Decline("statistics of the batch instead of running statistics")
    out = batch_norm_eval(lo, a)
    assert isinstance(out, tuple)
    return out[0] if lo.single_result else out


def of_the_batch(lo: Lowering, a: Args) -> Value:
    """A layer without running statistics normalises by the batch that it is given."""
    x = lo.use(a["input"])
    shape = lo.shape_at(x)
    y = standard(lo, x, [0, *range(2, len(shape))], float(a["eps"]))
    y = by_channel(lo, y, a["weight"], a["bias"])
    return y if lo.single_result else (y, None, None)


# --- By the value's own statistics -------------------------------------------------------------------


def spread(lo: Lowering, x: int, dims: list[int], centre: bool = True) -> tuple[int, int]:
    """x less its mean over dimensions, where asked for, and the mean of the squares."""
    shape = lo.shape_at(x)
    kept = [1 if d in dims else n for d, n in enumerate(shape)]
    mean: Op = {"kind": "mean", "dims": dims, "keepdim": True}
    if centre:
        x = lo.emit({"kind": "sub"}, [x, lo.emit(mean, [x], kept)], shape)
    square = lo.emit({"kind": "mul"}, [x, x], shape)
    return x, lo.emit(dict(mean), [square], kept)


def standard(lo: Lowering, x: int, dims: list[int], eps: float, centre: bool = True) -> int:
    """``(x - mean) rsqrt(variance + eps)``; taken apart here, so that the range of each part is calibrated."""
    centred, variance = spread(lo, x, dims, centre)
    scale = smooth(lo, "rsqrt", add_scalar(lo, variance, eps))
    return lo.emit({"kind": "mul"}, [centred, scale], lo.shape_at(x))


def scaled(lo: Lowering, y: int, weight: Any, bias: Any) -> int:
    """``y gamma + beta``, where there are any."""
    shape = lo.shape_at(y)
    if weight is not None:
        y = lo.emit({"kind": "mul"}, [y, lo.use(weight)], shape)
    return y if bias is None else lo.emit({"kind": "add"}, [y, lo.use(bias)], shape)


def by_channel(lo: Lowering, y: int, weight: Any, bias: Any) -> int:
    """The same with one number for each channel, dimension 1."""
    shape = lo.shape_at(y)
    for kind, argument in (("mul", weight), ("add", bias)):
        if argument is not None:
            y = lo.emit({"kind": kind}, [y, column(lo, argument, len(shape) - 2)], shape)
    return y


def column(lo: Lowering, argument: Any, after: int) -> int:
    """One number for each channel, before so many dimensions."""
    known = lo.tensor(argument)
    if known is not None:
        return lo.use(lo.constant(known.reshape([-1] + [1] * after), f"{lo.name_of(known)}.column"))
    node = lo.use(argument)
    return reshape_to(lo, node, [*lo.shape_at(node), *([1] * after)])


@op("aten.layer_norm.default")
def layer_norm(lo: Lowering, a: Args) -> Value:
    """``(x - mean) rsqrt(variance + eps) gamma + beta`` over the last dimensions."""
    x = lo.use(a["input"])
    rank = len(lo.shape_at(x))
    dims = list(range(rank - len(a["normalized_shape"]), rank))
    return scaled(lo, standard(lo, x, dims, float(a["eps"])), a["weight"], a["bias"])


@op("aten.rms_norm.default")
def rms_norm(lo: Lowering, a: Args) -> Value:
    """``x rsqrt(mean of squares + eps) gamma`` over the last dimensions."""
    x = lo.use(a["input"])
    rank = len(lo.shape_at(x))
    dims = list(range(rank - len(a["normalized_shape"]), rank))
    eps = float(a["eps"]) if a["eps"] is not None else torch.finfo(torch.float32).eps
    return scaled(lo, standard(lo, x, dims, eps, centre=False), a["weight"], None)


@op("aten.group_norm.default")
def group_norm(lo: Lowering, a: Args) -> Value:
    """Channels in groups, each normalised by itself."""
    x, groups = lo.use(a["input"]), int(a["num_groups"])
    shape = lo.shape_at(x)
    inner = int(torch.tensor(shape[1:]).prod()) // groups
    y = standard(lo, reshape_to(lo, x, [shape[0], groups, inner]), [2], float(a["eps"]))
    return by_channel(lo, reshape_to(lo, y, shape), a["weight"], a["bias"])


@op("aten.instance_norm.default")
def instance_norm(lo: Lowering, a: Args) -> Value:
    """Every channel normalised by itself, or by running statistics."""
    if not a["use_input_stats"]:
        out = batch_norm_eval(lo, a)
        assert isinstance(out, tuple)
        first: Value = out[0]
        return first
    x = lo.use(a["input"])
    dims = list(range(2, len(lo.shape_at(x))))
    return by_channel(lo, standard(lo, x, dims, float(a["eps"])), a["weight"], a["bias"])


# --- Spreads and norms -------------------------------------------------------------------------------


def variance_of(lo: Lowering, a: Args, shape: list[int]) -> int:
    """The variance over dimensions, less the correction's degrees of freedom."""
    x = lo.use(a["self"])
    dims = dims_of(a.get("dim"), len(lo.shape_at(x)))
    count = int(torch.tensor([lo.shape_at(x)[d] for d in dims]).prod()) if dims else 1
    correction = a.get("correction", 1 if a.get("unbiased", True) else 0)
    correction = 1 if correction is None else float(correction)
    if count <= correction:
        raise Decline("a variance without degrees of freedom")
    _, mean = spread(lo, x, dims)
    return reshape_to(lo, mul_scalar(lo, mean, count / (count - correction)), shape)


@op("aten.var.default", "aten.var.dim", "aten.var.correction")
def var(lo: Lowering, a: Args) -> Value:
    """The variance over dimensions."""
    return variance_of(lo, a, lo.shape)


@op("aten.std.default", "aten.std.dim", "aten.std.correction")
def std(lo: Lowering, a: Args) -> Value:
    """Its square root."""
    return smooth(lo, "sqrt", variance_of(lo, a, lo.shape))


def average(lo: Lowering, a: Args) -> int:
    x = lo.use(a["self"])
    dims = dims_of(a.get("dim"), len(lo.shape_at(x)))
    return lo.emit({"kind": "mean", "dims": dims, "keepdim": bool(a.get("keepdim", False))}, [x], lo.shape)


@op("aten.var_mean.default", "aten.var_mean.dim", "aten.var_mean.correction")
def var_mean(lo: Lowering, a: Args) -> Value:
    """Variance and mean."""
    return variance_of(lo, a, lo.shape), average(lo, a)


@op("aten.std_mean.default", "aten.std_mean.dim", "aten.std_mean.correction")
def std_mean(lo: Lowering, a: Args) -> Value:
    """Standard deviation and mean."""
    return smooth(lo, "sqrt", variance_of(lo, a, lo.shape)), average(lo, a)


def magnitude(lo: Lowering, x: int) -> int:
    """``2 relu(x) - x``."""
    return lo.emit({"kind": "sub"}, [mul_scalar(lo, relu_of(lo, x), 2.0), x], lo.shape_at(x))


@op("aten.linalg_vector_norm.default", "aten.norm.ScalarOpt_dim", "aten.norm.Scalar")
def vector_norm(lo: Lowering, a: Args) -> Value:
    """The p-th root of the sum of p-th powers of magnitudes."""
    x = lo.use(a["self"])
    order = a.get("ord", a.get("p"))
    order = 2.0 if order is None else float(order)
    dims = dims_of(a.get("dim"), len(lo.shape_at(x)))
    if order in (float("inf"), float("-inf")):
        return largest(lo, magnitude(lo, x), dims, lo.shape, 1.0 if order > 0 else -1.0)
    total: Op = {"kind": "sum", "dims": dims, "keepdim": bool(a.get("keepdim", False))}
    if order == 0:
        bits = [greater(lo, mul_scalar(lo, x, s)).number(lo) for s in (1.0, -1.0)]
        return lo.emit(total, [lo.emit({"kind": "add"}, bits, lo.shape_at(x))], lo.shape)
    if order == 1:
        return lo.emit(total, [magnitude(lo, x)], lo.shape)
    if order == 2:
        square = lo.emit({"kind": "mul"}, [x, x], lo.shape_at(x))
        return smooth(lo, "sqrt", lo.emit(total, [square], lo.shape))
    powers = power_of(lo, x if order % 2 == 0 else magnitude(lo, x), order)
    return power_of(lo, lo.emit(total, [powers], lo.shape), 1.0 / order)
