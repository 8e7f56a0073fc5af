"""What else a `forward` may do: results, branches, randomness, other types."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .operands import X, of

PROGRAMS = of(
    {
        "for over dim": lambda x: torch.stack([row * i for i, row in enumerate(x)]),
        "returns input": lambda x: (x, x * 2),
        "returns dict": lambda x: {"a": x * 2, "b": [x + 1]},
        "returns None+tensor": lambda x: (None, x * 2),
        "returns int": lambda x: (x * 2, 3),
        "returns const": lambda x: (x * 2, torch.ones(2)),
        "returns dataclass": lambda x: Result(x * 2),
        "x.item()": lambda x: x * x[0, 0].item(),
        "x.numpy()": lambda x: torch.from_numpy(x.numpy()) * 2,
        "x.tolist loop": lambda x: torch.stack([x * v for v in x[0].tolist()]),
        "if x.sum()>0": lambda x: x if x.sum() > 0 else -x,
        "torch.cond": lambda x: torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (x,)),
        "autocast": lambda x: under_autocast(x),
        "torch.rand_like +x": lambda x: x + torch.rand_like(x),
        "torch.randn(const)+x": lambda x: x + torch.randn(8),
        "F.gumbel_softmax": lambda x: F.gumbel_softmax(x),
        "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
        "complex fft": lambda x: torch.fft.rfft(x).abs(),
        "fft real": lambda x: torch.view_as_real(torch.fft.fft(x)),
        "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x)),
        "stft": lambda x: torch.stft(x, 4, 2, window=torch.hann_window(4), return_complex=True).abs(),
        "no_grad": lambda x: without_gradients(x),
        "x.data": lambda x: x.data * 2,
        "x.detach()": lambda x: x.detach() * 2,
        "assert": lambda x: checked(x),
        "shape arithmetic": lambda x: x / math.sqrt(x.shape[1]),
    },
    X,
)


class Result:
    """What no pytree knows."""

    def __init__(self, value: Tensor) -> None:
        self.value = value


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
