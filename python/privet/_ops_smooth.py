"""Smooth functions: exponentials, roots, softmax, and the layers that are made of them."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_pointwise import add_scalar, broadcast, mul_scalar, unary


def smooth(lo: Lowering, function: Any, x: int) -> int:
    """A function of every element, or a softmax."""
    return unary(lo, {"kind": "smooth", "function": function}, x)


SIMPLE = {
    "aten.exp.default": "exp",
    "aten.log.default": "log",
    "aten.reciprocal.default": "reciprocal",
    "aten.sqrt.default": "sqrt",
    "aten.rsqrt.default": "rsqrt",
    "aten.sigmoid.default": "sigmoid",
    "aten.tanh.default": "tanh",
    "aten.silu.default": "silu",
}
"""Operators of one argument and the functions that they are."""


def _enter(name: str, function: str) -> None:
    @op(name, name.replace(".default", "_.default"))
    def handler(lo: Lowering, a: Args) -> Value:
        return smooth(lo, function, lo.use(a["self"]))


for _name, _function in SIMPLE.items():
    _enter(_name, _function)


@op("aten.gelu.default", "aten.gelu_.default")
def gelu(lo: Lowering, a: Args) -> Value:
    """The exact form, or the one by tanh."""
    return smooth(lo, "gelu_tanh" if a["approximate"] == "tanh" else "gelu", lo.use(a["self"]))


# --- Softmax -----------------------------------------------------------------------------------------


def softmax_of(lo: Lowering, x: int, dim: int, kind: str = "softmax") -> int:
    """Softmax or its logarithm along a dimension."""
    rank = len(lo.shape_at(x))
    if rank == 0:
        raise Decline("softmax of a scalar")
    return smooth(lo, {kind: {"dim": dim % rank}}, x)


@op("aten.softmax.int", "aten._softmax.default")
def softmax(lo: Lowering, a: Args) -> Value:
    """e^x over its sum."""
    return softmax_of(lo, lo.use(a["self"]), int(a["dim"]))


@op("aten.log_softmax.int", "aten._log_softmax.default")
def log_softmax(lo: Lowering, a: Args) -> Value:
    """The logarithm of a softmax."""
    return softmax_of(lo, lo.use(a["self"]), int(a["dim"]), "log_softmax")


@op("aten.log_sigmoid.default")
def log_sigmoid(lo: Lowering, a: Args) -> Value:
    """``-relu(-x) - log(1 + e^-|x|)``, as ``log(sigmoid(x))`` would lose its digits below zero."""
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    positive = unary(lo, {"kind": "relu"}, x)
    minus_size = lo.emit({"kind": "sub"}, [x, mul_scalar(lo, positive, 2.0)], shape)
    log = smooth(lo, "log", add_scalar(lo, smooth(lo, "exp", minus_size), 1.0))
    return lo.emit({"kind": "sub"}, [lo.emit({"kind": "sub"}, [x, positive], shape), log], shape)


# --- Division and normalisation ----------------------------------------------------------------------

LEAST_LENGTH = 2.0**-10
"""Vectors are taken to be at least this long where a model divides them by their length, as `normalize` does.

It keeps vectors of zeros from dividing by 1e-12. A shorter vector's elements would be a few units of a plan's fraction.
"""


def inverse_of(lo: Lowering, x: int) -> int:
    """1 / x, computed before x is expanded."""
    node = lo.graph.nodes[x]
    if node.kind == "expand":
        return lo.emit(dict(node.op), [inverse_of(lo, node.inputs[0])], node.shape)
    if node.kind == "clamp" and node.op.get("hi") is None and 0 < node.op["lo"] < LEAST_LENGTH:
        length = lo.graph.nodes[node.inputs[0]]
        if length.op == {"kind": "smooth", "function": "sqrt"}:
            x = unary(lo, {"kind": "clamp", "lo": LEAST_LENGTH}, node.inputs[0])
    return smooth(lo, "reciprocal", x)


@op("aten.div.Tensor", "aten.div_.Tensor", "aten.div.Scalar")
def div(lo: Lowering, a: Args) -> Value:
    """By a public number, by one of the model's own tensors, or by a private value: a product with its reciprocal."""
    number = lo.scalar(a["other"])
    if number is not None:
        if number == 0:
            raise Decline("division by zero")
        return broadcast(lo, mul_scalar(lo, lo.use(a["self"]), 1.0 / number))
    divisor = lo.tensor(a["other"])
    if divisor is None:
        above = lo.scalar(a["self"])
        inverse = inverse_of(lo, lo.use(a["other"]))
        if above is not None:
            return broadcast(lo, mul_scalar(lo, inverse, above))
        return lo.emit({"kind": "mul"}, [lo.use(a["self"]), inverse], lo.shape)
    if bool((divisor == 0).any()):
        raise Decline("division by a parameter that holds zeros")
    reciprocal = lo.constant(1.0 / divisor.to(torch.float64), f"{lo.name_of(divisor)}.reciprocal")
    left = lo.use(a["self"])
    return lo.emit({"kind": "mul"}, [left, lo.use(reciprocal)], lo.shape)


