"""Functions of torch, one row each: what is written in a forward without a module."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .cases import Build, function, noise, positive, unit

X, Y = noise(3, 8), noise(3, 8, seed=5)
POSITIVE, UNIT = positive(3, 8), unit(3, 8)
SQUARE = noise(2, 4, 4)
IMAGE = noise(2, 4, 6, 6)
CUBE = noise(2, 3, 4)
HEADS = noise(1, 4, 5, 8)
MASK = torch.arange(8) % 3 == 0
WIDE_MASK = torch.zeros(3, 8, dtype=torch.bool).index_fill(1, torch.tensor([1, 5]), True)
TRIANGLE = torch.ones(5, 5, dtype=torch.bool).tril()
INDEX = torch.tensor([2, 0, 2, 1])
PLACES = torch.tensor([[0, 7, 3], [2, 2, 1], [5, 4, 6]])
WEIGHT, WEIGHTS, LEFT, TABLE = noise(8, 3), noise(4, 8, 3), noise(6, 5), noise(8, 4)
TURNS, GRID = torch.polar(torch.ones(5, 4), noise(5, 4)), noise(2, 5, 5, 2)

Rows = dict[str, Callable[..., Any]]


def of(rows: Rows, *inputs: Tensor) -> dict[str, Build]:
    """The same inputs for all."""
    return {name: function(what, *inputs) for name, what in rows.items()}


COMPARISONS = of({
    "where(x>c)": lambda x: torch.where(x > 0.2, x, x * 2),
    "where(const bool)": lambda x: torch.where(MASK, x, -x),
    "where(const, x, scalar)": lambda x: torch.where(MASK, x, 2.5),
    "where(const,-inf)": lambda x: torch.where(MASK, x, -math.inf).softmax(-1),
    "x.gt(0.5).float()": lambda x: x.gt(0.5).float(),
    "x.ge(0.5).float()": lambda x: x.ge(0.5).float(),
    "x.lt(0.5).float()": lambda x: x.lt(0.5).float(),
    "x.le(0.5).float()": lambda x: x.le(0.5).float(),
    "x.eq(0.5).float()": lambda x: x.round().eq(1.0).float(),
    "x.ne(0.5).float()": lambda x: x.ne(0.5).float(),
    "logical_and": lambda x: ((x > 0) & (x < 1)).float(),
    "logical_or": lambda x: torch.logical_or(x > 1, x < -1).float(),
    "logical_xor": lambda x: torch.logical_xor(x > 0, x < 1).float(),
    "logical_not": lambda x: torch.logical_not(x > 0).float(),
    "isnan": lambda x: torch.where(torch.isnan(x), 0.0, x),
    "isfinite": lambda x: torch.where(torch.isfinite(x), x, 0.0),
    "nan_to_num": lambda x: torch.nan_to_num(x) * 2,
    "bool output": lambda x: x > 0,
    "any": lambda x: (x > 1).any(1).float(),
    "all": lambda x: (x > -1).all(1).float(),
    "isclose": lambda x: torch.isclose(x, x.round(), atol=0.2).float(),
    "signbit": lambda x: torch.signbit(x).float(),
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5)),
    "masked_fill(const)": lambda x: x.masked_fill(MASK, 2.0),
    "masked_fill(const,-inf)+softmax": lambda x: x.masked_fill(MASK, -math.inf).softmax(-1),
    "masked_fill(const,-1e9)+softmax": lambda x: x.masked_fill(MASK, -1e9).softmax(-1),
    "masked_fill(x>0)": lambda x: x.masked_fill(x > 0, 0.25),
    "x*const bool": lambda x: x * MASK,
    "clamp(scalars)": lambda x: x.clamp(-0.5, 0.5),
    "clamp(min=t)": lambda x: torch.clamp(x, min=x.mean(1, keepdim=True)),
    "clamp(const t)": lambda x: torch.clamp(x, torch.full((8,), -0.3), torch.full((8,), 0.4)),
    "clamp_min inplace": lambda x: (x * 1.0).clamp_min_(0.1),
    "clip": lambda x: torch.clip(x, -0.5, 0.5),
}, X) | of({
    "x>y float": lambda x, y: (x > y).float(),
    "maximum": torch.maximum, "minimum": torch.minimum, "fmax": torch.fmax, "fmin": torch.fmin,
    "equal elements": lambda x, y: (x.round() == y.round()).float(),
}, X, Y)  # fmt: skip

ORDER = of({
    "max(dim).indices": lambda x: x.max(1).indices,
    "max(dim).values": lambda x: x.max(1).values,
    "min(dim).indices": lambda x: x.min(1).indices,
    "min(dim).values": lambda x: x.min(1).values,
    "max()": lambda x: x.max().reshape(1),
    "min()": lambda x: x.min().reshape(1),
    "amax(dim)": lambda x: x.amax(1),
    "amax(dim,keepdim)": lambda x: x.amax(1, keepdim=True),
    "amin(dim)": lambda x: x.amin(1),
    "amin(dim,keepdim)": lambda x: x.amin(1, keepdim=True),
    "aminmax": lambda x: tuple(torch.aminmax(x, dim=1)),
    "argmax": lambda x: x.argmax(1), "argmin": lambda x: x.argmin(1),
    "topk.values": lambda x: x.topk(3)[0], "topk.indices": lambda x: x.topk(3)[1],
    "sort.values": lambda x: x.sort()[0], "sort.indices": lambda x: x.sort()[1], "argsort": lambda x: x.argsort(),
    "msort": lambda x: torch.msort(x),
    "median": lambda x: x.median(1).values, "median()": lambda x: x.median().reshape(1),
    "nanmedian": lambda x: x.nanmedian(1).values,
    "mode": lambda x: x.round().mode(1).values,
    "kthvalue": lambda x: x.kthvalue(3, 1).values,
    "quantile": lambda x: x.quantile(0.3, dim=1),
    "quantile(several)": lambda x: x.quantile(torch.tensor([0.25, 0.5]), dim=1),
    "nanquantile": lambda x: x.nanquantile(0.5, dim=1),
    "cummax": lambda x: x.cummax(1).values, "cummin": lambda x: x.cummin(1).values,
    "cummax.indices": lambda x: x.cummax(1).indices,
    "one_hot(argmax)": lambda x: F.one_hot(x.argmax(1), 8).float(),
    "gather(argmax)": lambda x: x.gather(1, x.argmax(1, keepdim=True)),
    "searchsorted": lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5, 2.0]), x),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 2.0])),
    "bucketize(right)": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 2.0]), right=True),
    "searchsorted(private)": lambda x: torch.searchsorted(x.sort(1)[0], torch.zeros(3, 2)),
    "histc": lambda x: torch.histc(x, 4, -2.0, 2.0),
    "unique": lambda x: torch.unique(x), "nonzero": lambda x: x.nonzero(), "x[x>0]": lambda x: x[x > 0],
    "masked_select": lambda x: torch.masked_select(x, x > 0),
    "bincount": lambda x: torch.bincount(x.argmax(1)),
    "count_nonzero": lambda x: torch.count_nonzero(x, 1),
    "multinomial": lambda x: torch.multinomial(x.softmax(1), 2),
    "isin": lambda x: torch.isin(x.round(), torch.tensor([0.0, 1.0])).float(),
}, X)  # fmt: skip

POINTWISE = of({
    "abs": torch.abs, "neg": torch.neg, "square": torch.square, "exp": torch.exp, "relu": torch.relu,
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "positive": lambda x: torch.positive(x) * 1.0,
    "sign": torch.sign, "sin": torch.sin, "cos": torch.cos, "tan": lambda x: torch.tan(x * 0.5), "atan": torch.atan,
    "sinh": torch.sinh, "cosh": torch.cosh, "asinh": torch.asinh, "erf": torch.erf, "erfc": torch.erfc,
    "exp2": torch.exp2, "expm1": torch.expm1, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
    "round(decimals)": lambda x: x.round(decimals=1), "trunc": torch.trunc, "frac": torch.frac, "sinc": torch.sinc,
    "softplus": F.softplus, "logsigmoid": F.logsigmoid, "deg2rad": torch.deg2rad, "rad2deg": torch.rad2deg,
    "pow 0": lambda x: x**0, "pow 1": lambda x: x**1, "pow 2": lambda x: x**2, "pow 3": lambda x: x**3,
    "pow 4": lambda x: x**4, "pow 5": lambda x: x**5, "pow 8": lambda x: x**8, "2**x": lambda x: 2**x,
    "x/const": lambda x: x / 3.0, "x/0-dim param": lambda x: x / torch.tensor(1.7),
    "x//2": lambda x: x // 2, "x%1": lambda x: x % 1, "fmod": lambda x: torch.fmod(x, 0.7),
    "x%0.7": lambda x: torch.remainder(x, 0.7),
    "div floor": lambda x: torch.div(x, 0.5, rounding_mode="floor"),
    "div trunc": lambda x: torch.div(x, 0.5, rounding_mode="trunc"),
    "F.hardtanh": F.hardtanh, "F.tanhshrink": F.tanhshrink, "F.glu": F.glu, "i0": torch.i0,
    "logit": lambda x: torch.logit(x.sigmoid()),
    "x.long()": lambda x: x.long(), "x.int().float()": lambda x: (x * 3).int().float(),
    "x.to(bfloat16)": lambda x: x.to(torch.bfloat16).float(), "float64 mix": lambda x: x.double() + 1.0,
    "copysign": lambda x: torch.copysign(torch.full((8,), 2.0), x),
    "dropout(eval)": lambda x: F.dropout(x, 0.5, training=False) * 1.0,
}, X) | of({
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "log": torch.log, "log2": torch.log2,
    "log10": torch.log10, "log1p": torch.log1p, "pow 0.5": lambda x: x**0.5, "pow -0.5": lambda x: x**-0.5,
    "pow -1": lambda x: x**-1, "pow -2": lambda x: x**-2, "pow 1.5": lambda x: x**1.5, "pow 0.25": lambda x: x**0.25,
    "pow 0.333": lambda x: x ** (1 / 3), "1/x": lambda x: 1 / x, "lgamma": torch.lgamma, "digamma": torch.digamma,
    "acosh": lambda x: torch.acosh(x + 1),
    "entropy": lambda x: torch.special.entr(x),
}, POSITIVE) | of({
    "asin": torch.asin, "acos": torch.acos, "atanh": torch.atanh, "erfinv": torch.erfinv,
    "asin(-)": lambda x: torch.asin(-x), "logit(x)": torch.logit,
}, UNIT * 0.95) | of({
    "x/y": lambda x, y: x / y, "true_divide": torch.true_divide, "x**y": lambda x, y: y**x, "atan2": torch.atan2,
    "hypot": torch.hypot, "xlogy": torch.xlogy, "logaddexp": torch.logaddexp, "logaddexp2": torch.logaddexp2,
    "lerp": lambda x, y: torch.lerp(x, y, 0.3), "lerp(tensor)": lambda x, y: torch.lerp(x, y, x.sigmoid()),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5), "addcdiv": lambda x, y: torch.addcdiv(x, x, y),
    "dist": lambda x, y: torch.dist(x, y).reshape(1), "float_power": lambda x, y: torch.float_power(y, 2),
    "fdim": lambda x, y: torch.relu(x - y), "rsub": lambda x, y: torch.rsub(x, y, alpha=2),
    "x//y": lambda x, y: torch.div(x, y, rounding_mode="floor"),
}, X, POSITIVE)  # fmt: skip

REDUCTIONS = of({
    "softmax": lambda x: x.softmax(-1), "softmax(dtype=f32)": lambda x: x.softmax(-1, dtype=torch.float32),
    "log_softmax": lambda x: x.log_softmax(-1), "softmin": lambda x: F.softmin(x, -1),
    "mean(dim)": lambda x: x.mean(1), "sum(dim,dtype)": lambda x: x.sum(1, dtype=torch.float32),
    "mean()": lambda x: x.mean().reshape(1), "nanmean": lambda x: x.nanmean(1), "nansum": lambda x: x.nansum(1),
    "logsumexp": lambda x: x.logsumexp(1), "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(1),
    "logcumsumexp": lambda x: x.logcumsumexp(1), "prod(dim)": lambda x: x.prod(1),
    "prod()": lambda x: x[:, :2].prod().reshape(1),
    "std": lambda x: x.std(1), "std(unbiased=False,keepdim)": lambda x: x.std(1, unbiased=False, keepdim=True),
    "var": lambda x: x.var(1), "var()": lambda x: x.var().reshape(1),
    "var_mean": lambda x: torch.var_mean(x, 1), "std_mean": lambda x: torch.std_mean(x, 1),
    "norm(2)": lambda x: x.norm(dim=1), "norm(1)": lambda x: x.norm(1, dim=1),
    "norm(inf)": lambda x: x.norm(math.inf, dim=1), "norm(3)": lambda x: x.norm(3, dim=1),
    "linalg.norm": lambda x: torch.linalg.norm(x, dim=1), "linalg.vector_norm": torch.linalg.vector_norm,
    "linalg.matrix_norm": torch.linalg.matrix_norm,
    "frobenius norm()": lambda x: x.norm().reshape(1), "F.normalize": F.normalize,
    "F.normalize(p=1)": lambda x: F.normalize(x, p=1), "renorm": lambda x: torch.renorm(x, 2, 0, 1.0),
    "cov": lambda x: torch.cov(x), "corrcoef": lambda x: torch.corrcoef(x), "pdist": lambda x: F.pdist(x),
    "cdist(const)": lambda x: torch.cdist(x, Y), "trapezoid": lambda x: torch.trapezoid(x),
    "cosine_similarity(const)": lambda x: F.cosine_similarity(x, Y), "diff": lambda x: x.diff(),
    "gradient": lambda x: torch.gradient(x, dim=1)[0],
    "F.layer_norm": lambda x: F.layer_norm(x, (8,)), "F.rms_norm": lambda x: F.rms_norm(x, (8,)),
}, X) | of({
    "cosine_similarity": F.cosine_similarity, "cdist": torch.cdist, "cdist(p=1)": lambda x, y: torch.cdist(x, y, 1.0),
    "pairwise_distance": F.pairwise_distance, "vdot": lambda x, y: torch.vdot(x[0], y[0]).reshape(1),
}, X, Y) | of({
    "F.group_norm": lambda x: F.group_norm(x, 2), "F.instance_norm": F.instance_norm,
    "F.local_response_norm": lambda x: F.local_response_norm(x, 3),
}, IMAGE)  # fmt: skip

PRODUCTS = of({
    "einsum matmul": lambda x, y: torch.einsum("ij,kj->ik", x, y),
    "einsum outer": lambda x, y: torch.einsum("i,j->ij", x[0], y[0]),
    "outer": lambda x, y: torch.outer(x[0], y[0]), "inner": torch.inner, "dot": lambda x, y: x[0].dot(y[0]).reshape(1),
    "tensordot": lambda x, y: torch.tensordot(x, y, ([0], [0])), "kron": torch.kron,
    "addmm(beta=.5)": lambda x, y: torch.addmm(torch.ones(3, 3), x, y.T, beta=0.5),
    "addmm(alpha)": lambda x, y: torch.addmm(torch.ones(3, 3), x, y.T, alpha=2.0),
    "addmv": lambda x, y: torch.addmv(torch.ones(3), x, y[0], beta=2), "addr": lambda x, y: torch.addr(
        torch.ones(8, 8), x[0], y[0]),
    "cartesian_prod": lambda x, y: torch.cartesian_prod(x[0], y[0]), "cross": lambda x, y: torch.linalg.cross(
        x[:, :3], y[:, :3]),
    "x @ x.T": lambda x, y: x @ x.T, "chain_matmul": lambda x, y: torch.linalg.multi_dot([x, y.T, x]),
    "einsum of three": lambda x, y: torch.einsum("ij,ij,kj->ik", x, y, x),
}, X, Y) | of({
    "einsum attention": lambda q: torch.einsum("bhid,bhjd->bhij", q, q), "matmul batch const": lambda q: q @ WEIGHT,
    "einsum const w": lambda q: torch.einsum("bhid,hde->bhie", q, WEIGHTS), "const @ x": lambda q: LEFT @ q,
    "sdpa": lambda q: F.scaled_dot_product_attention(q, q, q),
    "sdpa is_causal": lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
    "sdpa gqa": lambda q: F.scaled_dot_product_attention(q, q[:, :2], q[:, 2:], enable_gqa=True),
    "sdpa const bool mask": lambda q: F.scaled_dot_product_attention(q, q, q, TRIANGLE),
    "sdpa const -inf mask": lambda q: F.scaled_dot_product_attention(
        q, q, q, torch.zeros(5, 5).masked_fill(~TRIANGLE, -math.inf)),
    "x + (-inf const mask)": lambda q: (q @ q.mT + torch.zeros(5, 5).masked_fill(~TRIANGLE, -math.inf)).softmax(-1),
    "x + (finfo.min const)": lambda q: (q @ q.mT + torch.where(
        TRIANGLE, 0.0, torch.finfo(torch.float32).min)).softmax(-1),
    "sdpa private float mask": lambda q: F.scaled_dot_product_attention(q, q, q, q[..., :5] * 0.1),
    "view_as_complex rope": lambda q: torch.view_as_real(
        torch.view_as_complex(q.reshape(1, 4, 5, 4, 2)) * TURNS).flatten(3),
}, HEADS) | of({
    "bmm": lambda m: m.bmm(m), "baddbmm": lambda m: torch.baddbmm(m, m, m, beta=0.5, alpha=2), "matrix_power":
        lambda m: torch.linalg.matrix_power(m, 3), "linalg.inv": torch.linalg.inv, "linalg.det": torch.linalg.det,
    "linalg.solve": lambda m: torch.linalg.solve(m, m), "svd": lambda m: torch.linalg.svd(m)[1],
    "einsum trace": lambda m: torch.einsum("bii->b", m), "trace": lambda m: torch.trace(m[0]).reshape(1),
    "linalg.eigh": lambda m: torch.linalg.eigh(m + m.mT)[0], "qr": lambda m: torch.linalg.qr(m)[0],
    "cholesky": lambda m: torch.linalg.cholesky(m @ m.mT + torch.eye(4)), "pinv": torch.linalg.pinv,
    "matrix_exp": torch.linalg.matrix_exp, "slogdet": lambda m: torch.linalg.slogdet(m)[1],
}, SQUARE)  # fmt: skip

PLACING = of({
    "gather(const idx)": lambda x: x.gather(1, PLACES), "take": lambda x: x.take(PLACES),
    "x[idx0, idx1]": lambda x: x[[0, 2, 1], [7, 0, 3]], "x[:, idx 2-D]": lambda x: x[:, PLACES],
    "x[:, idx]": lambda x: x[:, torch.tensor([3, 0])], "x[:, [2,0]]": lambda x: x[:, [2, 0]],
    "x[:, 1:5:2]": lambda x: x[:, 1:5:2], "x[..., -1]": lambda x: x[..., -1], "x[:, None]": lambda x: x[:, None] * 2,
    "x[:, const bool mask]": lambda x: x[:, MASK],
    "index_select(const)": lambda x: x.index_select(1, torch.tensor([2, 0, 2])),
    "take_along_dim": lambda x: torch.take_along_dim(x, PLACES, 1),
    "scatter(const)": lambda x: x.scatter(1, PLACES, 2.0),
    "scatter(const, x)": lambda x: torch.zeros(3, 8).scatter(1, PLACES, x),
    "scatter_add(const)": lambda x: torch.zeros(3, 8).scatter_add(1, PLACES, x),
    "scatter_reduce(const, amax)": lambda x: torch.zeros(3, 8).scatter_reduce(1, PLACES, x, "amax"),
    "index_add(const)": lambda x: x.index_add(0, INDEX, torch.ones(4, 8)),
    "index_add(const, x)": lambda x: torch.zeros(4, 8).index_add(0, torch.tensor([1, 3, 1]), x),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1, 4]), 3.0),
    "index_copy": lambda x: x.index_copy(1, torch.tensor([1, 4]), torch.ones(3, 2)),
    "index_copy(x)": lambda x: torch.zeros(3, 8).index_copy(1, torch.tensor([1, 4]), x[:, :2]),
    "slice assign y[:,0]=x": lambda x: assigned(x, (slice(None), 0), x[:, 1]),
    "slice assign tensor": lambda x: assigned(x, (slice(None), slice(2, 4)), torch.ones(3, 2)),
    "slice assign number": lambda x: assigned(x, (slice(1), slice(2, 4)), 5.0),
    "index_put const": lambda x: assigned(x, (torch.tensor([0, 2]), torch.tensor([5, 1])), 5.0),
    "index_put x": lambda x: assigned(x, (torch.tensor([0, 2]), torch.tensor([5, 1])), x[0, :2]),
    "mask assign": lambda x: assigned(x, (x > 0.5,), 0.0),
    "masked_scatter(const)": lambda x: x.masked_scatter(WIDE_MASK, torch.ones(6)),
    "flip": lambda x: x.flip(1), "fliplr": torch.fliplr, "rot90": torch.rot90, "roll": lambda x: x.roll(2, 1),
    "roll 2 dims": lambda x: x.roll((1, 3), (0, 1)), "tril": torch.tril, "triu": lambda x: x.triu(1),
    "diagonal": lambda x: x.diagonal(), "diag_embed": torch.diag_embed, "diag": lambda x: torch.diag(x[0]),
    "unfold(tensor)": lambda x: x.unfold(1, 3, 2), "as_strided": lambda x: x.as_strided((3, 4), (8, 2)),
    "block_diag": lambda x: torch.block_diag(x, x), "select_scatter": lambda x: x.select_scatter(x[0], 0, 1),
    "slice_scatter": lambda x: x.slice_scatter(x[:, :2], 1, 3, 5), "diagonal_scatter": lambda x: x.diagonal_scatter(
        torch.ones(3)),
    "repeat": lambda x: x.repeat(2, 3), "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat_interleave(const)": lambda x: x.repeat_interleave(torch.tensor([1, 0, 2]), 0),
    "tile": lambda x: x.tile(2, 2), "expand": lambda x: x[:, None].expand(3, 2, 8), "stack": lambda x: torch.stack([x, -x]),
    "cat": lambda x: torch.cat([x, x * 2], 1), "hstack": lambda x: torch.hstack([x, x]), "vstack": lambda x: torch.vstack(
        [x, x]), "dstack": lambda x: torch.dstack([x, x]),
    "split": lambda x: x.split(3, 1), "chunk": lambda x: x.chunk(2, 1), "tensor_split": lambda x: x.tensor_split(3, 1),
    "unbind": lambda x: x.unbind(0), "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij"),
    "broadcast_to": lambda x: x.broadcast_to(2, 3, 8), "atleast_3d": lambda x: torch.atleast_3d(x) * 2,
    "ravel": lambda x: x.ravel(), "narrow": lambda x: x.narrow(1, 2, 3), "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:, :1].squeeze(1), "view_as": lambda x: x.view_as(torch.empty(8, 3)), "x.T": lambda x: x.T * 1,
    "mT": lambda x: x.mT @ x, "masked mean": lambda x: (x * MASK).sum(1) / MASK.sum(),
    "tril_indices": lambda x: x[:, :3][:, torch.tril_indices(3, 3)[0]],
    "vander": lambda x: torch.vander(x[0], 3), "combinations": lambda x: torch.combinations(x[0]),
    "triu(const) @": lambda x: x @ torch.ones(8, 8).triu(), "F.embedding(argmax)": lambda x: F.embedding(
        x.argmax(1), TABLE), "vmap": lambda x: torch.vmap(lambda row: row * row.sum())(x),
}, X) | of({
    "movedim": lambda x: x.movedim(1, 3), "swapaxes": lambda x: x.swapaxes(0, 1) * 2, "permute": lambda x: x.permute(
        3, 1, 0, 2),
    "F.pad constant": lambda x: F.pad(x, (1, 2, 0, 1)), "F.pad reflect": lambda x: F.pad(x, (1, 2, 0, 1), "reflect"),
    "F.pad replicate": lambda x: F.pad(x, (1, 2, 0, 1), "replicate"), "F.pad circular": lambda x: F.pad(
        x, (1, 2, 0, 1), "circular"),
    "F.pad value=1": lambda x: F.pad(x, (1, 2, 0, 1), value=1.0),
    "F.pad value=-inf": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=-math.inf), 3),
    "F.unfold": lambda x: F.unfold(x, 3, stride=2), "F.fold": lambda x: F.fold(x.reshape(2, 16, 9), (4, 4), 2, stride=1),
    "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2), "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "interpolate area down/2": lambda x: F.interpolate(x, scale_factor=0.5, mode="area"),
    "interpolate area 6->8": lambda x: F.interpolate(x, size=8, mode="area"),
    "interpolate nearest down/2": lambda x: F.interpolate(x, scale_factor=0.5),
    "interpolate nearest 6->8": lambda x: F.interpolate(x, size=8),
    "interpolate bilinear down/2": lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"),
    "interpolate bilinear 6->8": lambda x: F.interpolate(x, size=8, mode="bilinear"),
    "interpolate bicubic down/2": lambda x: F.interpolate(x, scale_factor=0.5, mode="bicubic"),
    "interpolate bicubic 6->8": lambda x: F.interpolate(x, size=8, mode="bicubic"),
    "interpolate bilinear antialias": lambda x: F.interpolate(x, size=4, mode="bilinear", antialias=True),
    "grid_sample(const grid)": lambda x: F.grid_sample(x, GRID * 0.6, align_corners=False),
    "grid_sample(nearest, border)": lambda x: F.grid_sample(
        x, GRID, mode="nearest", padding_mode="border", align_corners=True),
    "grid_sample(private grid)": lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False),
    "affine_grid": lambda x: F.affine_grid(x.reshape(2, -1)[:, :6].reshape(2, 2, 3), [2, 4, 5, 5], align_corners=False),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(torch.relu, x, use_reentrant=False),
    "conv by private weights": lambda x: F.conv2d(x, x[:, :, :3, :3]),
}, IMAGE)  # fmt: skip

PROGRAMS = of({
    "for over dim": lambda x: torch.stack([row * i for i, row in enumerate(x)]), "returns input": lambda x: (x, x * 2),
    "returns dict": lambda x: {"a": x * 2, "b": [x + 1]}, "returns None+tensor": lambda x: (None, x * 2),
    "returns int": lambda x: (x * 2, 3), "returns const": lambda x: (x * 2, torch.ones(2)),
    "returns dataclass": lambda x: Result(x * 2),
    "x.item()": lambda x: x * x[0, 0].item(), "x.numpy()": lambda x: torch.from_numpy(x.numpy()) * 2,
    "x.tolist loop": lambda x: torch.stack([x * v for v in x[0].tolist()]), "if x.sum()>0": lambda x: x if x.sum() > 0 else -x,
    "torch.cond": lambda x: torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (x,)),
    "autocast": lambda x: under_autocast(x), "torch.rand_like +x": lambda x: x + torch.rand_like(x),
    "torch.randn(const)+x": lambda x: x + torch.randn(8), "F.gumbel_softmax": lambda x: F.gumbel_softmax(x),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "complex fft": lambda x: torch.fft.rfft(x).abs(), "fft real": lambda x: torch.view_as_real(torch.fft.fft(x)),
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x)),
    "stft": lambda x: torch.stft(x, 4, 2, window=torch.hann_window(4), return_complex=True).abs(),
    "no_grad": lambda x: without_gradients(x), "x.data": lambda x: x.data * 2, "x.detach()": lambda x: x.detach() * 2,
    "assert": lambda x: checked(x), "shape arithmetic": lambda x: x / math.sqrt(x.shape[1]),
}, X)  # fmt: skip


class Result:
    """What no pytree knows."""

    def __init__(self, value: Tensor) -> None:
        self.value = value


def assigned(x: Tensor, places: Any, value: Any) -> Tensor:
    """A copy of which some elements are set."""
    y = x.clone()
    y[places] = value
    return y


def under_autocast(x: Tensor) -> Tensor:
    """A product in bfloat16."""
    with torch.autocast("cpu", torch.bfloat16):
        return (x @ x.T).float()


def without_gradients(x: Tensor) -> Tensor:
    """A block that keeps no graph."""
    with torch.no_grad():
        return x * 2


def checked(x: Tensor) -> Tensor:
    """A condition on shapes."""
    assert x.shape[1] == 8
    return x * 2


FUNCTIONS: dict[str, Build] = {
    **COMPARISONS, **ORDER, **POINTWISE, **REDUCTIONS, **PRODUCTS, **PLACING, **PROGRAMS,
}  # fmt: skip
