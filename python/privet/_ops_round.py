"""Whole numbers from real ones: floor, ceiling, rounding, and remainders.

A computed value is off by a few units in its last place, so one that should be whole may round to its neighbour.
"""

from __future__ import annotations

from typing import Any

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_compare import bounds, greater
from ._ops_pointwise import add_scalar, broadcast, mul_scalar, relu_of
from ._ops_smooth import div, smooth


def is_whole(lo: Lowering, x: int) -> bool:
    """Whether a node is known to hold whole numbers."""
    node = lo.graph.nodes[x]
    if node.op == {"kind": "smooth", "function": "floor"} or bounds(lo, x) is not None:
        return True
    if node.kind in ("add_scalar", "mul_scalar") and not float(node.op["value"]).is_integer():
        return False
    return node.kind in KEEP_WHOLE and all(is_whole(lo, i) for i in node.inputs)


KEEP_WHOLE = (
    "neg", "add", "sub", "mul", "relu", "add_scalar", "mul_scalar", "reshape", "permute", "slice", "concat", "expand",
    "pad",
)  # fmt: skip
"""Operations that make whole numbers of such."""


def floor_of(lo: Lowering, x: int) -> int:
    """The largest whole number that is not above x; nothing to do for whole numbers."""
    return x if is_whole(lo, x) else smooth(lo, "floor", x)


def trunc_of(lo: Lowering, x: int) -> int:
    """Towards zero: ``floor(max(x, 0)) - floor(max(-x, 0))``."""
    if is_whole(lo, x):
        return x
    sides = [floor_of(lo, relu_of(lo, mul_scalar(lo, x, s))) for s in (1.0, -1.0)]
    return lo.emit({"kind": "sub"}, sides, lo.shape_at(x))


def nearest(lo: Lowering, x: int) -> int:
    """``floor(x + 1/2)``: halves go up, where torch takes the even one."""
    return floor_of(lo, add_scalar(lo, x, 0.5))


@op("aten.floor.default", "aten.floor_.default")
def floor(lo: Lowering, a: Args) -> Value:
    """Towards minus infinity."""
    return floor_of(lo, lo.use(a["self"]))


@op("aten.ceil.default", "aten.ceil_.default")
def ceil(lo: Lowering, a: Args) -> Value:
    """``-floor(-x)``."""
    return mul_scalar(lo, floor_of(lo, mul_scalar(lo, lo.use(a["self"]), -1.0)), -1.0)


@op("aten.trunc.default", "aten.trunc_.default", "aten.fix.default")
def trunc(lo: Lowering, a: Args) -> Value:
    """Towards zero."""
    return trunc_of(lo, lo.use(a["self"]))


@op("aten.round.default", "aten.round_.default")
def round_(lo: Lowering, a: Args) -> Value:
    """To the nearest."""
    return nearest(lo, lo.use(a["self"]))


@op("aten.round.decimals")
def round_decimals(lo: Lowering, a: Args) -> Value:
    """To so many decimal places."""
    unit = 10.0 ** int(a["decimals"])
    return mul_scalar(lo, nearest(lo, mul_scalar(lo, lo.use(a["self"]), unit)), 1.0 / unit)


@op("aten.frac.default")
def frac(lo: Lowering, a: Args) -> Value:
    """What truncation leaves."""
    x = lo.use(a["self"])
    return lo.emit({"kind": "sub"}, [x, trunc_of(lo, x)], lo.shape_at(x))


@op("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(lo: Lowering, a: Args) -> Value:
    """A quotient, rounded as asked for."""
    number = lo.scalar(a["other"])
    if not lo.result_dtype.is_floating_point and number is not None and number > 0:
        return whole_quotient(lo, lo.use(a["self"]), number, a["rounding_mode"])
    quotient = div(lo, a)
    if not isinstance(quotient, int):
        raise Decline("several results")
    mode = a["rounding_mode"]
    if mode is None:
        return quotient
    return floor_of(lo, quotient) if mode == "floor" else trunc_of(lo, quotient)


def whole_quotient(lo: Lowering, x: int, number: float, mode: str | None) -> int:
    """Of whole numbers: half a unit more, so that what a factor 1 / n is rounded by cannot matter."""
    if mode == "floor":
        return broadcast(lo, floor_of(lo, mul_scalar(lo, add_scalar(lo, x, 0.5), 1.0 / number)))
    sides = [relu_of(lo, mul_scalar(lo, x, s)) for s in (1.0, -1.0)]
    parts = [floor_of(lo, mul_scalar(lo, add_scalar(lo, side, 0.5), 1.0 / number)) for side in sides]
    return broadcast(lo, lo.emit({"kind": "sub"}, parts, lo.shape_at(x)))


@op("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(lo: Lowering, a: Args) -> Value:
    """A quotient, towards minus infinity."""
    return div_mode(lo, {**a, "rounding_mode": "floor"})


def less(lo: Lowering, a: Args, whole: int) -> int:
    """``x - y whole``."""
    x, number = lo.use(a["self"]), lo.scalar(a["other"])
    if number is not None:
        part = mul_scalar(lo, whole, number)
    else:
        part = lo.emit({"kind": "mul"}, [whole, lo.use(a["other"])], lo.shape)
    return lo.emit({"kind": "sub"}, [broadcast(lo, x), part], lo.shape)


@op("aten.remainder.Scalar", "aten.remainder.Tensor", "aten.fmod.Scalar", "aten.fmod.Tensor")
def remainder(lo: Lowering, a: Args) -> Value:
    """``x - y floor(x / y)``, or towards zero: the sign is that of y, or of x."""
    mode = "trunc" if "fmod" in str(lo.operator) else "floor"
    whole = div_mode(lo, {**a, "rounding_mode": mode})
    assert isinstance(whole, int)
    return less(lo, a, whole)


# --- Signs -------------------------------------------------------------------------------------------


@op("aten.signbit.default")
def signbit(lo: Lowering, a: Args) -> Value:
    """x < 0."""
    return greater(lo, mul_scalar(lo, lo.use(a["self"]), -1.0))


@op("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(lo: Lowering, a: Args) -> Value:
    """``|x|`` with the sign of y, which of 0 is plus."""
    y: Any = a["other"]
    x = lo.use(a["self"])
    size = lo.emit({"kind": "sub"}, [mul_scalar(lo, relu_of(lo, x), 2.0), x], lo.shape_at(x))
    number = lo.scalar(y)
    if number is not None:
        return mul_scalar(lo, size, -1.0 if number < 0 else 1.0)
    size = broadcast(lo, size)
    negative = broadcast(lo, greater(lo, mul_scalar(lo, lo.use(y), -1.0)).node)
    away = lo.emit({"kind": "choose"}, [negative, mul_scalar(lo, size, 2.0)], lo.shape)
    return lo.emit({"kind": "sub"}, [size, away], lo.shape)


@op("aten.nan_to_num.default")
def nan_to_num(lo: Lowering, a: Args) -> Value:
    """Numbers of fixed point are finite."""
    return lo.use(a["self"])


@op("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(lo: Lowering, a: Args) -> Value:
    """``x + w (y - x)``."""
    x, weight = lo.use(a["self"]), lo.scalar(a["weight"])
    gap = lo.emit({"kind": "sub"}, [lo.use(a["end"]), x], lo.shape)
    if weight is not None:
        part = mul_scalar(lo, gap, weight)
    else:
        part = lo.emit({"kind": "mul"}, [gap, lo.use(a["weight"])], lo.shape)
    return lo.emit({"kind": "add"}, [x, part], lo.shape)
