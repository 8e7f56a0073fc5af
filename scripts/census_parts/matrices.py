"""Functions along dimensions, and products."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from .operands import HEADS, IMAGE, LEFT, SQUARE, TRIANGLE, TURNS, WEIGHT, WEIGHTS, X, Y, of

REDUCTIONS = (
    of(
        {
            "softmax": lambda x: x.softmax(-1),
            "softmax(dtype=f32)": lambda x: x.softmax(-1, dtype=torch.float32),
            "log_softmax": lambda x: x.log_softmax(-1),
            "softmin": lambda x: F.softmin(x, -1),
            "mean(dim)": lambda x: x.mean(1),
            "sum(dim,dtype)": lambda x: x.sum(1, dtype=torch.float32),
            "mean()": lambda x: x.mean().reshape(1),
            "nanmean": lambda x: x.nanmean(1),
            "nansum": lambda x: x.nansum(1),
            "logsumexp": lambda x: x.logsumexp(1),
            "cumsum": lambda x: x.cumsum(1),
            "cumprod": lambda x: x.cumprod(1),
            "logcumsumexp": lambda x: x.logcumsumexp(1),
            "prod(dim)": lambda x: x.prod(1),
            "prod()": lambda x: x[:, :2].prod().reshape(1),
            "std": lambda x: x.std(1),
            "std(unbiased=False,keepdim)": lambda x: x.std(1, unbiased=False, keepdim=True),
            "var": lambda x: x.var(1),
            "var()": lambda x: x.var().reshape(1),
            "var_mean": lambda x: torch.var_mean(x, 1),
            "std_mean": lambda x: torch.std_mean(x, 1),
            "norm(2)": lambda x: x.norm(dim=1),
            "norm(1)": lambda x: x.norm(1, dim=1),
            "norm(inf)": lambda x: x.norm(math.inf, dim=1),
            "norm(3)": lambda x: x.norm(3, dim=1),
            "linalg.norm": lambda x: torch.linalg.norm(x, dim=1),
            "linalg.vector_norm": torch.linalg.vector_norm,
            "linalg.matrix_norm": torch.linalg.matrix_norm,
            "frobenius norm()": lambda x: x.norm().reshape(1),
            "F.normalize": F.normalize,
            "F.normalize(p=1)": lambda x: F.normalize(x, p=1),
            "renorm": lambda x: torch.renorm(x, 2, 0, 1.0),
            "cov": lambda x: torch.cov(x),
            "corrcoef": lambda x: torch.corrcoef(x),
            "pdist": lambda x: F.pdist(x),
            "cdist(const)": lambda x: torch.cdist(x, Y),
            "trapezoid": lambda x: torch.trapezoid(x),
            "cosine_similarity(const)": lambda x: F.cosine_similarity(x, Y),
            "diff": lambda x: x.diff(),
            "gradient": lambda x: torch.gradient(x, dim=1)[0],
            "F.layer_norm": lambda x: F.layer_norm(x, (8,)),
            "F.rms_norm": lambda x: F.rms_norm(x, (8,)),
        },
        X,
    )
    | of(
        {
            "cosine_similarity": F.cosine_similarity,
            "cdist": torch.cdist,
            "cdist(p=1)": lambda x, y: torch.cdist(x, y, 1.0),
            "pairwise_distance": F.pairwise_distance,
            "vdot": lambda x, y: torch.vdot(x[0], y[0]).reshape(1),
        },
        X,
        Y,
    )
    | of(
        {
            "F.group_norm": lambda x: F.group_norm(x, 2),
            "F.instance_norm": F.instance_norm,
            "F.local_response_norm": lambda x: F.local_response_norm(x, 3),
        },
        IMAGE,
    )
)

PRODUCTS = (
    of(
        {
            "einsum matmul": lambda x, y: torch.einsum("ij,kj->ik", x, y),
            "einsum outer": lambda x, y: torch.einsum("i,j->ij", x[0], y[0]),
            "outer": lambda x, y: torch.outer(x[0], y[0]),
            "inner": torch.inner,
            "dot": lambda x, y: x[0].dot(y[0]).reshape(1),
            "tensordot": lambda x, y: torch.tensordot(x, y, ([0], [0])),
            "kron": torch.kron,
            "addmm(beta=.5)": lambda x, y: torch.addmm(torch.ones(3, 3), x, y.T, beta=0.5),
            "addmm(alpha)": lambda x, y: torch.addmm(torch.ones(3, 3), x, y.T, alpha=2.0),
            "addmv": lambda x, y: torch.addmv(torch.ones(3), x, y[0], beta=2),
            "addr": lambda x, y: torch.addr(torch.ones(8, 8), x[0], y[0]),
            "cartesian_prod": lambda x, y: torch.cartesian_prod(x[0], y[0]),
            "cross": lambda x, y: torch.linalg.cross(x[:, :3], y[:, :3]),
            "x @ x.T": lambda x, y: x @ x.T,
            "chain_matmul": lambda x, y: torch.linalg.multi_dot([x, y.T, x]),
            "einsum of three": lambda x, y: torch.einsum("ij,ij,kj->ik", x, y, x),
        },
        X,
        Y,
    )
    | of(
        {
            "einsum attention": lambda q: torch.einsum("bhid,bhjd->bhij", q, q),
            "matmul batch const": lambda q: q @ WEIGHT,
            "einsum const w": lambda q: torch.einsum("bhid,hde->bhie", q, WEIGHTS),
            "const @ x": lambda q: LEFT @ q,
            "sdpa": lambda q: F.scaled_dot_product_attention(q, q, q),
            "sdpa is_causal": lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
            "sdpa gqa": lambda q: F.scaled_dot_product_attention(q, q[:, :2], q[:, 2:], enable_gqa=True),
            "sdpa const bool mask": lambda q: F.scaled_dot_product_attention(q, q, q, TRIANGLE),
            "sdpa const -inf mask": lambda q: F.scaled_dot_product_attention(
                q, q, q, torch.zeros(5, 5).masked_fill(~TRIANGLE, -math.inf)
            ),
            "x + (-inf const mask)": lambda q: (q @ q.mT + torch.zeros(5, 5).masked_fill(~TRIANGLE, -math.inf)).softmax(
                -1
            ),
            "x + (finfo.min const)": lambda q: (
                q @ q.mT + torch.where(TRIANGLE, 0.0, torch.finfo(torch.float32).min)
            ).softmax(-1),
            "sdpa private float mask": lambda q: F.scaled_dot_product_attention(q, q, q, q[..., :5] * 0.1),
            "view_as_complex rope": lambda q: torch.view_as_real(
                torch.view_as_complex(q.reshape(1, 4, 5, 4, 2)) * TURNS
            ).flatten(3),
        },
        HEADS,
    )
    | of(
        {
            "bmm": lambda m: m.bmm(m),
            "baddbmm": lambda m: torch.baddbmm(m, m, m, beta=0.5, alpha=2),
            "matrix_power": lambda m: torch.linalg.matrix_power(m, 3),
            "linalg.inv": torch.linalg.inv,
            "linalg.det": torch.linalg.det,
            "linalg.solve": lambda m: torch.linalg.solve(m, m),
            "svd": lambda m: torch.linalg.svd(m)[1],
            "einsum trace": lambda m: torch.einsum("bii->b", m),
            "trace": lambda m: torch.trace(m[0]).reshape(1),
            "linalg.eigh": lambda m: torch.linalg.eigh(m + m.mT)[0],
            "qr": lambda m: torch.linalg.qr(m)[0],
            "cholesky": lambda m: torch.linalg.cholesky(m @ m.mT + torch.eye(4)),
            "pinv": torch.linalg.pinv,
            "matrix_exp": torch.linalg.matrix_exp,
            "slogdet": lambda m: torch.linalg.slogdet(m)[1],
        },
        SQUARE,
    )
)
