"""Angles and what is made of them, the error function, and inverses that logarithms give."""

from __future__ import annotations

import math

from ._lowering import Args, Lowering, Value, op
from ._ops_compare import greater
from ._ops_layers import expand_to
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


# --- Inverses of angles ------------------------------------------------------------------------------

ARC = (
    1.0, -0.3333314528, 0.1999355085, -0.1420889944, 0.1065626393, -0.0752896400, 0.0429096138, -0.0161657367,
    0.0028662257,
)  # fmt: skip
"""``atan(t) / t`` in t^2, from 0 to 1, to 2e-8 (Abramowitz and Stegun, 4.4.49)."""


def polynomial(lo: Lowering, x: int, coefficients: tuple[float, ...]) -> int:
    """The sum of coefficients times powers of x, in as many steps as the logarithm of their number (Estrin)."""
    shape = lo.shape_at(x)
    values: list[int | float] = list(coefficients)
    power = x
    while len(values) > 1:
        pairs: list[int | float] = []
        for i in range(0, len(values) - 1, 2):
            low, high = values[i], values[i + 1]
            term = mul_scalar(lo, power, high) if isinstance(high, float) else product(lo, power, high)
            if isinstance(low, float):
                pairs.append(add_scalar(lo, term, low))
            else:
                pairs.append(lo.emit({"kind": "add"}, [low, term], shape))
        if len(values) % 2:
            pairs.append(values[-1])
        values = pairs
        if len(values) > 1:
            power = product(lo, power, power)
    assert isinstance(values[0], int)
    return values[0]


def arc(lo: Lowering, t: int) -> int:
    """The arc tangent of a number from 0 to 1."""
    return product(lo, t, polynomial(lo, product(lo, t, t), ARC))


def instead(lo: Lowering, bit: int, x: int, y: int) -> int:
    """x where the bit is 1, else y."""
    shape = lo.shape_at(y)
    change = lo.emit({"kind": "choose"}, [bit, lo.emit({"kind": "sub"}, [x, y], shape)], shape)
    return lo.emit({"kind": "add"}, [y, change], shape)


def less_than(lo: Lowering, whole: float, x: int) -> int:
    """``whole - x``."""
    return add_scalar(lo, mul_scalar(lo, x, -1.0), whole)


@op("aten.atan.default")
def atan(lo: Lowering, a: Args) -> Value:
    """Of what exceeds 1 a quarter of a turn less the arc of its reciprocal."""
    x = lo.use(a["self"])
    size = magnitude(lo, x)
    large = greater(lo, add_scalar(lo, size, -1.0)).node
    above = lo.emit({"kind": "clamp", "lo": 1.0}, [size], lo.shape_at(x))
    angle = arc(lo, instead(lo, large, smooth(lo, "reciprocal", above), size))
    return signed(lo, instead(lo, large, less_than(lo, math.pi / 2, angle), angle), x)


def asin_of(lo: Lowering, x: int) -> int:
    """``2 atan(x / (1 + sqrt(1 - x^2)))``, whose argument is at most 1."""
    root = smooth(lo, "sqrt", less_than(lo, 1.0, product(lo, x, x)))
    size = product(lo, magnitude(lo, x), smooth(lo, "reciprocal", add_scalar(lo, root, 1.0)))
    return signed(lo, mul_scalar(lo, arc(lo, size), 2.0), x)


@op("aten.asin.default")
def asin(lo: Lowering, a: Args) -> Value:
    """Of x between -1 and 1."""
    return asin_of(lo, lo.use(a["self"]))


@op("aten.acos.default")
def acos(lo: Lowering, a: Args) -> Value:
    """A quarter of a turn less the arc sine."""
    return less_than(lo, math.pi / 2, asin_of(lo, lo.use(a["self"])))


@op("aten.atan2.default")
def atan2(lo: Lowering, a: Args) -> Value:
    """The angle of (x, y): the arc of the smaller side over the larger one, in its eighth of a turn."""
    y, x = (expand_to(lo, lo.use(a[name]), lo.shape) for name in ("self", "other"))
    shape = lo.shape
    high, wide = magnitude(lo, y), magnitude(lo, x)
    steep = greater(lo, lo.emit({"kind": "sub"}, [high, wide], shape)).node
    larger, smaller = instead(lo, steep, high, wide), instead(lo, steep, wide, high)
    angle = arc(lo, product(lo, smaller, smooth(lo, "reciprocal", larger)))
    angle = instead(lo, steep, less_than(lo, math.pi / 2, angle), angle)
    behind = greater(lo, mul_scalar(lo, x, -1.0)).node
    return signed(lo, instead(lo, behind, less_than(lo, math.pi, angle), angle), y)
