"""Losses and their gradients. Class labels are one-hot rows, so that nothing is looked up by a secret index.

The gradient of cross entropy by the scores is ``(softmax(z) - y) / N``: no logarithm, and no exponential of one.
"""

from __future__ import annotations

import torch

from .._lowering import Args, Decline, Lowering, Value
from .._ops_gather import gather
from .._ops_layers import reshape_to
from .._ops_pointwise import add_scalar, mul_scalar, unary
from .._ops_smooth import smooth, softmax_of
from ._lowering import Labels, OneHot, TrainingLowering, training
from ._ops_bits import Bit, choose, clamp_at, positive
from ._ops_norm import add, mul, over, sub

NONE, MEAN, SUM = range(3)
"""torch's reductions."""


def reduced(lo: Lowering, x: int, reduction: int) -> int:
    """Mean or sum of all elements, or all of them."""
    if reduction == NONE:
        return x
    shape = lo.shape_at(x)
    kind = "mean" if reduction == MEAN else "sum"
    return lo.emit({"kind": kind, "dims": list(range(len(shape))), "keepdim": False}, [x], []) if shape else x


def scaled(lo: Lowering, a: Args, gradient: int, reduction: int, count: int) -> int:
    """An element's gradient times that of the loss, over the number of elements where the loss is their mean."""
    share = 1.0 / count if reduction == MEAN else 1.0
    outer = lo.scalar(a["grad_output"])
    if outer is not None:
        return mul_scalar(lo, gradient, outer * share)
    return mul(lo, mul_scalar(lo, gradient, share), lo.use(a["grad_output"]))


def elements(lo: Lowering, x: int) -> int:
    """How many elements a value has."""
    count = 1
    for extent in lo.shape_at(x):
        count *= extent
    return count


# --- Cross entropy -----------------------------------------------------------------------------------


def truth(lo: Lowering, a: Args) -> OneHot:
    """The labels of a negative log likelihood, one-hot in the shape of its scores."""
    assert isinstance(lo, TrainingLowering)
    labels = lo.value(a["target"])
    if not isinstance(labels, Labels):
        raise Decline("labels that are computed")
    shape = lo.shape_at(lo.use(a["self"]))
    if len(shape) < 2:
        raise Decline("scores without a batch dimension")
    return lo.one_hot(labels, shape[1], 1, shape)


def weighed(lo: Lowering, a: Args, y: OneHot) -> tuple[int, int]:
    """The weight of each row's class at the place of the class, and the sum of all of them."""
    shape = lo.shape_at(y.node)
    rows = mul(lo, y.node, reshape_to(lo, lo.use(a["weight"]), [1, y.classes, *([1] * (len(shape) - 2))]))
    everything = list(range(len(shape)))
    return rows, lo.emit({"kind": "sum", "dims": everything, "keepdim": False}, [rows], [])