# --- Powers, and functions of exponentials and logarithms ---------------------------------------------

MOST_PRODUCTS = 64
"""Whole powers up to this one are products."""


def power_of(lo: Lowering, x: int, exponent: float) -> int:
    """Whole powers by squaring; roots, reciprocals; other powers of positive numbers by logarithms."""
    shape = lo.shape_at(x)
    functions = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}
    if exponent in functions:
        return smooth(lo, functions[exponent], x)
    if exponent == 0:
        return add_scalar(lo, mul_scalar(lo, x, 0.0), 1.0)
    if exponent < 0:
        return smooth(lo, "reciprocal", power_of(lo, x, -exponent))
    if exponent == int(exponent) and exponent <= MOST_PRODUCTS:
        count, square, result = int(exponent), x, None
        if count <= 4:
            result = x
            for _ in range(count - 1):
                result = lo.emit({"kind": "mul"}, [result, x], shape)
            return result
        while count:
            if count & 1:
                result = square if result is None else lo.emit({"kind": "mul"}, [result, square], shape)
            count >>= 1
            if count:
                square = lo.emit({"kind": "mul"}, [square, square], shape)
        assert result is not None
        return result
    if exponent * 2 == int(exponent * 2) and exponent <= MOST_PRODUCTS:
        root = smooth(lo, "sqrt", x)
        return lo.emit({"kind": "mul"}, [power_of(lo, x, exponent - 0.5), root], shape)
    if exponent * 4 == int(exponent * 4) and exponent < 1:
        root = smooth(lo, "sqrt", smooth(lo, "sqrt", x))
        return power_of(lo, root, exponent * 4)
    return smooth(lo, "exp", mul_scalar(lo, smooth(lo, "log", x), exponent))


@op("aten.pow.Tensor_Scalar")
def power(lo: Lowering, a: Args) -> Value:
    """x to a public power."""
    return power_of(lo, lo.use(a["self"]), float(a["exponent"]))


@op("aten.pow.Scalar")
def exponential(lo: Lowering, a: Args) -> Value:
    """A positive number to the power of x."""
    base = float(a["self"])
    if base <= 0:
        raise Decline("a base that is not positive")
    return smooth(lo, "exp", mul_scalar(lo, lo.use(a["exponent"]), math.log(base)))


@op("aten.pow.Tensor_Tensor")
def power_of_values(lo: Lowering, a: Args) -> Value:
    """``exp(y log x)`` of a positive x."""
    log = smooth(lo, "log", lo.use(a["self"]))
    return smooth(lo, "exp", lo.emit({"kind": "mul"}, [log, lo.use(a["exponent"])], lo.shape))


def softplus_of(lo: Lowering, x: int, beta: float = 1.0) -> int:
    """``relu(x) + log(1 + e^-|beta x|) / beta``."""
    shape = lo.shape_at(x)
    positive = unary(lo, {"kind": "relu"}, x)
    minus_size = lo.emit({"kind": "sub"}, [x, mul_scalar(lo, positive, 2.0)], shape)
    log = smooth(lo, "log", add_scalar(lo, smooth(lo, "exp", mul_scalar(lo, minus_size, beta)), 1.0))
    return lo.emit({"kind": "add"}, [positive, mul_scalar(lo, log, 1.0 / beta)], shape)


@op("aten.softplus.default")
def softplus(lo: Lowering, a: Args) -> Value:
    """``log(1 + e^(beta x)) / beta``; beyond the threshold, which is 20 by default, that is x but for e^-20."""
    return softplus_of(lo, lo.use(a["self"]), beta_of(a))


LEAST_THRESHOLD = 10.0
"""Below this, torch's softplus has a step that would show."""


def beta_of(a: Args) -> float:
    """The beta of a softplus, whose threshold is where the curve is flat."""
    if float(a["threshold"]) < LEAST_THRESHOLD:
        raise Decline("a threshold below 10")
    return float(a["beta"])


@op("aten.mish.default", "aten.mish_.default")
def mish(lo: Lowering, a: Args) -> Value:
    """``x tanh(softplus(x))``."""
    x = lo.use(a["self"])
    return lo.emit({"kind": "mul"}, [x, smooth(lo, "tanh", softplus_of(lo, x))], lo.shape_at(x))


def below_zero(lo: Lowering, x: int) -> tuple[int, int]:
    """max(x, 0) and min(x, 0)."""
    positive = unary(lo, {"kind": "relu"}, x)
    return positive, lo.emit({"kind": "sub"}, [x, positive], lo.shape_at(x))


