"""Normalisation over the batch or over features, and its gradients in closed form."""

from __future__ import annotations

from functools import partial
from typing import Any

from .._lowering import Args, Decline, Lowering, Value, op
from .._ops_layers import reshape_to
from .._ops_pointwise import add_scalar, mul_scalar
from .._ops_smooth import smooth
from ._lowering import EVALUATION, training

evaluation = partial(op, table=EVALUATION)


def over(lo: Lowering, kind: str, x: int, dims: list[int]) -> int:
    """Mean or sum over dimensions, which stay with extent 1."""
    shape = [1 if d in dims else n for d, n in enumerate(lo.shape_at(x))]
    return lo.emit({"kind": kind, "dims": dims, "keepdim": True}, [x], shape)


def mul(lo: Lowering, x: int, y: int) -> int:
    """A product in the shape of x; y is broadcast."""
    return lo.emit({"kind": "mul"}, [x, y], lo.shape_at(x))


def add(lo: Lowering, x: int, y: int) -> int:
    """A sum in the shape of x; y is broadcast."""
    return lo.emit({"kind": "add"}, [x, y], lo.shape_at(x))


def sub(lo: Lowering, x: int, y: int) -> int:
    """A difference in the shape of x; y is broadcast."""
    return lo.emit({"kind": "sub"}, [x, y], lo.shape_at(x))


def centred_variance(lo: Lowering, x: int, dims: list[int]) -> tuple[int, int, int]:
    """x without its mean, the mean, and the mean square of what is left."""
    mean = over(lo, "mean", x, dims)
    centred = sub(lo, x, mean)
    return centred, mean, over(lo, "mean", mul(lo, centred, centred), dims)


def rsqrt(lo: Lowering, variance: int, eps: float) -> int:
    """1 / sqrt(variance + eps)."""
    return smooth(lo, "rsqrt", add_scalar(lo, variance, eps))


def pull(lo: Lowering, g: int, normal: int, scale: int, dims: list[int]) -> int:
    """The gradient by x through ``y = (x - mean) / deviation``, ``normal``: ``(g - mean(g) - y mean(g y)) scale``."""
    slope = mul(lo, normal, over(lo, "mean", mul(lo, g, normal), dims))
    return mul(lo, sub(lo, sub(lo, g, over(lo, "mean", g, dims)), slope), scale)


# --- BatchNorm ---------------------------------------------------------------------------------------


def channels_of(lo: Lowering, x: int) -> tuple[list[int], list[int]]:
    """The dimensions that BatchNorm averages over, and the shape of one number a channel."""
    shape = lo.shape_at(x)
    if len(shape) < 2:
        raise Decline("BatchNorm without a channel dimension")
    return [d for d in range(len(shape)) if d != 1], [n if d == 1 else 1 for d, n in enumerate(shape)]


def spread(lo: Lowering, argument: Any, per_channel: list[int]) -> int:
    """One number a channel, along dimension 1."""
    return reshape_to(lo, lo.use(argument), per_channel)


def affine(lo: Lowering, y: int, a: Args, per_channel: list[int]) -> int:
    """``gamma y + beta``, either of which may be absent."""
    if a["weight"] is not None:
        y = mul(lo, y, spread(lo, a["weight"], per_channel))
    return y if a["bias"] is None else add(lo, y, spread(lo, a["bias"], per_channel))


