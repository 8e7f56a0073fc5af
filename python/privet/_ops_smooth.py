"""Smooth functions: exponentials, roots, softmax, and the layers that are made of them."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_layers import matmul_values, permute
from ._ops_pointwise import add_scalar, broadcast, mul_scalar, unary
from .graph import Op


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


@op("aten.scaled_dot_product_attention.default")
def attention(lo: Lowering, a: Args) -> Value:
    """``softmax(q k^T scale + mask) v`` with a mask that is the model's own."""
    if a["dropout_p"] or a["is_causal"] or a.get("enable_gqa"):
        raise Decline("dropout, a causal mask or grouped queries")
    mask = a["attn_mask"]
    known = None if mask is None else lo.tensor(mask)
    if mask is not None and (known is None or known.dtype == torch.bool):
        raise Decline("a mask that is not a constant of numbers")
    q, k, v = (lo.use(a[name]) for name in ("query", "key", "value"))
    rank = len(lo.shape_at(k))
    scale = a["scale"] if a["scale"] is not None else 1.0 / math.sqrt(lo.shape_at(q)[-1])
    keys = permute(lo, k, [*range(rank - 2), rank - 1, rank - 2])
    scores = [*lo.shape_at(q)[:-1], lo.shape_at(k)[-2]]
    weights = mul_scalar(lo, matmul_values(lo, q, keys, scores), float(scale))
    if mask is not None:
        weights = lo.emit({"kind": "add"}, [weights, lo.use(mask)], scores)
    return matmul_values(lo, softmax_of(lo, weights, -1), v, lo.shape)


# --- Division and normalisation ----------------------------------------------------------------------


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
        inverse = smooth(lo, "reciprocal", lo.use(a["other"]))
        if above is not None:
            return broadcast(lo, mul_scalar(lo, inverse, above))
        return lo.emit({"kind": "mul"}, [lo.use(a["self"]), inverse], lo.shape)
    if bool((divisor == 0).any()):
        raise Decline("division by a parameter that holds zeros")
    reciprocal = lo.constant(1.0 / divisor.to(torch.float64), f"{lo.name_of(divisor)}.reciprocal")
    left = lo.use(a["self"])
    return lo.emit({"kind": "mul"}, [left, lo.use(reciprocal)], lo.shape)


@op("aten.layer_norm.default")
def layer_norm(lo: Lowering, a: Args) -> Value:
    """``(x - mean) rsqrt(variance + eps) gamma + beta`` over the last dimensions.

    Taken apart here, so that the range of each part is calibrated.
    """
    x = lo.use(a["input"])
    shape = lo.shape_at(x)
    dims = list(range(len(shape) - len(a["normalized_shape"]), len(shape)))
    kept = [1 if d in dims else n for d, n in enumerate(shape)]
    mean: Op = {"kind": "mean", "dims": dims, "keepdim": True}
    centred = lo.emit({"kind": "sub"}, [x, lo.emit(mean, [x], kept)], shape)
    square = lo.emit({"kind": "mul"}, [centred, centred], shape)
    variance = lo.emit(dict(mean), [square], kept)
    scale = smooth(lo, "rsqrt", add_scalar(lo, variance, float(a["eps"])))
    y = lo.emit({"kind": "mul"}, [centred, scale], shape)
    if a["weight"] is not None:
        y = lo.emit({"kind": "mul"}, [y, lo.use(a["weight"])], shape)
    return y if a["bias"] is None else lo.emit({"kind": "add"}, [y, lo.use(a["bias"])], shape)


@op("aten.pow.Tensor_Scalar")
def power(lo: Lowering, a: Args) -> Value:
    """Small whole powers by repeated multiplication; roots and reciprocals."""
    exponent, x = a["exponent"], lo.use(a["self"])
    functions = {0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
    if exponent in functions:
        return smooth(lo, functions[exponent], x)
    if exponent not in (1, 2, 3, 4):
        raise Decline(f"exponent {exponent}")
    result = x
    for _ in range(int(exponent) - 1):
        result = lo.emit({"kind": "mul"}, [result, x], lo.shape)
    return result