def elu_of(lo: Lowering, x: int, alpha: float, scale: float, slope: float) -> int:
    """``scale max(x, 0) + alpha scale (e^(slope min(x, 0)) - 1)``."""
    positive, negative = below_zero(lo, x)
    curve = add_scalar(lo, smooth(lo, "exp", mul_scalar(lo, negative, slope)), -1.0)
    parts = [mul_scalar(lo, positive, scale), mul_scalar(lo, curve, alpha * scale)]
    return lo.emit({"kind": "add"}, parts, lo.shape_at(x))


@op("aten.elu.default", "aten.elu_.default")
def elu(lo: Lowering, a: Args) -> Value:
    """x above zero, ``alpha (e^x - 1)`` below."""
    return elu_of(lo, lo.use(a["self"]), float(a["alpha"]), float(a["scale"]), float(a["input_scale"]))


@op("aten.selu.default", "aten.selu_.default")
def selu(lo: Lowering, a: Args) -> Value:
    """ELU with the constants of Klambauer et al., 2017."""
    return elu_of(lo, lo.use(a["self"]), 1.6732632423543772, 1.0507009873554805, 1.0)


@op("aten.celu.default", "aten.celu_.default")
def celu(lo: Lowering, a: Args) -> Value:
    """x above zero, ``alpha (e^(x / alpha) - 1)`` below."""
    alpha = float(a["alpha"])
    return elu_of(lo, lo.use(a["self"]), alpha, 1.0, 1.0 / alpha)


@op("aten.softshrink.default")
def softshrink(lo: Lowering, a: Args) -> Value:
    """``relu(x - lambda) - relu(-x - lambda)``."""
    x, limit = lo.use(a["self"]), float(a["lambd"])
    sides = [unary(lo, {"kind": "relu"}, add_scalar(lo, mul_scalar(lo, x, s), -limit)) for s in (1.0, -1.0)]
    return lo.emit({"kind": "sub"}, sides, lo.shape_at(x))


@op("aten.log2.default", "aten.log10.default")
def log_to_a_base(lo: Lowering, a: Args) -> Value:
    """The natural logarithm times a constant."""
    base = 2 if "log2" in str(lo.operator) else 10
    return mul_scalar(lo, smooth(lo, "log", lo.use(a["self"])), 1 / math.log(base))


@op("aten.log1p.default")
def log1p(lo: Lowering, a: Args) -> Value:
    """``log(1 + x)``."""
    return smooth(lo, "log", add_scalar(lo, lo.use(a["self"]), 1.0))


@op("aten.expm1.default")
def expm1(lo: Lowering, a: Args) -> Value:
    """``e^x - 1``."""
    return add_scalar(lo, smooth(lo, "exp", lo.use(a["self"])), -1.0)


@op("aten.exp2.default")
def exp2(lo: Lowering, a: Args) -> Value:
    """``e^(x log 2)``."""
    return smooth(lo, "exp", mul_scalar(lo, lo.use(a["self"]), math.log(2)))


@op("aten.sinh.default", "aten.cosh.default")
def hyperbolic(lo: Lowering, a: Args) -> Value:
    """``(e^x -+ e^-x) / 2``."""
    x = lo.use(a["self"])
    up, down = (smooth(lo, "exp", mul_scalar(lo, x, s)) for s in (1.0, -1.0))
    kind = "sub" if "sinh" in str(lo.operator) else "add"
    return mul_scalar(lo, lo.emit({"kind": kind}, [up, down], lo.shape_at(x)), 0.5)


@op("aten.logit.default")
def logit(lo: Lowering, a: Args) -> Value:
    """``log(x) - log(1 - x)``."""
    x = lo.use(a["self"])
    if a["eps"] is not None:
        x = unary(lo, {"kind": "clamp", "lo": float(a["eps"]), "hi": 1.0 - float(a["eps"])}, x)
    logs = [smooth(lo, "log", y) for y in (x, add_scalar(lo, mul_scalar(lo, x, -1.0), 1.0))]
    return lo.emit({"kind": "sub"}, logs, lo.shape_at(x))


@op("aten.logaddexp.default")
def logaddexp(lo: Lowering, a: Args) -> Value:
    """``x + softplus(y - x)``."""
    x, y = lo.use(a["self"]), lo.use(a["other"])
    above = softplus_of(lo, lo.emit({"kind": "sub"}, [y, x], lo.shape))
    return lo.emit({"kind": "add"}, [x, above], lo.shape)


@op("aten.xlogy.Tensor")
def xlogy(lo: Lowering, a: Args) -> Value:
    """``x log y``."""
    return lo.emit({"kind": "mul"}, [lo.use(a["self"]), smooth(lo, "log", lo.use(a["other"]))], lo.shape)


@op("aten.special_entr.default")
def entropy(lo: Lowering, a: Args) -> Value:
    """``-x log x`` of x from 0 on; 0 of 0, as the logarithm of 0 is a number here."""
    x = lo.use(a["self"])
    product = lo.emit({"kind": "mul"}, [x, smooth(lo, "log", x)], lo.shape_at(x))
    return mul_scalar(lo, product, -1.0)
