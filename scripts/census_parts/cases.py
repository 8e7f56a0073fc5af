"""What a row of the census is made of: a module and what it is called with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Inputs = Any
"""A tensor, a tuple of tensors, or a mapping of names to arguments."""

Build = Callable[[], tuple[nn.Module, Inputs]]
"""Makes the module and its inputs, after the seed was set."""


class Apply(nn.Module):
    """Any function of tensors, and of a module where it has parameters."""

    def __init__(self, function: Callable[..., Any], body: nn.Module | None = None) -> None:
        super().__init__()
        self.function = function
        self.body = body

    def forward(self, *inputs: Tensor) -> Any:
        """The function of the inputs, after the module where there is one."""
        return self.function(*inputs) if self.body is None else self.function(self.body, *inputs)


def noise(*shape: int, seed: int = 2) -> Tensor:
    """Normal numbers, the same in every run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def unit(*shape: int, seed: int = 2) -> Tensor:
    """Uniform numbers from 0.05 to 0.95."""
    return 0.05 + 0.9 * torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def positive(*shape: int, seed: int = 2) -> Tensor:
    """Uniform numbers from 0.2 to 2.2."""
    return 0.2 + 2 * torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def ids(rows: int, *shape: int, seed: int = 2) -> Tensor:
    """Whole numbers below ``rows``."""
    return torch.randint(0, rows, shape, generator=torch.Generator().manual_seed(seed))


def layer(make: Callable[[], nn.Module], *inputs: Tensor) -> Build:
    """A module called with these tensors."""
    return lambda: (make(), inputs)


def use(function: Callable[..., Any], make: Callable[[], nn.Module], *inputs: Tensor) -> Build:
    """``function(module, *inputs)``."""
    return lambda: (Apply(function, make()), inputs)


def function(what: Callable[..., Any], *inputs: Tensor) -> Build:
    """A function called with these tensors."""
    return lambda: (Apply(what), inputs)
