"""Elementwise operations: activations and arithmetic."""

from __future__ import annotations

from typing import Any

from ._lowering import Args, Decline, Lowering, Value, op
from .graph import Op


def unary(lo: Lowering, node: Op, x: int) -> int:
    """An operation that keeps its operand's shape."""
    return lo.emit(node, [x], lo.shape_at(x))


def relu_of(lo: Lowering, x: int) -> int:
    """max(x, 0)."""
    return unary(lo, {"kind": "relu"}, x)


def add_scalar(lo: Lowering, x: int, value: float) -> int:
    """x + value; nothing for zero."""
    return x if value == 0 else unary(lo, {"kind": "add_scalar", "value": value}, x)


def mul_scalar(lo: Lowering, x: int, value: float) -> int:
    """x * value; nothing for one."""
    if value == 1:
        return x
    return unary(lo, {"kind": "neg"} if value == -1 else {"kind": "mul_scalar", "value": value}, x)


def clamp_of(lo: Lowering, x: int, low: float | None, high: float | None) -> int:
    """min(max(x, low), high); a lower bound of zero alone is a ReLU."""
    if low is None and high is None:
        return x
    if low == 0 and high is None:
        return relu_of(lo, x)
    node: Op = {"kind": "clamp"}
    if low is not None:
        node["lo"] = low
    if high is not None:
        node["hi"] = high
    return unary(lo, node, x)


def bound(value: Any) -> float | None:
    """An optional bound of a clamp; infinite ones bound nothing."""
    if value is None:
        return None
    number = float(value)
    return None if number in (float("inf"), float("-inf")) else number


@op("aten.clamp.Tensor", "aten.clamp_min.Tensor", "aten.clamp_max.Tensor")
def clamp_by_tensors(lo: Lowering, a: Args) -> Value:
    """Bounds that are tensors."""
    x = lo.use(a["self"])
    for key, sign in (("min", 1.0), ("max", -1.0)):
        if a.get(key) is not None:
            x = larger(lo, x, lo.use(a[key]), sign)
    return x


# --- Activations -------------------------------------------------------------------------------------


@op("aten.relu.default", "aten.relu_.default")
def relu(lo: Lowering, a: Args) -> Value:
    """max(x, 0)."""
    return relu_of(lo, lo.use(a["self"]))


@op("aten.relu6.default", "aten.relu6_.default")
def relu6(lo: Lowering, a: Args) -> Value:
    """min(max(x, 0), 6)."""
    return clamp_of(lo, lo.use(a["self"]), 0.0, 6.0)


@op("aten.hardtanh.default", "aten.hardtanh_.default")
def hardtanh(lo: Lowering, a: Args) -> Value:
    """min(max(x, min_val), max_val)."""
    return clamp_of(lo, lo.use(a["self"]), bound(a["min_val"]), bound(a["max_val"]))


@op("aten.clamp.default", "aten.clamp_.default", "aten.clamp_min.default", "aten.clamp_max.default")
def clamp(lo: Lowering, a: Args) -> Value:
    """Bounds that are numbers, either of which may be absent."""
    return clamp_of(lo, lo.use(a["self"]), bound(a.get("min")), bound(a.get("max")))


@op("aten.leaky_relu.default", "aten.leaky_relu_.default")
def leaky_relu(lo: Lowering, a: Args) -> Value:
    """x where x >= 0, slope * x elsewhere."""
    return unary(lo, {"kind": "leaky_relu", "slope": float(a["negative_slope"])}, lo.use(a["self"]))


@op("aten.rrelu.default", "aten.rrelu_with_noise_functional.default", "aten.rrelu_with_noise.default")
def rrelu(lo: Lowering, a: Args) -> Value:
    """In evaluation the slope is the mean of its bounds."""
    if a.get("training"):
        raise Decline("random slopes")
    slope = (float(a["lower"]) + float(a["upper"])) / 2
    y = unary(lo, {"kind": "leaky_relu", "slope": slope}, lo.use(a["self"]))
    return y if lo.single_result else (y, None)


@op("aten.prelu.default")
def prelu(lo: Lowering, a: Args) -> Value:
    """``relu(x) - w * relu(-x)``: the slope is the model owner's secret."""
    x, weight = lo.use(a["self"]), lo.tensor(a["weight"])
    if weight is None:
        raise Decline("slope computed from the input")
    shape = lo.shape_at(x)
    slope = weight.reshape([-1] + [1] * max(len(shape) - 2, 0)) if weight.numel() > 1 else weight.reshape([])
    w = lo.use(lo.constant(slope, f"{lo.name_of(weight)}.slope"))
    negative = relu_of(lo, unary(lo, {"kind": "neg"}, x))
    scaled = lo.emit({"kind": "mul"}, [negative, w], shape)
    return lo.emit({"kind": "sub"}, [relu_of(lo, x), scaled], shape)


@op("aten.abs.default")
def absolute(lo: Lowering, a: Args) -> Value:
    """``2 relu(x) - x``."""
    x = lo.use(a["self"])
    return lo.emit({"kind": "sub"}, [mul_scalar(lo, relu_of(lo, x), 2.0), x], lo.shape_at(x))


