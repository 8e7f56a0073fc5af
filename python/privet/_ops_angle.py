"""Angles and what is made of them, the error function, and inverses that logarithms give."""

from __future__ import annotations

import math

from ._lowering import Args, Lowering, Value, op
from ._ops_compare import greater
from ._ops_norm import magnitude
from ._ops_pointwise import add_scalar, mul_scalar
from ._ops_smooth import smooth


def product(lo: Lowering, x: int, y: int) -> int:
    """x y."""
    return lo.emit({"kind": "mul"}, [x, y], lo.shape_at(x))


def signed(lo: Lowering, size: int, x: int) -> int:
    """A size that is not negative, with the sign of x."""
    negative = greater(lo, mul_scalar(lo, x, -1.0)).node
    away = lo.emit({"kind": "choose"}, [negative, mul_scalar(lo, size, 2.0)], lo.shape_at(x))
    return lo.emit({"kind": "sub"}, [size, away], lo.shape_at(x))


@op("aten.sin.default", "aten.cos.default", "aten.erf.default")
def of_one(lo: Lowering, a: Args) -> Value:
    """Sine, cosine, error function."""
    name = str(lo.operator).split(".")[1]
    return smooth(lo, name, lo.use(a["self"]))


@op("aten.erfc.default")
def erfc(lo: Lowering, a: Args) -> Value:
    """``1 - erf(x)``."""
    return add_scalar(lo, mul_scalar(lo, smooth(lo, "erf", lo.use(a["self"])), -1.0), 1.0)


@op("aten.tan.default")
def tan(lo: Lowering, a: Args) -> Value:
    """Sine over cosine."""
    x = lo.use(a["self"])
    return product(lo, smooth(lo, "sin", x), smooth(lo, "reciprocal", smooth(lo, "cos", x)))


@op("aten.sinc.default")
def sinc(lo: Lowering, a: Args) -> Value:
    """``sin(pi x) / (pi x)``; near 0, where both are small, ``1 - (pi x)^2 / 6``."""
    x = mul_scalar(lo, lo.use(a["self"]), math.pi)
    shape = lo.shape_at(x)
    square = product(lo, x, x)
    far = greater(lo, add_scalar(lo, square, -NEAR)).node
    # what is chosen only where x is not small may be anything elsewhere
    apart = add_scalar(lo, lo.emit({"kind": "choose"}, [far, add_scalar(lo, x, -1.0)], shape), 1.0)
    ratio = product(lo, smooth(lo, "sin", x), smooth(lo, "reciprocal", apart))
    fourth = mul_scalar(lo, product(lo, square, square), 1.0 / 120.0)
    series = lo.emit({"kind": "add"}, [add_scalar(lo, mul_scalar(lo, square, -1.0 / 6.0), 1.0), fourth], shape)
    change = lo.emit({"kind": "choose"}, [far, lo.emit({"kind": "sub"}, [ratio, series], shape)], shape)
    return lo.emit({"kind": "add"}, [series, change], shape)


NEAR = 1.0 / 16.0
"""Squares of angles up to this are small: the first three terms of a sine's series are right to 2^-24."""


@op("aten.asinh.default")
def asinh(lo: Lowering, a: Args) -> Value:
    """``log(|x| + sqrt(x^2 + 1))`` with the sign of x."""
    x = lo.use(a["self"])
    size = magnitude(lo, x)
    root = smooth(lo, "sqrt", add_scalar(lo, product(lo, x, x), 1.0))
    return signed(lo, smooth(lo, "log", lo.emit({"kind": "add"}, [size, root], lo.shape_at(x))), x)


@op("aten.acosh.default")
def acosh(lo: Lowering, a: Args) -> Value:
    """``log(x + sqrt(x^2 - 1))`` of x from 1 on."""
    x = lo.use(a["self"])
    root = smooth(lo, "sqrt", add_scalar(lo, product(lo, x, x), -1.0))
    return smooth(lo, "log", lo.emit({"kind": "add"}, [x, root], lo.shape_at(x)))


@op("aten.atanh.default")
def atanh(lo: Lowering, a: Args) -> Value:
    """``(log(1 + x) - log(1 - x)) / 2`` of x between -1 and 1."""
    x = lo.use(a["self"])
    logs = [smooth(lo, "log", add_scalar(lo, mul_scalar(lo, x, s), 1.0)) for s in (1.0, -1.0)]
    return mul_scalar(lo, lo.emit({"kind": "sub"}, logs, lo.shape_at(x)), 0.5)
