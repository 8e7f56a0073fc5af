"""Comparisons, bits, and choices by them.

A bit is held as the number 0 or 1, so that sums and products of bits are what logic asks for. What a comparison gives
is held as a :class:`Bit` until something needs the number: a choice by it costs less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ._inputs import Ids
from ._lowering import Args, Decline, Lowering, Symbol, Value, op
from ._masks import LARGE, PROVISIONAL
from ._ops_layers import dims_of, expand_to, reshape_to
from ._ops_pointwise import add_scalar, mul_scalar

MOST_ENTRIES = 4096
"""Rows of a table that are looked up at an index that is computed: each is a comparison."""


@dataclass(frozen=True)
class Bit(Symbol):
    """``x > 0`` of a graph node, or its opposite."""

    node: int
    opposite: bool = False

    def number(self, lo: Lowering) -> int:
        """1 or 0."""
        shape = lo.shape_at(self.node)
        ones = lo.use(lo.constant(torch.ones(shape)))
        found = lo.emit({"kind": "choose"}, [self.node, ones], shape)
        lo.bounds[found] = (0, 1)
        return inverted(lo, found) if self.opposite else found


def inverted(lo: Lowering, bit: int) -> int:
    """1 - b."""
    node = add_scalar(lo, mul_scalar(lo, bit, -1.0), 1.0)
    lo.bounds[node] = (0, 1)
    return node


def constant_bits(lo: Lowering, bits: Tensor, make: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """What is computed from constant bits, which is as secret as they are."""
    tensor = make(bits)
    return lo.constant(tensor, None if lo.is_literal(bits) else f"{lo.name_of(bits)}.{name}")


def as_bit(lo: Lowering, argument: Any) -> int:
    """The node of a private value that is 0 or 1."""
    node = lo.use(argument)
    if lo.dtype(argument) != torch.bool and bounds(lo, node) != (0, 1):
        raise Decline("an operand that is not known to be 0 or 1")
    return node


def bounds(lo: Lowering, node: int) -> tuple[int, int] | None:
    """The least and the largest value of a node of whole numbers, as far as its operands tell."""
    if node not in lo.bounds:
        found = bounds_by_operands(lo, node)
        if found is None:
            return None
        lo.bounds[node] = found
    return lo.bounds[node]


def bounds_by_operands(lo: Lowering, node: int) -> tuple[int, int] | None:
    n = lo.graph.nodes[node]
    if n.kind == "parameter":
        tensor = lo.parameters[n.op["name"]]
        whole = tensor.numel() and bool((tensor == tensor.round()).all()) and bool(torch.isfinite(tensor).all())
        return (int(tensor.min()), int(tensor.max())) if whole else None
    if n.kind == "argmax":
        return (0, lo.shape_at(n.inputs[0])[n.op["dim"]] - 1)
    given = [bounds(lo, i) for i in n.inputs]
    if not given or any(b is None for b in given):
        return None
    ends = [b for b in given if b is not None]
    low, high = ends[0]
    if n.kind in ("reshape", "permute", "expand", "slice", "reverse"):
        return low, high
    if n.kind == "concat":
        return min(b[0] for b in ends), max(b[1] for b in ends)
    if n.kind == "pad":
        return min(0, low), max(0, high)
    if n.kind == "neg":
        return -high, -low
    if n.kind == "clamp":
        limits = [n.op.get("lo"), n.op.get("hi")]
        if all(e is None or float(e).is_integer() for e in limits):
            low = low if limits[0] is None else max(low, int(limits[0]))
            return low, high if limits[1] is None else min(high, int(limits[1]))
        return None
    if n.kind == "add_scalar" and float(n.op["value"]).is_integer():
        return low + int(n.op["value"]), high + int(n.op["value"])
    if n.kind == "mul_scalar" and float(n.op["value"]).is_integer():
        products = [low * int(n.op["value"]), high * int(n.op["value"])]
        return min(products), max(products)
    if n.kind == "sum":
        count = math.prod(lo.shape_at(n.inputs[0])[d] for d in n.op["dims"])
        return low * count, high * count
    if n.kind in ("add", "sub", "mul"):
        sign = -1 if n.kind == "sub" else 1
        pairs = [(x, sign * y if n.kind != "mul" else y) for x in ends[0] for y in ends[1]]
        values = [x * y if n.kind == "mul" else x + y for x, y in pairs]
        return min(values), max(values)
    return None


def one_hot(lo: Lowering, index: int, classes: int) -> tuple[int, int]:
    """One-hot rows of private whole numbers along a new last dimension, and the index that is first: by comparisons.

    PyTorch refuses an index that is out of range; here it is that of the nearer end.
    """
    known = bounds(lo, index) or (0, classes - 1)
    first, last = max(known[0], 0), min(known[1], classes - 1)
    count = last - first + 1
    if count > MOST_ENTRIES:
        raise Decline(f"a private index that is computed, of {count} possible values")
    shape = lo.shape_at(index)
    if count == 1:
        zero = mul_scalar(lo, reshape_to(lo, index, [*shape, 1]), 0.0)
        return add_scalar(lo, zero, 1.0), first
    wide = expand_to(lo, reshape_to(lo, index, [*shape, 1]), [*shape, count - 1])
    ends = lo.use(lo.constant(torch.arange(first, last, dtype=torch.float32) + 0.5))
    above = greater(lo, lo.emit({"kind": "sub"}, [wide, ends], [*shape, count - 1])).number(lo)
    none = [[0, 0] for _ in shape]
    after = lo.emit({"kind": "pad", "amounts": [*none, [0, 1]]}, [above], [*shape, count])
    before = lo.emit({"kind": "pad", "amounts": [*none, [1, 0]]}, [above], [*shape, count])
    start = torch.zeros(count)
    start[0] = 1.0
    before = lo.emit({"kind": "add"}, [before, lo.use(lo.constant(start))], [*shape, count])
    return lo.emit({"kind": "sub"}, [before, after], [*shape, count]), first


# --- Comparisons -------------------------------------------------------------------------------------


def greater(lo: Lowering, x: int) -> Bit:
    """x > 0."""
    return Bit(lo.emit({"kind": "positive"}, [x], lo.shape_at(x)))


def difference(lo: Lowering, x: Any, y: Any) -> int:
    """x - y, either of which may be a public number."""
    left, right = lo.scalar(x), lo.scalar(y)
    if right is not None:
        node = add_scalar(lo, lo.use(x), -right)
    elif left is not None:
        node = add_scalar(lo, mul_scalar(lo, lo.use(y), -1.0), left)
    else:
        node = lo.emit({"kind": "sub"}, [lo.use(x), lo.use(y)], lo.shape)
    return expand_to(lo, node, lo.shape)


@op("aten.gt.Scalar", "aten.gt.Tensor")
def gt(lo: Lowering, a: Args) -> Value:
    """x > y."""
    return greater(lo, difference(lo, a["self"], a["other"]))


@op("aten.lt.Scalar", "aten.lt.Tensor")
def lt(lo: Lowering, a: Args) -> Value:
    """x < y."""
    return greater(lo, mul_scalar(lo, difference(lo, a["self"], a["other"]), -1.0))


@op("aten.ge.Scalar", "aten.ge.Tensor")
def ge(lo: Lowering, a: Args) -> Value:
    """Not x < y."""
    return Bit(greater(lo, mul_scalar(lo, difference(lo, a["self"], a["other"]), -1.0)).node, True)


@op("aten.le.Scalar", "aten.le.Tensor")
def le(lo: Lowering, a: Args) -> Value:
    """Not x > y."""
    return Bit(greater(lo, difference(lo, a["self"], a["other"])).node, True)


def equals(lo: Lowering, x: Any, y: Any) -> int:
    """1 where x = y: a column of one-hot rows, a bit or its opposite, or neither below nor above."""
    value, number = lo.value(x) if isinstance(x, torch.fx.Node) else None, lo.scalar(y)
    if number is not None and isinstance(value, Ids):
        return value.equal(lo, int(number)) if float(number).is_integer() else mul_scalar(lo, value.equal(lo, 0), 0.0)
    if number in (0.0, 1.0):
        node = lo.use(x)
        if lo.dtype(x) == torch.bool or bounds(lo, node) == (0, 1):
            return node if number == 1.0 else inverted(lo, node)
    if number is not None and not math.isfinite(number):
        return mul_scalar(lo, lo.use(x), 0.0)  # numbers of fixed point are finite
    apart = difference(lo, x, y)
    above, below = (greater(lo, mul_scalar(lo, apart, s)).number(lo) for s in (1.0, -1.0))
    node = inverted(lo, lo.emit({"kind": "add"}, [above, below], lo.shape))
    return node


@op("aten.eq.Scalar", "aten.eq.Tensor")
def eq(lo: Lowering, a: Args) -> Value:
    """x = y."""
    return equals(lo, a["self"], a["other"])


@op("aten.ne.Scalar", "aten.ne.Tensor")
def ne(lo: Lowering, a: Args) -> Value:
    """Not x = y."""
    return inverted(lo, equals(lo, a["self"], a["other"]))


def truth(lo: Lowering, argument: Any) -> int:
    """1 where a value is not 0."""
    node = lo.use(argument)
    if lo.dtype(argument) == torch.bool or bounds(lo, node) == (0, 1):
        return node
    above, below = (greater(lo, mul_scalar(lo, node, s)).number(lo) for s in (1.0, -1.0))
    both = lo.emit({"kind": "add"}, [above, below], lo.shape_at(node))
    lo.bounds[both] = (0, 1)
    return both


# --- Logic -------------------------------------------------------------------------------------------


def logic(lo: Lowering, a: Args, numeric: bool) -> tuple[int, int]:
    if not numeric and any(lo.dtype(a[k]) != torch.bool for k in ("self", "other")):
        raise Decline("bits of whole numbers")
    return truth(lo, a["self"]), truth(lo, a["other"])


def product_of_bits(lo: Lowering, x: int, y: int) -> int:
    node = lo.emit({"kind": "mul"}, [x, y], lo.shape)
    lo.bounds[node] = (0, 1)
    return node


def both(lo: Lowering, a: Args, numeric: bool) -> Value:
    for one, other in (("self", "other"), ("other", "self")):
        known = lo.tensor(a[one])
        if known is not None and known.dtype == torch.bool and bool(known.all()):
            return expand_to(lo, truth(lo, a[other]), lo.shape)
    x, y = logic(lo, a, numeric)
    return product_of_bits(lo, x, y)


@op("aten.logical_and.default")
def logical_and(lo: Lowering, a: Args) -> Value:
    """x y."""
    return both(lo, a, True)


@op("aten.__and__.Tensor", "aten.bitwise_and.Tensor", "aten.__iand__.Tensor")
def bitwise_and(lo: Lowering, a: Args) -> Value:
    """x y of bits."""
    return both(lo, a, False)


def either(lo: Lowering, a: Args, numeric: bool, factor: float) -> Value:
    x, y = logic(lo, a, numeric)
    shared = mul_scalar(lo, product_of_bits(lo, x, y), factor)
    total = lo.emit({"kind": "add"}, [x, y], lo.shape)
    node = lo.emit({"kind": "sub"}, [total, shared], lo.shape)
    lo.bounds[node] = (0, 1)
    return node


@op("aten.logical_or.default")
def logical_or(lo: Lowering, a: Args) -> Value:
    """x + y - x y."""
    return either(lo, a, True, 1.0)


@op("aten.__or__.Tensor", "aten.bitwise_or.Tensor", "aten.__ior__.Tensor")
def bitwise_or(lo: Lowering, a: Args) -> Value:
    """x + y - x y of bits."""
    return either(lo, a, False, 1.0)


@op("aten.logical_xor.default")
def logical_xor(lo: Lowering, a: Args) -> Value:
    """x + y - 2 x y."""
    return either(lo, a, True, 2.0)


@op("aten.bitwise_xor.Tensor", "aten.__xor__.Tensor")
def bitwise_xor(lo: Lowering, a: Args) -> Value:
    """x + y - 2 x y of bits."""
    return either(lo, a, False, 2.0)


@op("aten.logical_not.default")
def logical_not(lo: Lowering, a: Args) -> Value:
    """1 - x."""
    return inverted(lo, truth(lo, a["self"]))


@op("aten.bitwise_not.default")
def bitwise_not(lo: Lowering, a: Args) -> Value:
    """1 - x of a bit; a comparison's opposite."""
    if lo.dtype(a["self"]) != torch.bool:
        raise Decline("bits of whole numbers")
    value = lo.value(a["self"])
    return Bit(value.node, not value.opposite) if isinstance(value, Bit) else inverted(lo, lo.use(a["self"]))