@training("aten._native_batch_norm_legit_functional.default")
def batch_norm_training(lo: Lowering, a: Args) -> Value:
    """Normalisation by the batch's own statistics, and the new running averages (of the unbiased variance)."""
    x = lo.use(a["input"])
    if not a["training"]:
        return (batch_norm_running(lo, a), None, None, lo.use(a["running_mean"]), lo.use(a["running_var"]))
    dims, per_channel = channels_of(lo, x)
    centred, mean, variance = centred_variance(lo, x, dims)
    deviation = rsqrt(lo, variance, float(a["eps"]))
    y = affine(lo, mul(lo, centred, deviation), a, per_channel)
    flat = [lo.shape_at(x)[1]]
    count = 1
    for d in dims:
        count *= lo.shape_at(x)[d]
    if count < 2:
        raise Decline("statistics of a single element")
    unbiased = mul_scalar(lo, variance, count / (count - 1))
    averages = []
    for old, new in ((a["running_mean"], mean), (a["running_var"], unbiased)):
        was = lo.use(old)
        change = sub(lo, reshape_to(lo, new, flat), was)
        averages.append(add(lo, was, mul_scalar(lo, change, float(a["momentum"]))))
    return (y, reshape_to(lo, mean, flat), reshape_to(lo, deviation, flat), *averages)


