"""Images read at the places of a constant grid: linear in the image, so a constant matrix says it."""

from __future__ import annotations

import math

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_gather import MOST_MATRIX, lines
from ._ops_layers import reshape_to
from ._ops_shape import cut


@op("aten.grid_sampler_2d.default", "aten.grid_sampler_3d.default", "aten.grid_sampler.default")
def grid_sample(lo: Lowering, a: Args) -> Value:
    """One matrix for all images where they have the same grid, else one each."""
    grid = lo.tensor(a["grid"])
    if grid is None:
        raise Decline("a private grid")
    x, out = lo.use(a["input"]), lo.shape
    rows, channels, *extents = lo.shape_at(x)
    size = math.prod(extents)
    if size * math.prod(out[2:]) > MOST_MATRIX:
        raise Decline("a grid of too many places")
    units = torch.eye(size).reshape(1, size, *extents)
    flat = reshape_to(lo, x, [rows, channels, size])
    same = bool((grid == grid[:1]).all())
    parts = []
    for row in range(1 if same else rows):
        found = lo.apply({"input": units, "grid": grid[row : row + 1].to(torch.float32)})
        matrix = found.reshape(size, -1).t()
        parts.append(lines(lo, flat if same else cut(lo, flat, 0, row, row + 1), 2, matrix))
    shape = [rows, channels, math.prod(out[2:])]
    node = parts[0] if len(parts) == 1 else lo.emit({"kind": "concat", "dim": 0}, parts, shape)
    return reshape_to(lo, node, out)
