"""What functions are called with, and the constants in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
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
