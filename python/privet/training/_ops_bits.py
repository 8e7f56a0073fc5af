"""Comparisons in a training step: a bit is computed once and chooses values and gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .._lowering import Args, Decline, Lowering, Symbol, Value
from .._ops_pointwise import add_scalar, bound, mul_scalar, unary
from ._lowering import Factor, Labels, training


@dataclass(frozen=True)
class Bit(Symbol):
    """``node > 0`` for every element, or its negation."""

    node: int
    negated: bool = False


@dataclass(frozen=True)
class AllBits(Symbol):
    """The conjunction of several bits."""

    bits: tuple[Bit, ...]


def positive(lo: Lowering, x: int) -> int:
    """x > 0. What was chosen by this very bit (a ReLU's result) is positive where its operand is."""
    node = lo.graph.nodes[x]
    if node.kind == "choose":
        bit, chosen = node.inputs
        if lo.graph.nodes[bit].kind == "positive" and lo.graph.nodes[bit].inputs == [chosen]:
            return bit
    return unary(lo, {"kind": "positive"}, x)


def choose(lo: Lowering, bit: Bit, x: int) -> int:
    """x where the bit is 1, else 0; the bit may have to be broadcast to x's shape."""
    b = bit.node
    if lo.shape_at(b) != lo.shape_at(x):
        b = lo.emit({"kind": "expand"}, [b], lo.shape_at(x))
    chosen = lo.emit({"kind": "choose"}, [b, x], lo.shape_at(x))
    return lo.emit({"kind": "sub"}, [x, chosen], lo.shape_at(x)) if bit.negated else chosen


def above(lo: Lowering, x: int, number: float) -> Bit:
    """x > number."""
    return Bit(positive(lo, add_scalar(lo, x, -number)))


def below(lo: Lowering, x: int, number: float) -> Bit:
    """x < number."""
    return Bit(positive(lo, add_scalar(lo, unary(lo, {"kind": "neg"}, x), number)))


# --- Activations -------------------------------------------------------------------------------------


@training("aten.relu.default", "aten.relu_.default")
def relu(lo: Lowering, a: Args) -> Value:
    """x where x > 0: the gradient needs the same bit."""
    x = lo.use(a["self"])
    return choose(lo, Bit(positive(lo, x)), x)


@training("aten.threshold.default", "aten.threshold_.default")
def threshold(lo: Lowering, a: Args) -> Value:
    """``x if x > threshold else value`` is a ReLU for zero and zero."""
    if a["threshold"] != 0 or a["value"] != 0:
        raise Decline("threshold or value other than 0")
    return relu(lo, a)


@training("aten.threshold_backward.default")
def threshold_backward(lo: Lowering, a: Args) -> Value:
    """The gradient where the ReLU's operand, or its result, is above the threshold."""
    return choose(lo, above(lo, lo.use(a["self"]), float(a["threshold"])), lo.use(a["grad_output"]))


def clamp_at(lo: Lowering, x: int, low: float | None, high: float | None) -> int:
    """min(max(x, low), high) by the bits that the gradient needs: ``low + (x - low)`` where that is positive, ..."""
    if low is not None:
        over = add_scalar(lo, x, -low)
        x = add_scalar(lo, choose(lo, above(lo, x, low), over), low)
    if high is not None:
        under = add_scalar(lo, unary(lo, {"kind": "neg"}, x), high)
        left = choose(lo, Bit(positive(lo, under)), under)
        x = add_scalar(lo, unary(lo, {"kind": "neg"}, left), high)
    return x


@training("aten.hardtanh.default", "aten.hardtanh_.default", "aten.relu6.default", "aten.relu6_.default")
def hardtanh(lo: Lowering, a: Args) -> Value:
    """min(max(x, min_val), max_val)."""
    return clamp_at(lo, lo.use(a["self"]), bound(a.get("min_val", 0.0)), bound(a.get("max_val", 6.0)))


@training("aten.clamp.default", "aten.clamp_.default", "aten.clamp_min.default", "aten.clamp_max.default")
def clamp(lo: Lowering, a: Args) -> Value:
    """Bounds that are numbers, either of which may be absent."""
    return clamp_at(lo, lo.use(a["self"]), bound(a.get("min")), bound(a.get("max")))


@training("aten.hardtanh_backward.default")
def hardtanh_backward(lo: Lowering, a: Args) -> Value:
    """The gradient where the operand is between the bounds."""
    x, g = lo.use(a["self"]), lo.use(a["grad_output"])
    low, high = bound(a["min_val"]), bound(a["max_val"])
    if low is not None:
        g = choose(lo, above(lo, x, low), g)
    if high is None:
        return g
    clamped = x if low is None else clamp_at(lo, x, low, None)  # the forward pass compared this with the upper bound
    return choose(lo, below(lo, clamped, high), g)


@training("aten.leaky_relu.default", "aten.leaky_relu_.default")
def leaky_relu(lo: Lowering, a: Args) -> Value:
    """``slope x + (1 - slope) relu(x)``."""
    return leaky(lo, lo.use(a["self"]), lo.use(a["self"]), float(a["negative_slope"]))


@training("aten.leaky_relu_backward.default")
def leaky_relu_backward(lo: Lowering, a: Args) -> Value:
    """The gradient, times the slope where the operand is not positive."""
    return leaky(lo, lo.use(a["self"]), lo.use(a["grad_output"]), float(a["negative_slope"]))


def leaky(lo: Lowering, x: int, y: int, slope: float) -> int:
    """y where x > 0, slope * y elsewhere."""
    kept = mul_scalar(lo, choose(lo, Bit(positive(lo, x)), y), 1.0 - slope)
    return lo.emit({"kind": "add"}, [kept, mul_scalar(lo, y, slope)], lo.shape_at(y))


@training("aten.hardsigmoid_backward.default")
def hardsigmoid_backward(lo: Lowering, a: Args) -> Value:
    """A sixth of the gradient where -3 < x < 3."""
    x, g = lo.use(a["self"]), lo.use(a["grad_output"])
    return mul_scalar(lo, choose(lo, below(lo, x, 3.0), choose(lo, above(lo, x, -3.0), g)), 1.0 / 6.0)


@training("aten.hardswish_backward.default")
def hardswish_backward(lo: Lowering, a: Args) -> Value:
    """``g`` above 3, ``g (x / 3 + 1 / 2)`` between -3 and 3, else 0."""
    x, g = lo.use(a["self"]), lo.use(a["grad_output"])
    slope = add_scalar(lo, mul_scalar(lo, x, 1.0 / 3.0), 0.5)
    inner = lo.emit({"kind": "mul"}, [slope, g], lo.shape_at(g))
    high = above(lo, x, 3.0)
    middle = choose(lo, above(lo, x, -3.0), inner)
    return lo.emit({"kind": "add"}, [choose(lo, high, g), choose(lo, Bit(high.node, True), middle)], lo.shape_at(g))


@dataclass(frozen=True)
class Sign(Factor):
    """1, 0 or -1 by the sign of a node."""

    node: int

    def times(self, lo: Lowering, y: int) -> int:
        """The product with a value: y where x > 0, -y where x < 0."""
        up, down = above(lo, self.node, 0.0), below(lo, self.node, 0.0)
        return lo.emit({"kind": "sub"}, [choose(lo, up, y), choose(lo, down, y)], lo.shape_at(y))


@training("aten.sgn.default", "aten.sign.default")
def sign(lo: Lowering, a: Args) -> Value:
    """A sign, of which only products can be used."""
    return Sign(lo.use(a["self"]))


# --- Comparisons as values ---------------------------------------------------------------------------


@training("aten.gt.Scalar")
def greater(lo: Lowering, a: Args) -> Value:
    """x > number."""
    return above(lo, lo.use(a["self"]), float(a["other"]))


@training("aten.lt.Scalar")
def less(lo: Lowering, a: Args) -> Value:
    """x < number."""
    return below(lo, lo.use(a["self"]), float(a["other"]))


@training("aten.le.Scalar")
def at_most(lo: Lowering, a: Args) -> Value:
    """Not x > number."""
    return Bit(above(lo, lo.use(a["self"]), float(a["other"])).node, True)


@training("aten.ge.Scalar")
def at_least(lo: Lowering, a: Args) -> Value:
    """Not x < number."""
    return Bit(below(lo, lo.use(a["self"]), float(a["other"])).node, True)


@training("aten.eq.Scalar")
def equal(lo: Lowering, a: Args) -> Value:
    """Whether a label is one that the loss ignores, which labels here never are."""
    if not isinstance(lo.value(a["self"]), Labels) or a["other"] >= 0:
        raise Decline("a comparison for equality")
    return lo.constant(torch.zeros(lo.shape, dtype=torch.bool))


def bits_of(lo: Lowering, argument: Any) -> tuple[Bit, ...]:
    """The bits that an operand is the conjunction of."""
    value = lo.value(argument)
    if isinstance(value, AllBits):
        return value.bits
    if not isinstance(value, Bit):
        raise Decline("a condition that is no comparison with a number")
    return (value,)


@training("aten.logical_and.default", "aten.bitwise_and.Tensor", "aten.logical_and_.default")
def both(lo: Lowering, a: Args) -> Value:
    """Where both conditions hold."""
    return AllBits((*bits_of(lo, a["self"]), *bits_of(lo, a["other"])))


@training("aten.where.self", "aten.where.ScalarOther", "aten.where.ScalarSelf", "aten.where.Scalar")
def where(lo: Lowering, a: Args) -> Value:
    """``y + (x - y)`` where the condition holds, for values or numbers x and y."""
    bits = bits_of(lo, a["condition"])
    x, y = lo.scalar(a["self"]), lo.scalar(a["other"])
    if x == 0 and len(bits) == 1:  # written the other way round: nothing is subtracted
        return where_bits(lo, (Bit(bits[0].node, not bits[0].negated),), a["other"], a["self"])
    if x is not None and y is not None:
        raise Decline("a choice between two numbers")
    return where_bits(lo, bits, a["self"], a["other"])


def where_bits(lo: Lowering, bits: tuple[Bit, ...], x: Any, y: Any) -> int:
    """``y + (x - y)`` where all bits are 1."""
    number = lo.scalar(y)
    if number is not None:
        base, difference = None, add_scalar(lo, lo.use(x), -number)
    else:
        base = lo.use(y)
        left = lo.scalar(x)
        if left is None:
            difference = lo.emit({"kind": "sub"}, [lo.use(x), base], lo.shape)
        else:
            difference = add_scalar(lo, unary(lo, {"kind": "neg"}, base), left)
    if lo.shape_at(difference) != lo.shape:
        difference = lo.emit({"kind": "expand"}, [difference], lo.shape)
    for bit in bits:
        difference = choose(lo, bit, difference)
    if base is None:
        return add_scalar(lo, difference, number or 0.0)
    return lo.emit({"kind": "add"}, [base, difference], lo.shape)


@training("aten.masked_fill.Scalar")
def masked_fill(lo: Lowering, a: Args) -> Value:
    """A number where a condition holds; a condition that never holds changes nothing."""
    known = lo.tensor(a["mask"])
    if known is not None:
        if bool(known.any()):
            raise Decline("a mask that is a constant")
        value = lo.value(a["self"])
        return value if isinstance(value, Labels) else lo.use(a["self"])
    if a["value"] != 0:
        raise Decline("a value other than 0")
    bits = bits_of(lo, a["mask"])
    if len(bits) != 1:
        raise Decline("several conditions")
    return choose(lo, Bit(bits[0].node, not bits[0].negated), lo.use(a["self"]))
