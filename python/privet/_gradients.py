"""The meaning of the graph's gradient operations, by PyTorch's own kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .graph import Node


def pulled(forward: Callable[[Tensor], Tensor], shape: list[int], at: Tensor | None, gradient: Tensor) -> Tensor:
    """``gradient`` through ``forward`` to its operand: ``at``, or for a linear function any tensor of that shape."""
    with torch.enable_grad():
        x = torch.zeros(shape, dtype=gradient.dtype) if at is None else at.detach().clone()
        x.requires_grad_(True)
        (result,) = torch.autograd.grad(forward(x), x, gradient)
    return result


def _conv_input(n: Node, v: Sequence[Tensor]) -> Tensor:
    o, (w, g) = n.op, v
    return pulled(
        lambda x: F.conv2d(x, w, None, o["stride"], o["padding"], o["dilation"], o["groups"]), n.shape, None, g
    )


def _conv_weight(n: Node, v: Sequence[Tensor]) -> Tensor:
    o, (x, g) = n.op, v
    return pulled(
        lambda w: F.conv2d(x, w, None, o["stride"], o["padding"], o["dilation"], o["groups"]), n.shape, None, g
    )


def _max_pool(n: Node, v: Sequence[Tensor]) -> Tensor:
    w, (x, g) = n.op["window"], v
    settings = (w["kernel"], w["stride"], w["padding"], w["dilation"], w["ceil_mode"])
    return pulled(lambda t: F.max_pool2d(t, *settings), n.shape, x, g)


def _avg_pool(n: Node, v: Sequence[Tensor]) -> Tensor:
    w, count = n.op["window"], n.op["count_include_pad"]
    settings = (w["kernel"], w["stride"], w["padding"], w["ceil_mode"], count, n.op.get("divisor"))
    return pulled(lambda t: F.avg_pool2d(t, *settings), n.shape, None, v[0])


def derivative(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The derivative of a function of every element."""
    return lambda x: pulled(function, list(x.shape), x, torch.ones_like(x))


SMOOTH_GRADIENTS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu_grad": derivative(F.gelu),
    "gelu_tanh_grad": derivative(lambda x: F.gelu(x, approximate="tanh")),
    "silu_grad": derivative(F.silu),
}
"""Derivatives that ``smooth`` nodes are of."""

GRADIENTS: dict[str, Callable[[Node, Sequence[Tensor]], Tensor]] = {
    "conv2d_input_grad": _conv_input,
    "conv2d_weight_grad": _conv_weight,
    "max_pool2d_grad": _max_pool,
    "avg_pool2d_grad": _avg_pool,
}
"""One entry a gradient operation of :mod:`privet.graph`, in the words of its definition there."""