def counted(lo: Lowering, a: Args, sign: float) -> int:
    bits = truth(lo, a["self"])
    bits = bits if sign > 0 else inverted(lo, bits)
    rank = len(lo.shape_at(bits))
    node = {"kind": "sum", "dims": dims_of(a.get("dim"), rank), "keepdim": bool(a.get("keepdim", False))}
    total = lo.emit(node, [bits], lo.shape)
    return add_scalar(lo, total, -0.5)


@op("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_of(lo: Lowering, a: Args) -> Value:
    """Their sum is more than a half."""
    return greater(lo, counted(lo, a, 1.0))


@op("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_of(lo: Lowering, a: Args) -> Value:
    """The sum of the opposites is not."""
    return Bit(greater(lo, counted(lo, a, -1.0)).node, True)


@op("aten.isnan.default", "aten.isinf.default")
def never(lo: Lowering, a: Args) -> Value:
    """Numbers of fixed point are finite."""
    return lo.constant(torch.zeros(lo.shape, dtype=torch.bool))


@op("aten.isfinite.default")
def always(lo: Lowering, a: Args) -> Value:
    """Numbers of fixed point are finite."""
    return lo.constant(torch.ones(lo.shape, dtype=torch.bool))


# --- Choices -----------------------------------------------------------------------------------------


def uniform(lo: Lowering, argument: Any) -> float | None:
    """The number that all elements of a public operand are."""
    number = lo.scalar(argument)
    if number is not None:
        return number
    tensor = lo.tensor(argument)
    if tensor is None or not lo.is_literal(tensor) or tensor.numel() == 0:
        return None
    first = tensor.reshape(-1)[0]
    return float(first) if bool((tensor == first).all()) else None


@op("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def where(lo: Lowering, a: Args) -> Value:
    """x where the condition holds, else y."""
    return chosen(lo, a["condition"], a["self"], a["other"])


@op("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(lo: Lowering, a: Args) -> Value:
    """The value where the mask holds, else x."""
    return chosen(lo, a["mask"], a["value"], a["self"])


def chosen(lo: Lowering, condition: Any, x: Any, y: Any) -> int:
    """x where the condition holds, else y; a number that only says "leave out" is never multiplied."""
    x_fill, y_fill = uniform(lo, x), uniform(lo, y)
    known = lo.tensor(condition)
    for fill, other, other_fill, inside in ((y_fill, x, x_fill, False), (x_fill, y, y_fill, True)):
        if fill is not None and fill <= LARGE:
            return filled(lo, condition, other, other_fill, inside)
    if known is not None:
        return by_constant(lo, known, (x, x_fill), (y, y_fill))
    value = lo.value(condition)
    shape = lo.shape
    if isinstance(value, Bit):
        if value.opposite:
            (x, x_fill), (y, y_fill) = (y, y_fill), (x, x_fill)
        gap = expand_to(lo, apart(lo, (x, x_fill), (y, y_fill)), shape)
        bit = value.node if lo.shape_at(value.node) == shape else lo.emit({"kind": "expand"}, [value.node], shape)
        return plus(lo, lo.emit({"kind": "choose"}, [bit, gap], shape), y, y_fill)
    bit = lo.use(condition)
    if x_fill is not None and y_fill is not None:
        node = expand_to(lo, add_scalar(lo, mul_scalar(lo, bit, x_fill - y_fill), y_fill), shape)
        if (x_fill, y_fill) in ((1.0, 0.0), (0.0, 1.0)):
            lo.bounds[node] = (0, 1)
        return node
    gap = apart(lo, (x, x_fill), (y, y_fill))
    return plus(lo, lo.emit({"kind": "mul"}, [bit, gap], shape), y, y_fill)


def apart(lo: Lowering, x: tuple[Any, float | None], y: tuple[Any, float | None]) -> int:
    """x - y."""
    if x[1] is not None and y[1] is not None:
        return lo.use(lo.constant(torch.full(lo.shape, x[1] - y[1])))
    if y[1] is not None:
        return add_scalar(lo, lo.use(x[0]), -y[1])
    if x[1] is not None:
        return add_scalar(lo, mul_scalar(lo, lo.use(y[0]), -1.0), x[1])
    return lo.emit({"kind": "sub"}, [lo.use(x[0]), lo.use(y[0])], lo.shape)


def plus(lo: Lowering, node: int, y: Any, y_fill: float | None) -> int:
    if y_fill is not None:
        return add_scalar(lo, node, y_fill)
    return lo.emit({"kind": "add"}, [node, lo.use(y)], lo.shape)


def filled(lo: Lowering, condition: Any, other: Any, other_fill: float | None, inside: bool) -> int:
    """The other value, and where the condition is ``inside`` what a softmax leaves out."""
    known = lo.tensor(condition)
    if known is not None:
        bits = known if inside else ~known
        mask = constant_bits(lo, bits, lambda b: torch.where(b, -math.inf, 0.0), "mask")
        node = lo.use(mask)
    else:
        bit = lo.use(condition)
        node = lo.emit(
            {"kind": "mul_scalar", "value": PROVISIONAL}, [bit if inside else inverted(lo, bit)], lo.shape_at(bit)
        )
        lo.fills.add(node)
    if other_fill is not None:
        return expand_to(lo, add_scalar(lo, node, other_fill), lo.shape)
    return lo.emit({"kind": "add"}, [lo.use(other), node], lo.shape)


def by_constant(lo: Lowering, known: Tensor, x: tuple[Any, float | None], y: tuple[Any, float | None]) -> int:
    """A constant condition: products with 0 and 1, or nothing where it holds everywhere."""
    for side, holds in ((x, bool(known.all())), (y, not bool(known.any()))):
        if holds and side[1] is None:
            return expand_to(lo, lo.use(side[0]), lo.shape)
    parts = []
    for (value, fill), bits in ((x, known), (y, ~known)):
        if fill is not None:
            if fill:
                parts.append(lo.use(constant_bits(lo, bits, lambda b, f=fill: b * float(f), f"times{fill:g}")))  # type: ignore[misc]
            continue
        keep = lo.use(constant_bits(lo, bits, lambda b: b.to(torch.float32), "kept" if bits is known else "rest"))
        parts.append(lo.emit({"kind": "mul"}, [lo.use(value), keep], lo.shape))
    node = parts[0] if len(parts) == 1 else lo.emit({"kind": "add"}, parts, lo.shape)
    return expand_to(lo, node, lo.shape)


@op("aten.sign.default", "aten.sgn.default")
def sign(lo: Lowering, a: Args) -> Value:
    """[x > 0] - [x < 0]."""
    x = lo.use(a["self"])
    above, below = (greater(lo, mul_scalar(lo, x, s)).number(lo) for s in (1.0, -1.0))
    return lo.emit({"kind": "sub"}, [above, below], lo.shape)


@op("aten.heaviside.default")
def heaviside(lo: Lowering, a: Args) -> Value:
    """1 above 0, 0 below, and the given value at 0."""
    x = lo.use(a["self"])
    above, below = (greater(lo, mul_scalar(lo, x, s)).number(lo) for s in (1.0, -1.0))
    zero = inverted(lo, lo.emit({"kind": "add"}, [above, below], lo.shape_at(x)))
    at_zero = lo.emit({"kind": "mul"}, [zero, lo.use(a["values"])], lo.shape)
    return lo.emit({"kind": "add"}, [above, at_zero], lo.shape)


@op("aten.hardshrink.default")
def hardshrink(lo: Lowering, a: Args) -> Value:
    """x where x > lambda or x < -lambda, else 0."""
    x, limit = lo.use(a["self"]), float(a["lambd"])
    shape = lo.shape_at(x)
    bits = [greater(lo, add_scalar(lo, mul_scalar(lo, x, s), -limit)).node for s in (1.0, -1.0)]
    return lo.emit({"kind": "add"}, [lo.emit({"kind": "choose"}, [b, x], shape) for b in bits], shape)


@op("aten.threshold.default", "aten.threshold_.default")
def threshold(lo: Lowering, a: Args) -> Value:
    """``x if x > threshold else value``; a ReLU for zero and zero."""
    x, limit, value = lo.use(a["self"]), float(a["threshold"]), float(a["value"])
    shape = lo.shape_at(x)
    if limit == 0 and value == 0:
        return lo.emit({"kind": "relu"}, [x], shape)
    bit = greater(lo, add_scalar(lo, x, -limit)).node
    return add_scalar(lo, lo.emit({"kind": "choose"}, [bit, add_scalar(lo, x, -value)], shape), value)
