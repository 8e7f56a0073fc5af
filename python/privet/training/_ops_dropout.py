"""Dropout: public coins, alike in the forward and the backward pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from .._lowering import Args, Decline, Lowering, Value
from .._ops_layers import reshape_to
from .._ops_pointwise import mul_scalar, multiply, unary
from .._ops_shape import convert as plain_convert
from .._ops_smooth import div as plain_div
from ._lowering import Factor, TrainingLowering, training


@dataclass(frozen=True)
class Coins(Factor):
    """``scale`` where a coin of the stream says keep, else 0."""

    stream: int
    keep: float
    shape: tuple[int, ...]
    scale: float = 1.0

    def times(self, lo: Lowering, y: int) -> int:
        """The elements that are kept, scaled."""
        if self.keep >= 1:
            return mul_scalar(lo, y, self.scale)
        shape = lo.shape_at(y)
        if list(self.shape) != shape:
            raise Decline("coins for whole channels: use torch.nn.Dropout")
        kept = unary(lo, {"kind": "dropout", "stream": self.stream, "keep": self.keep}, y)
        return mul_scalar(lo, kept, self.scale)


def coins(lo: Lowering, keep: float, shape: list[int]) -> Coins:
    """A new stream."""
    assert isinstance(lo, TrainingLowering)
    lo.streams += 1
    return Coins(lo.streams - 1, keep, tuple(shape))


@training("aten.native_dropout.default")
def native_dropout(lo: Lowering, a: Args) -> Value:
    """The elements that are kept, by 1 / keep; and which ones."""
    x = lo.use(a["input"])
    if a["train"] is False or a["p"] == 0:
        return (x, coins(lo, 1.0, lo.shape_at(x)))
    if a["p"] == 1:
        raise Decline("dropout of everything")
    mask = coins(lo, 1.0 - float(a["p"]), lo.shape_at(x))
    return (replace(mask, scale=1.0 / mask.keep).times(lo, x), mask)


@training("aten.native_dropout_backward.default")
def native_dropout_backward(lo: Lowering, a: Args) -> Value:
    """The gradient of what was kept."""
    mask = lo.value(a["mask"])
    if not isinstance(mask, Coins):
        raise Decline("a mask that is no dropout's")
    return replace(mask, scale=float(a["scale"])).times(lo, lo.use(a["grad_output"]))


@training("aten.bernoulli.p")
def bernoulli(lo: Lowering, a: Args) -> Value:
    """Coins as ``torch.nn.functional.dropout`` throws them where it has no kernel of its own."""
    if not 0 < a["p"] < 1:
        raise Decline("coins that always fall alike")
    return coins(lo, float(a["p"]), lo.shape)


@training("aten.div_.Scalar", "aten.div.Scalar", "aten.div.Tensor")
def div(lo: Lowering, a: Args) -> Value:
    """Coins over the probability of keeping; everything else as for inference."""
    mask, number = lo.value(a["self"]) if not isinstance(a["self"], (int, float)) else None, lo.scalar(a["other"])
    if isinstance(mask, Coins) and number:
        return replace(mask, scale=mask.scale / number)
    return plain_div(lo, a)


@training("aten._to_copy.default")
def convert(lo: Lowering, a: Args) -> Value:
    """Coins as numbers; everything else as for inference."""
    mask = lo.value(a["self"])
    if isinstance(mask, Coins):
        return mask
    return plain_convert(lo, a)


@training("aten.view.default", "aten.reshape.default")
def reshape(lo: Lowering, a: Args) -> Value:
    """Coins in another shape; everything else as for inference."""
    mask = lo.value(a["self"])
    if isinstance(mask, Coins):
        return replace(mask, shape=tuple(lo.shape))
    return reshape_to(lo, lo.use(a["self"]), lo.shape)


@training("aten.mul.Tensor", "aten.mul_.Tensor", "aten.mul.Scalar")
def mul(lo: Lowering, a: Args) -> Value:
    """A product, one factor of which may be coins or a sign."""
    for x, y in ((a["self"], a["other"]), (a["other"], a["self"])):
        factor = lo.value(x) if not isinstance(x, (int, float)) else None
        if isinstance(factor, Factor):
            number = lo.scalar(y)
            if number is None:
                return factor.times(lo, lo.use(y))
            if isinstance(factor, Coins):
                return replace(factor, scale=factor.scale * number)
            return factor.times(lo, lo.use(lo.constant(torch.full(lo.shape, number, dtype=torch.float64))))
    return multiply(lo, a["self"], a["other"])
