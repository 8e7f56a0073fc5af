"""Attention, and look-ups in tables."""

from __future__ import annotations

import math
from typing import Any

import torch

from ._inputs import Ids
from ._lowering import Args, Decline, Lowering, Value, op
from ._masks import PROVISIONAL
from ._ops_compare import as_bit, constant_bits, inverted, one_hot
from ._ops_layers import expand_to, matmul_values, permute, reshape_to
from ._ops_pointwise import mul_scalar
from ._ops_smooth import softmax_of


@op("aten.scaled_dot_product_attention.default")
def attention(lo: Lowering, a: Args) -> Value:
    """``softmax(q k^T scale + mask) v``; a mask is a constant, or made of private zeros and ones."""
    if a["dropout_p"]:
        raise Decline("dropout")
    q, k, v = (lo.use(a[name]) for name in ("query", "key", "value"))
    if a.get("enable_gqa"):
        k, v = (grouped(lo, x, lo.shape_at(q)[-3]) for x in (k, v))
    rank = len(lo.shape_at(k))
    scale = a["scale"] if a["scale"] is not None else 1.0 / math.sqrt(lo.shape_at(q)[-1])
    keys = permute(lo, k, [*range(rank - 2), rank - 1, rank - 2])
    scores = [*lo.shape[:-1], lo.shape_at(k)[-2]]
    weights = mul_scalar(lo, matmul_values(lo, q, keys, scores), float(scale))
    if a["is_causal"]:
        seen = torch.ones(scores[-2:], dtype=torch.bool).tril()
        weights = without(lo, weights, lo.constant(seen))
    if a["attn_mask"] is not None:
        weights = masked(lo, weights, a["attn_mask"])
    return matmul_values(lo, softmax_of(lo, weights, -1), v, lo.shape)


def grouped(lo: Lowering, x: int, heads: int) -> int:
    """Keys or values of fewer heads, each as often as there are queries for it."""
    shape = lo.shape_at(x)
    times = heads // shape[-3]
    wide = [*shape[:-2], times, *shape[-2:]]
    one = reshape_to(lo, x, [*shape[:-2], 1, *shape[-2:]])
    return reshape_to(lo, expand_to(lo, one, wide), [*shape[:-3], heads, *shape[-2:]])


def masked(lo: Lowering, scores: int, mask: Any) -> int:
    """Scores under a mask of bits, which keep, or of numbers, which are added."""
    if lo.dtype(mask) == torch.bool:
        known = lo.tensor(mask)
        return without(lo, scores, known if known is not None else mask)
    return lo.emit({"kind": "add"}, [scores, lo.use(mask)], lo.shape_at(scores))


def without(lo: Lowering, scores: int, keep: Any) -> int:
    """Scores of which a softmax leaves out those that ``keep`` does not."""
    shape = lo.shape_at(scores)
    if isinstance(keep, torch.Tensor):
        if bool(keep.all()):
            return scores
        mask = lo.use(constant_bits(lo, keep, lambda k: torch.where(k, 0.0, -math.inf), "mask"))
    else:
        mask = left_out(lo, inverted(lo, as_bit(lo, keep)))
    return lo.emit({"kind": "add"}, [scores, mask], shape)


def left_out(lo: Lowering, bit: int) -> int:
    """What is added to scores where the bit is 1; how much is chosen when the scores are known."""
    node = lo.emit({"kind": "mul_scalar", "value": PROVISIONAL}, [bit], lo.shape_at(bit))
    lo.fills.add(node)
    return node


@op("aten.embedding.default")
def embedding(lo: Lowering, a: Args) -> Value:
    """Rows of a table at private indices: a product with one-hot rows."""
    value = lo.value(a["indices"])
    table = lo.use(a["weight"])
    if isinstance(value, Ids):
        return value.look_up(lo, table)
    rows = lo.shape_at(table)[0]
    found, first = one_hot(lo, lo.use(a["indices"]), rows)
    count = lo.shape_at(found)[-1]
    part = table
    if count != rows:
        cut: dict[str, Any] = {"kind": "slice", "dim": 0, "start": first, "end": first + count, "step": 1}
        part = lo.emit(cut, [table], [count, lo.shape_at(table)[1]])
    return matmul_values(lo, found, part, lo.shape)