def hard_gate(lo: Lowering, x: int) -> int:
    """min(max(x + 3, 0), 6) / 6."""
    return mul_scalar(lo, clamp_of(lo, add_scalar(lo, x, 3.0), 0.0, 6.0), 1.0 / 6.0)


@op("aten.hardsigmoid.default", "aten.hardsigmoid_.default")
def hardsigmoid(lo: Lowering, a: Args) -> Value:
    """min(max(x + 3, 0), 6) / 6."""
    return hard_gate(lo, lo.use(a["self"]))


@op("aten.hardswish.default", "aten.hardswish_.default")
def hardswish(lo: Lowering, a: Args) -> Value:
    """x * hardsigmoid(x)."""
    x = lo.use(a["self"])
    return lo.emit({"kind": "mul"}, [x, hard_gate(lo, x)], lo.shape_at(x))


def extreme(lo: Lowering, a: Args, sign: float) -> Value:
    """``y + relu(x - y)`` for the larger, ``y - relu(y - x)`` for the smaller."""
    return larger(lo, lo.use(a["self"]), lo.use(a["other"]), sign)


def larger(lo: Lowering, x: int, y: int, sign: float) -> int:
    """The larger of two nodes, or with ``sign`` -1 the smaller."""
    pair = [x, y] if sign > 0 else [y, x]
    rest = relu_of(lo, lo.emit({"kind": "sub"}, pair, lo.shape))
    return lo.emit({"kind": "add" if sign > 0 else "sub"}, [y, rest], lo.shape)


@op("aten.maximum.default", "aten.max.other", "aten.fmax.default")
def maximum(lo: Lowering, a: Args) -> Value:
    """The larger of two values."""
    return extreme(lo, a, 1.0)


@op("aten.minimum.default", "aten.min.other", "aten.fmin.default")
def minimum(lo: Lowering, a: Args) -> Value:
    """The smaller of two values."""
    return extreme(lo, a, -1.0)


# --- Arithmetic --------------------------------------------------------------------------------------


@op("aten.add.Tensor", "aten.add_.Tensor", "aten.add.Scalar")
def add(lo: Lowering, a: Args) -> Value:
    """``x + alpha * y``."""
    return combine(lo, a["self"], a["other"], float(a["alpha"]))


@op("aten.sub.Tensor", "aten.sub_.Tensor", "aten.sub.Scalar")
def sub(lo: Lowering, a: Args) -> Value:
    """``x - alpha * y``."""
    return combine(lo, a["self"], a["other"], -float(a["alpha"]))


@op("aten.rsub.Scalar", "aten.rsub.Tensor")
def rsub(lo: Lowering, a: Args) -> Value:
    """``y - alpha * x``."""
    if isinstance(a["other"], (int, float)):
        return add_scalar(lo, mul_scalar(lo, lo.use(a["self"]), -float(a["alpha"])), float(a["other"]))
    return combine(lo, a["other"], a["self"], -float(a["alpha"]))


def combine(lo: Lowering, x: Any, y: Any, factor: float) -> int:
    """``x + factor * y``, either of which may be a public number."""
    y_number = lo.scalar(y)
    if y_number is not None:
        return broadcast(lo, add_scalar(lo, lo.use(x), factor * y_number))
    x_number = lo.scalar(x)
    if x_number is not None:
        return broadcast(lo, add_scalar(lo, mul_scalar(lo, lo.use(y), factor), x_number))
    kind = "sub" if factor < 0 else "add"
    # Evaluated in this order so that operands appear in the order the model names them.
    left = lo.use(x)
    right = mul_scalar(lo, lo.use(y), abs(factor))
    return lo.emit({"kind": kind}, [left, right], lo.shape)


def broadcast(lo: Lowering, node: int) -> int:
    """A number combined with a tensor keeps the tensor's shape; ranks may differ by leading ones."""
    if lo.shape_at(node) == lo.shape:
        return node
    return lo.emit({"kind": "expand"}, [node], lo.shape)


@op("aten.mul.Tensor", "aten.mul_.Tensor", "aten.mul.Scalar")
def mul(lo: Lowering, a: Args) -> Value:
    """Elementwise product."""
    return multiply(lo, a["self"], a["other"])


def multiply(lo: Lowering, x: Any, y: Any) -> int:
    """Product of two values, or of one and a public number."""
    for value, number in ((x, lo.scalar(y)), (y, lo.scalar(x))):
        if number is not None:
            return broadcast(lo, mul_scalar(lo, lo.use(value), number))
    left = lo.use(x)
    return lo.emit({"kind": "mul"}, [left, lo.use(y)], lo.shape)


@op("aten.neg.default", "aten.neg_.default")
def neg(lo: Lowering, a: Args) -> Value:
    """-x."""
    return unary(lo, {"kind": "neg"}, lo.use(a["self"]))


@op("aten.square.default")
def square(lo: Lowering, a: Args) -> Value:
    """x * x."""
    return multiply(lo, a["self"], a["self"])
