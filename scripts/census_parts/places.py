"""Functions that move elements."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .operands import GRID, IMAGE, INDEX, MASK, PLACES, TABLE, WIDE_MASK, X, of


def assigned(x: Tensor, places: Any, value: Any) -> Tensor:
    """A copy of which some elements are set."""
    y = x.clone()
    y[places] = value
    return y


PLACING = of(
    {
        "gather(const idx)": lambda x: x.gather(1, PLACES),
        "take": lambda x: x.take(PLACES),
        "x[idx0, idx1]": lambda x: x[[0, 2, 1], [7, 0, 3]],
        "x[:, idx 2-D]": lambda x: x[:, PLACES],
        "x[:, idx]": lambda x: x[:, torch.tensor([3, 0])],
        "x[:, [2,0]]": lambda x: x[:, [2, 0]],
        "x[:, 1:5:2]": lambda x: x[:, 1:5:2],
        "x[..., -1]": lambda x: x[..., -1],
        "x[:, None]": lambda x: x[:, None] * 2,
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
        "flip": lambda x: x.flip(1),
        "fliplr": torch.fliplr,
        "rot90": torch.rot90,
        "roll": lambda x: x.roll(2, 1),
        "roll 2 dims": lambda x: x.roll((1, 3), (0, 1)),
        "tril": torch.tril,
        "triu": lambda x: x.triu(1),
        "diagonal": lambda x: x.diagonal(),
        "diag_embed": torch.diag_embed,
        "diag": lambda x: torch.diag(x[0]),
        "unfold(tensor)": lambda x: x.unfold(1, 3, 2),
        "as_strided": lambda x: x.as_strided((3, 4), (8, 2)),
        "block_diag": lambda x: torch.block_diag(x, x),
        "select_scatter": lambda x: x.select_scatter(x[0], 0, 1),
        "slice_scatter": lambda x: x.slice_scatter(x[:, :2], 1, 3, 5),
        "diagonal_scatter": lambda x: x.diagonal_scatter(torch.ones(3)),
        "repeat": lambda x: x.repeat(2, 3),
        "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
        "repeat_interleave(const)": lambda x: x.repeat_interleave(torch.tensor([1, 0, 2]), 0),
        "tile": lambda x: x.tile(2, 2),
        "expand": lambda x: x[:, None].expand(3, 2, 8),
        "stack": lambda x: torch.stack([x, -x]),
        "cat": lambda x: torch.cat([x, x * 2], 1),
        "hstack": lambda x: torch.hstack([x, x]),
        "vstack": lambda x: torch.vstack([x, x]),
        "dstack": lambda x: torch.dstack([x, x]),
        "split": lambda x: x.split(3, 1),
        "chunk": lambda x: x.chunk(2, 1),
        "tensor_split": lambda x: x.tensor_split(3, 1),
        "unbind": lambda x: x.unbind(0),
        "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij"),
        "broadcast_to": lambda x: x.broadcast_to(2, 3, 8),
        "atleast_3d": lambda x: torch.atleast_3d(x) * 2,
        "ravel": lambda x: x.ravel(),
        "narrow": lambda x: x.narrow(1, 2, 3),
        "unsqueeze": lambda x: x.unsqueeze(1),
        "squeeze": lambda x: x[:, :1].squeeze(1),
        "view_as": lambda x: x.view_as(torch.empty(8, 3)),
        "x.T": lambda x: x.T * 1,
        "mT": lambda x: x.mT @ x,
        "masked mean": lambda x: (x * MASK).sum(1) / MASK.sum(),
        "tril_indices": lambda x: x[:, :3][:, torch.tril_indices(3, 3)[0]],
        "vander": lambda x: torch.vander(x[0], 3),
        "combinations": lambda x: torch.combinations(x[0]),
        "triu(const) @": lambda x: x @ torch.ones(8, 8).triu(),
        "F.embedding(argmax)": lambda x: F.embedding(x.argmax(1), TABLE),
        "vmap": lambda x: torch.vmap(lambda row: row * row.sum())(x),
    },
    X,
) | of(
    {
        "movedim": lambda x: x.movedim(1, 3),
        "swapaxes": lambda x: x.swapaxes(0, 1) * 2,
        "permute": lambda x: x.permute(3, 1, 0, 2),
        "F.pad constant": lambda x: F.pad(x, (1, 2, 0, 1)),
        "F.pad reflect": lambda x: F.pad(x, (1, 2, 0, 1), "reflect"),
        "F.pad replicate": lambda x: F.pad(x, (1, 2, 0, 1), "replicate"),
        "F.pad circular": lambda x: F.pad(x, (1, 2, 0, 1), "circular"),
        "F.pad value=1": lambda x: F.pad(x, (1, 2, 0, 1), value=1.0),
        "F.pad value=-inf": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=-math.inf), 3),
        "F.unfold": lambda x: F.unfold(x, 3, stride=2),
        "F.fold": lambda x: F.fold(x.reshape(2, 16, 9), (4, 4), 2, stride=1),
        "pixel_unshuffle": lambda x: F.pixel_unshuffle(x, 2),
        "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
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
            x, GRID, mode="nearest", padding_mode="border", align_corners=True
        ),
        "grid_sample(private grid)": lambda x: F.grid_sample(
            x, x[:, :2].permute(0, 2, 3, 1).tanh(), align_corners=False
        ),
        "affine_grid": lambda x: F.affine_grid(
            x.reshape(2, -1)[:, :6].reshape(2, 2, 3), [2, 4, 5, 5], align_corners=False
        ),
        "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(torch.relu, x, use_reentrant=False),
        "conv by private weights": lambda x: F.conv2d(x, x[:, :, :3, :3]),
    },
    IMAGE,
)