@evaluation("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_averages(lo: Lowering, a: Args) -> Value:
    """Normalisation by the batch's own statistics, of which no averages are kept."""
    x = lo.use(a["input"])
    dims, per_channel = channels_of(lo, x)
    centred, mean, variance = centred_variance(lo, x, dims)
    deviation = rsqrt(lo, variance, float(a["eps"]))
    flat = [lo.shape_at(x)[1]]
    y = affine(lo, mul(lo, centred, deviation), a, per_channel)
    return (y, reshape_to(lo, mean, flat), reshape_to(lo, deviation, flat))


@training("aten.native_batch_norm_backward.default")
def batch_norm_backward(lo: Lowering, a: Args) -> Value:
    """Gradients by input, gamma and beta."""
    x, g = lo.use(a["input"]), lo.use(a["grad_out"])
    dims, per_channel = channels_of(lo, x)
    flat = [lo.shape_at(x)[1]]
    if a["train"]:
        mean, deviation = (spread(lo, a[name], per_channel) for name in ("save_mean", "save_invstd"))
    else:
        mean = spread(lo, a["running_mean"], per_channel)
        deviation = rsqrt(lo, spread(lo, a["running_var"], per_channel), float(a["eps"]))
    normal = mul(lo, sub(lo, x, mean), deviation)
    scale = deviation if a["weight"] is None else mul(lo, deviation, spread(lo, a["weight"], per_channel))
    gx = None
    if a["output_mask"][0]:
        gx = pull(lo, g, normal, scale, dims) if a["train"] else mul(lo, g, scale)
    by_gamma = reshape_to(lo, over(lo, "sum", mul(lo, g, normal), dims), flat)
    return (gx, by_gamma, reshape_to(lo, over(lo, "sum", g, dims), flat))


def batch_norm_running(lo: Lowering, a: Args) -> int:
    """``x s + (beta - mean s)`` with ``s = gamma / sqrt(variance + eps)`` a channel."""
    x = lo.use(a["input"])
    if a["running_mean"] is None:
        raise Decline("statistics of the batch in evaluation mode")
    _, per_channel = channels_of(lo, x)
    scale = rsqrt(lo, lo.use(a["running_var"]), float(a["eps"]))
    if a["weight"] is not None:
        scale = mul(lo, scale, lo.use(a["weight"]))
    shift = mul(lo, lo.use(a["running_mean"]), scale)
    if a["bias"] is None:
        shift = lo.emit({"kind": "neg"}, [shift], lo.shape_at(shift))
    else:
        shift = sub(lo, lo.use(a["bias"]), shift)
    return add(lo, mul(lo, x, reshape_to(lo, scale, per_channel)), reshape_to(lo, shift, per_channel))


@evaluation(
    "aten.batch_norm.default",
    "aten._native_batch_norm_legit_no_training.default",
    "aten._native_batch_norm_legit.default",
    "aten._native_batch_norm_legit_functional.default",
    "aten.native_batch_norm.default",
)
def batch_norm_eval(lo: Lowering, a: Args) -> Value:
    """Evaluation-mode BatchNorm whose parameters are secret values that change between runs."""
    if a.get("training"):
        raise Decline("statistics of the batch in evaluation mode")
    out = batch_norm_running(lo, a)
    return out if lo.single_result else (out, None, None)


# --- LayerNorm ---------------------------------------------------------------------------------------


@training("aten.native_layer_norm.default")
def layer_norm(lo: Lowering, a: Args) -> Value:
    """Normalisation over the last dimensions."""
    x = lo.use(a["input"])
    rank = len(lo.shape_at(x))
    dims = list(range(rank - len(a["normalized_shape"]), rank))
    centred, mean, variance = centred_variance(lo, x, dims)
    deviation = rsqrt(lo, variance, float(a["eps"]))
    y = mul(lo, centred, deviation)
    if a["weight"] is not None:
        y = mul(lo, y, lo.use(a["weight"]))
    if a["bias"] is not None:
        y = add(lo, y, lo.use(a["bias"]))
    return (y, mean, deviation)


@training("aten.native_layer_norm_backward.default")
def layer_norm_backward(lo: Lowering, a: Args) -> Value:
    """Gradients by input, gamma and beta."""
    x, g, deviation = lo.use(a["input"]), lo.use(a["grad_out"]), lo.use(a["rstd"])
    shape = lo.shape_at(x)
    lead = len(shape) - len(a["normalized_shape"])
    rows, dims = list(range(lead)), list(range(lead, len(shape)))
    normal = mul(lo, sub(lo, x, lo.use(a["mean"])), deviation)
    scaled = g if a["weight"] is None else mul(lo, g, lo.use(a["weight"]))
    gx = pull(lo, scaled, normal, deviation, dims) if a["output_mask"][0] else None

    def total(value: int) -> int:
        return reshape_to(lo, over(lo, "sum", value, rows), shape[lead:]) if rows else value

    return (gx, total(mul(lo, g, normal)), total(g))


# --- GroupNorm ---------------------------------------------------------------------------------------


def in_groups(lo: Lowering, x: int, groups: int) -> int:
    """``[rows, groups, elements]``."""
    shape = lo.shape_at(x)
    if len(shape) < 2:
        raise Decline("GroupNorm without a channel dimension")
    count = 1
    for extent in shape[1:]:
        count *= extent
    return reshape_to(lo, x, [shape[0], groups, count // groups])


@training("aten.native_group_norm.default")
def group_norm(lo: Lowering, a: Args) -> Value:
    """Channels in groups, each of which is normalised by itself."""
    x, groups = lo.use(a["input"]), int(a["group"])
    _, per_channel = channels_of(lo, x)
    centred, mean, variance = centred_variance(lo, in_groups(lo, x, groups), [2])
    deviation = rsqrt(lo, variance, float(a["eps"]))
    normal = reshape_to(lo, mul(lo, centred, deviation), lo.shape_at(x))
    flat = [lo.shape_at(x)[0], groups]
    return (affine(lo, normal, a, per_channel), reshape_to(lo, mean, flat), reshape_to(lo, deviation, flat))


@training("aten.native_group_norm_backward.default")
def group_norm_backward(lo: Lowering, a: Args) -> Value:
    """Gradients by input, gamma and beta."""
    x, g, groups = lo.use(a["input"]), lo.use(a["grad_out"]), int(a["group"])
    dims, per_channel = channels_of(lo, x)
    shape, column = lo.shape_at(x), [lo.shape_at(x)[0], groups, 1]
    mean, deviation = (reshape_to(lo, lo.use(a[name]), column) for name in ("mean", "rstd"))
    normal = mul(lo, sub(lo, in_groups(lo, x, groups), mean), deviation)
    gx = None
    if a["output_mask"][0]:
        scaled = g if a["weight"] is None else mul(lo, g, spread(lo, a["weight"], per_channel))
        gx = reshape_to(lo, pull(lo, in_groups(lo, scaled, groups), normal, deviation, [2]), shape)

    def total(value: int) -> int:
        return reshape_to(lo, over(lo, "sum", value, dims), [shape[1]])

    return (gx, total(mul(lo, g, reshape_to(lo, normal, shape))), total(g))