@training("aten.nll_loss_forward.default", "aten.nll_loss2d_forward.default")
def nll_loss(lo: Lowering, a: Args) -> Value:
    """``-sum(w y log p)`` over classes, then mean or sum over rows; and the sum of weights, no row being ignored.

    A mean is over that sum, which is secret where classes have weights: a product with its reciprocal.
    """
    y, log_p, reduction = truth(lo, a), lo.use(a["self"]), int(a["reduction"])
    node, count = y.node, lo.constant(torch.tensor(float(elements(lo, y.node) // y.classes)))
    total = None
    if a["weight"] is not None:
        node, total = weighed(lo, a, y)
    picked = over(lo, "sum", mul(lo, log_p, node), [1])
    flat = lo.emit({"kind": "reshape"}, [picked], [n for d, n in enumerate(lo.shape_at(picked)) if d != 1])
    if total is None or reduction != MEAN:
        loss = reduced(lo, flat, reduction)
    else:
        loss = mul(lo, reduced(lo, flat, SUM), smooth(lo, "reciprocal", total))
    return (unary(lo, {"kind": "neg"}, loss), count if total is None else total)


@training("aten.gather.default")
def weight_of_labels(lo: Lowering, a: Args) -> Value:
    """The weight of each row's class, as a smoothed cross entropy reads it."""
    assert isinstance(lo, TrainingLowering)
    labels = lo.value(a["index"])
    if not isinstance(labels, Labels):
        return gather(lo, a)
    known = lo.labels.get(labels.name)
    weights = lo.use(a["self"])
    if known is None or lo.shape_at(known.node)[1:] != lo.shape_at(weights):
        raise Decline("labels that look up something else than weights of classes")
    rows = mul(lo, known.node, reshape_to(lo, weights, [1, known.classes]))
    return lo.emit({"kind": "sum", "dims": [1], "keepdim": False}, [rows], lo.shape)


@training("aten.nll_loss_backward.default", "aten.nll_loss2d_backward.default")
def nll_loss_backward(lo: Lowering, a: Args) -> Value:
    """``-w y``, over the sum of weights for a mean; without weights each is 1."""
    y, reduction = truth(lo, a), int(a["reduction"])
    node = y.node
    if a["weight"] is not None:
        node, total = weighed(lo, a, y)
        if reduction == MEAN:
            node, reduction = mul(lo, node, smooth(lo, "reciprocal", total)), SUM
    if reduction == NONE:
        outer = lo.scalar(a["grad_output"])
        if outer is None:
            raise Decline("a loss for each row that is weighted by values")
        return mul_scalar(lo, node, -outer)
    return mul_scalar(lo, scaled(lo, a, node, reduction, elements(lo, y.node) // y.classes), -1.0)


@training("aten._log_softmax_backward_data.default")
def log_softmax_backward(lo: Lowering, a: Args) -> Value:
    """``g - softmax(z) sum(g)``; where the sum of g is known, as for labels, without a product of values."""
    g, log_p = lo.use(a["grad_output"]), lo.graph.nodes[lo.use(a["output"])]
    dim = int(a["dim"]) % len(log_p.shape)
    if log_p.op != {"kind": "smooth", "function": {"log_softmax": {"dim": dim}}}:
        raise Decline("a logarithm of a softmax from elsewhere")
    p = softmax_of(lo, log_p.inputs[0], dim)
    g, factor = without_factor(lo, g)
    total = total_along(lo, g, dim)
    if total is None:
        by_scores = sub(lo, g, mul(lo, p, over(lo, "sum", g, [dim])))
    elif total > 0:  # (p - y / total) (-total factor): one product with a number for both
        by_scores, factor = sub(lo, p, mul_scalar(lo, g, 1.0 / total)), -total * factor
    else:
        by_scores = sub(lo, g, mul_scalar(lo, p, total))
    return mul_scalar(lo, by_scores, factor)


def without_factor(lo: Lowering, node: int) -> tuple[int, float]:
    """A value and a number whose product a node is."""
    factor = 1.0
    while lo.graph.nodes[node].kind in ("mul_scalar", "neg"):
        op = lo.graph.nodes[node].op
        factor *= -1.0 if op["kind"] == "neg" else float(op["value"])
        node = lo.graph.nodes[node].inputs[0]
    return node, factor


def total_along(lo: Lowering, node: int, dim: int) -> float | None:
    """The sum of every line of a value along a dimension, where it is the same for any labels."""
    assert isinstance(lo, TrainingLowering)
    n = lo.graph.nodes[node]
    if any(y.node == node and y.dim == dim for y in lo.labels.values()):
        return 1.0
    if n.kind not in ("mul_scalar", "neg", "add_scalar"):
        return None
    below = total_along(lo, n.inputs[0], dim)
    if below is None:
        return None
    if n.kind == "add_scalar":
        return below + float(n.op["value"]) * n.shape[dim]
    return below * (-1.0 if n.kind == "neg" else float(n.op["value"]))


# --- Squares, absolute values and logits -------------------------------------------------------------


@training("aten.mse_loss.default")
def mse_loss(lo: Lowering, a: Args) -> Value:
    """``(x - y)^2``."""
    difference = sub(lo, lo.use(a["self"]), lo.use(a["target"]))
    return reduced(lo, mul(lo, difference, difference), int(a["reduction"]))


@training("aten.mse_loss_backward.default")
def mse_loss_backward(lo: Lowering, a: Args) -> Value:
    """``2 (x - y)``, over the number of elements for a mean."""
    difference = sub(lo, lo.use(a["self"]), lo.use(a["target"]))
    count, outer = elements(lo, difference), lo.scalar(a["grad_output"])
    if outer is None:
        return mul_scalar(lo, scaled(lo, a, difference, int(a["reduction"]), count), 2.0)
    return mul_scalar(lo, difference, 2.0 * outer / (count if a["reduction"] == MEAN else 1))


def huber(lo: Lowering, difference: int, delta: float) -> tuple[int, int]:
    """``min(max(d, -delta), delta)``, which is the gradient, and ``c (d - c / 2)`` of it, the loss."""
    clamped = clamp_at(lo, difference, -delta, delta)
    rest = sub(lo, difference, mul_scalar(lo, clamped, 0.5))
    return clamped, mul(lo, clamped, rest)


@training("aten.huber_loss.default")
def huber_loss(lo: Lowering, a: Args) -> Value:
    """``d^2 / 2`` up to delta, then linear."""
    difference = sub(lo, lo.use(a["self"]), lo.use(a["target"]))
    return reduced(lo, huber(lo, difference, float(a["delta"]))[1], int(a["reduction"]))


@training("aten.huber_loss_backward.default")
def huber_loss_backward(lo: Lowering, a: Args) -> Value:
    """The difference, clamped."""
    difference = sub(lo, lo.use(a["self"]), lo.use(a["target"]))
    clamped = huber(lo, difference, float(a["delta"]))[0]
    return scaled(lo, a, clamped, int(a["reduction"]), elements(lo, clamped))


@training("aten.smooth_l1_loss.default")
def smooth_l1_loss(lo: Lowering, a: Args) -> Value:
    """``d^2 / (2 beta)`` up to beta, then linear: Huber's loss over beta."""
    beta = float(a["beta"])
    difference = sub(lo, lo.use(a["self"]), lo.use(a["target"]))
    return reduced(lo, mul_scalar(lo, huber(lo, difference, beta)[1], 1.0 / beta), int(a["reduction"]))


@training("aten.smooth_l1_loss_backward.default")
def smooth_l1_loss_backward(lo: Lowering, a: Args) -> Value:
    """The difference, clamped, over beta."""
    beta = float(a["beta"])
    difference = sub(lo, lo.use(a["self"]), lo.use(a["target"]))
    clamped = mul_scalar(lo, huber(lo, difference, beta)[0], 1.0 / beta)
    return scaled(lo, a, clamped, int(a["reduction"]), elements(lo, clamped))


@training("aten.abs.default")
def absolute(lo: Lowering, a: Args) -> Value:
    """``2 relu(x) - x``, by the bit that the gradient needs."""
    x = lo.use(a["self"])
    return sub(lo, mul_scalar(lo, choose(lo, Bit(positive(lo, x)), x), 2.0), x)


@training("aten.binary_cross_entropy_with_logits.default")
def bce_with_logits(lo: Lowering, a: Args) -> Value:
    """``relu(z) - z y + log(1 + e^-|z|)``; a weight p of what is positive adds ``(p - 1) y`` times that at y = 1."""
    z, y = lo.use(a["self"]), lo.use(a["target"])
    relu = choose(lo, Bit(positive(lo, z)), z)
    minus_size = sub(lo, z, mul_scalar(lo, relu, 2.0))
    soft = smooth(lo, "log", add_scalar(lo, smooth(lo, "exp", minus_size), 1.0))
    loss = add(lo, sub(lo, relu, mul(lo, z, y)), soft)
    if a["pos_weight"] is not None:
        loss = add(lo, loss, mul(lo, more(lo, a, y), add(lo, sub(lo, relu, z), soft)))
    if a["weight"] is not None:
        loss = mul(lo, loss, lo.use(a["weight"]))
    return reduced(lo, loss, int(a["reduction"]))


def more(lo: Lowering, a: Args, y: int) -> int:
    """``(p - 1) y`` for the weight p of what is positive."""
    return mul(lo, y, add_scalar(lo, lo.use(a["pos_weight"]), -1.0))


@training("aten.binary_cross_entropy_with_logits_backward.default")
def bce_with_logits_backward(lo: Lowering, a: Args) -> Value:
    """``sigmoid(z) - y``, and with weights as the loss has them; over the number of elements for a mean."""
    y, sigmoid = lo.use(a["target"]), smooth(lo, "sigmoid", lo.use(a["self"]))
    difference = sub(lo, sigmoid, y)
    if a["pos_weight"] is not None:
        difference = add(lo, difference, mul(lo, more(lo, a, y), add_scalar(lo, sigmoid, -1.0)))
    if a["weight"] is not None:
        difference = mul(lo, difference, lo.use(a["weight"]))
    return scaled(lo, a, difference, int(a["reduction"]), elements(lo, difference))
