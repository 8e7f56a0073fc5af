"""Losses as results of a model: of labels that are private indices, or constants of the model."""

from __future__ import annotations

from typing import Any

import torch

from ._inputs import Ids
from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_layers import permute, reshape_to
from ._ops_pointwise import add_scalar, mul_scalar, relu_of
from ._ops_smooth import power_of, smooth, softmax_of

NONE, MEAN, SUM = range(3)
"""torch's reductions."""


def reduced(lo: Lowering, x: int, reduction: int) -> int:
    """Mean or sum of all elements, or all of them."""
    shape = lo.shape_at(x)
    if reduction == NONE or not shape:
        return x
    kind = "mean" if reduction == MEAN else "sum"
    return lo.emit({"kind": kind, "dims": list(range(len(shape))), "keepdim": False}, [x], [])


def along_last(lo: Lowering, x: int, dim: int) -> int:
    """A dimension moved to the end."""
    rank = len(lo.shape_at(x))
    return x if dim == rank - 1 else permute(lo, x, [*(d for d in range(rank) if d != dim), dim])


def labels(lo: Lowering, argument: Any, classes: int) -> int:
    """One-hot rows of labels along a last dimension."""
    value = lo.value(argument)
    if isinstance(value, Ids):
        if value.classes != classes:
            raise Decline("labels that index something else as well")
        return value.node
    known = lo.tensor(argument)
    if known is None:
        raise Decline("labels that are computed")
    hot = (
        torch.nn.functional.one_hot(known.clamp(0, classes - 1), classes)
        * ((known >= 0) & (known < classes))[..., None]
    )
    name = None if lo.is_literal(known) else f"{lo.name_of(known)}.labels{classes}"
    return lo.use(lo.constant(hot.to(torch.float32), name))


def row_sum(lo: Lowering, x: int) -> int:
    """The sum along the last dimension, which goes away."""
    shape = lo.shape_at(x)
    return lo.emit({"kind": "sum", "dims": [len(shape) - 1], "keepdim": False}, [x], shape[:-1])


def weights_of(lo: Lowering, a: Args, classes: int) -> Any:
    """The weight of each class, 0 for the one that is ignored; nothing where all are 1."""
    ignored = int(a.get("ignore_index", -100))
    weight = a.get("weight")
    if not 0 <= ignored < classes:
        return weight
    keep = torch.ones(classes)
    keep[ignored] = 0.0
    known = torch.ones(classes) if weight is None else lo.tensor(weight)
    if known is None:
        raise Decline("weights of classes that are computed")
    name = None if weight is None else f"{lo.name_of(known)}.kept"
    return lo.constant(known * keep, name)


def negative_log(lo: Lowering, a: Args, log_p: int, smoothing: float) -> int:
    """``-sum(w y log p)`` over classes, reduced; with smoothing every class counts a little."""
    dim = 1 if len(lo.shape_at(log_p)) > 1 else 0
    log_p = along_last(lo, log_p, dim)
    shape = lo.shape_at(log_p)
    classes, reduction = shape[-1], int(a["reduction"])
    hot, weight = labels(lo, a["target"], classes), weights_of(lo, a, classes)
    ignoring = 0 <= int(a.get("ignore_index", -100)) < classes or ignores(lo, a["target"], classes)
    rows = hot if weight is None else lo.emit({"kind": "mul"}, [hot, lo.use(weight)], shape)
    loss = row_sum(lo, lo.emit({"kind": "mul"}, [log_p, rows], shape))
    if smoothing:
        every = log_p if weight is None else lo.emit({"kind": "mul"}, [log_p, lo.use(weight)], shape)
        if ignoring:
            raise Decline("smoothed labels of which some are ignored")
        share = mul_scalar(lo, row_sum(lo, every), smoothing / classes)
        loss = lo.emit({"kind": "add"}, [mul_scalar(lo, loss, 1.0 - smoothing), share], shape[:-1])
    loss = mul_scalar(lo, loss, -1.0)
    if reduction != MEAN or (weight is None and not ignoring):
        return reduced(lo, loss, reduction)
    total = reduced(lo, row_sum(lo, rows), SUM)
    return lo.emit({"kind": "mul"}, [reduced(lo, loss, SUM), smooth(lo, "reciprocal", total)], [])


def ignores(lo: Lowering, argument: Any, classes: int) -> bool:
    """Whether constant labels name a class that there is not."""
    known = lo.tensor(argument)
    return known is not None and bool(((known < 0) | (known >= classes)).any())


@op("aten.nll_loss_nd.default", "aten.nll_loss.default", "aten.nll_loss2d.default")
def nll_loss(lo: Lowering, a: Args) -> Value:
    """The negative log likelihood of labels."""
    return negative_log(lo, a, lo.use(a["self"]), 0.0)


@op("aten.cross_entropy_loss.default")
def cross_entropy(lo: Lowering, a: Args) -> Value:
    """The same of scores; or of a distribution over classes."""
    x = lo.use(a["self"])
    dim = 1 if len(lo.shape_at(x)) > 1 else 0
    log_p, smoothing = softmax_of(lo, x, dim, "log_softmax"), float(a["label_smoothing"])
    kind = lo.dtype(a["target"])
    if kind is not None and not kind.is_floating_point:
        return negative_log(lo, a, log_p, smoothing)
    shape = lo.shape_at(log_p)
    y = lo.use(a["target"])
    if smoothing:
        y = add_scalar(lo, mul_scalar(lo, y, 1.0 - smoothing), smoothing / shape[dim])
    if a["weight"] is not None:
        column = reshape_to(lo, lo.use(a["weight"]), [shape[dim], *([1] * (len(shape) - dim - 1))])
        y = lo.emit({"kind": "mul"}, [y, column], shape)
    rows = row_sum(lo, along_last(lo, lo.emit({"kind": "mul"}, [log_p, y], shape), dim))
    return mul_scalar(lo, reduced(lo, rows, int(a["reduction"])), -1.0)


@op("aten.multi_margin_loss.default")
def multi_margin(lo: Lowering, a: Args) -> Value:
    """``sum over other classes of max(0, margin - x_y + x)^p``, over the number of classes."""
    x = lo.use(a["self"])
    shape = lo.shape_at(x)
    classes, margin = shape[-1], float(a["margin"])
    hot = reshape_to(lo, labels(lo, a["target"], classes), shape)
    own = row_sum(lo, lo.emit({"kind": "mul"}, [x, hot], shape))
    gap = lo.emit({"kind": "sub"}, [x, reshape_to(lo, own, [*shape[:-1], 1])], shape)
    above = power_of(lo, relu_of(lo, add_scalar(lo, gap, margin)), float(a["p"]))
    rest = add_scalar(lo, row_sum(lo, above), -(margin ** float(a["p"])))  # the class itself has a gap of 0
    if a["weight"] is not None:
        weight = row_sum(lo, lo.emit({"kind": "mul"}, [hot, lo.use(a["weight"])], shape))
        rest = lo.emit({"kind": "mul"}, [rest, weight], shape[:-1])
    return reduced(lo, mul_scalar(lo, rest, 1.0 / classes), int(a["reduction"]))
