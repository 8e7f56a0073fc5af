"""Transformers from embeddings: BERT, GPT-2 and ViT, with the layers that the papers' base sizes have.

Attention is written out (scores, softmax, values), all heads side by side. A mask is a finite constant of the model
that is added to the scores: a softmax gives ``e^-60`` the weight 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MASKED = -60.0
"""What is added to the score of a position that may not be read."""


@dataclass(frozen=True)
class Size:
    """Layers, width, heads and rows (tokens or patches) of a transformer; the hidden layer is four times as wide."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    tokens: int = 128


class Attention(nn.Module):
    """``softmax(q k^T / sqrt(d) + mask) v`` of every head, then one more linear layer."""

    def __init__(self, size: Size, causal: bool) -> None:
        super().__init__()
        self.heads = size.heads
        self.query, self.key, self.value, self.output = (nn.Linear(size.width, size.width) for _ in range(4))
        self.mask: Tensor | None
        mask = torch.triu(torch.full((1, 1, size.tokens, size.tokens), MASKED), diagonal=1) if causal else None
        self.register_buffer("mask", mask)

    def split(self, x: Tensor) -> Tensor:
        """``[n, tokens, width]`` as ``[n, heads, tokens, width / heads]``."""
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        """``[n, tokens, width]`` to the same shape."""
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) * (1.0 / math.sqrt(q.shape[-1]))
        if self.mask is not None:
            scores = scores + self.mask
        y = scores.softmax(-1) @ v
        return self.output(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Attention and two linear layers with a GELU between, each added to its operand; LayerNorm before or behind."""

    def __init__(self, size: Size, *, causal: bool, norm_first: bool, approximate: str, eps: float) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = Attention(size, causal)
        self.hidden, self.output = nn.Linear(size.width, 4 * size.width), nn.Linear(4 * size.width, size.width)
        self.gelu = nn.GELU(approximate)
        self.norms = nn.ModuleList(nn.LayerNorm(size.width, eps=eps) for _ in range(2))

    def feed(self, x: Tensor) -> Tensor:
        """The two linear layers."""
        return self.output(self.gelu(self.hidden(x)))

    def forward(self, x: Tensor) -> Tensor:
        """``[n, tokens, width]`` to the same shape."""
        if self.norm_first:
            x = x + self.attention(self.norms[0](x))
            return x + self.feed(self.norms[1](x))
        x = self.norms[0](x + self.attention(x))
        return self.norms[1](x + self.feed(x))


class Bert(nn.Module):
    """BERT's encoder (Devlin et al., 2019) from embeddings: ``[n, 128, 768]`` to ``[n, 128, 768]``, 85,056,000 parameters.

    LayerNorm of the embeddings (eps 1e-12 of the source is 1e-5 here: fixed point has no number so small), then 12
    blocks with 12 heads, GELU and LayerNorm behind each sum. Without look-up of words, padding mask and pooler.
    """

    def __init__(self, size: Size | None = None) -> None:
        super().__init__()
        size = size or Size()
        kind = {"causal": False, "norm_first": False, "approximate": "none", "eps": 1e-5}
        self.norm = nn.LayerNorm(size.width, eps=1e-5)
        self.blocks = nn.Sequential(*(Block(size, **kind) for _ in range(size.layers)))  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """The states of all tokens."""
        return self.blocks(self.norm(x))


class Gpt2(nn.Module):
    """GPT-2 small (Radford et al., 2019) from embeddings: ``[n, 128, 768]`` to ``[n, 128, 768]``, 85,056,000 parameters.

    12 blocks with 12 heads, a causal mask, LayerNorm before each layer and GELU by tanh; a LayerNorm behind them.
    Without look-up of words and head.
    """

    def __init__(self, size: Size | None = None) -> None:
        super().__init__()
        size = size or Size()
        kind = {"causal": True, "norm_first": True, "approximate": "tanh", "eps": 1e-5}
        self.blocks = nn.Sequential(*(Block(size, **kind) for _ in range(size.layers)))  # type: ignore[arg-type]
        self.norm = nn.LayerNorm(size.width)

    def forward(self, x: Tensor) -> Tensor:
        """The states of all tokens."""
        return self.norm(self.blocks(x))


class Vit(nn.Module):
    """ViT-B/16 (Dosovitskiy et al., 2021): ``[n, 3, 224, 224]`` to 1000 scores, 86,567,656 parameters.

    Patches of 16x16 by a convolution, a class token and 196 patches with positions, 12 blocks with 12 heads, LayerNorm
    before each layer and GELU, a LayerNorm behind them, and a linear layer on the class token.
    """

    def __init__(self, size: Size | None = None, patch: int = 16, classes: int = 1000) -> None:
        super().__init__()
        size = size or Size(tokens=197)
        kind = {"causal": False, "norm_first": True, "approximate": "none", "eps": 1e-6}
        self.patches = nn.Conv2d(3, size.width, patch, stride=patch)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, size.width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, size.tokens, size.width))
        self.blocks = nn.Sequential(*(Block(size, **kind) for _ in range(size.layers)))  # type: ignore[arg-type]
        self.norm = nn.LayerNorm(size.width, eps=1e-6)
        self.head = nn.Linear(size.width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def bert_base() -> Bert:
    """``Bert`` with 12 layers, width 768, 12 heads and 128 tokens: 85,056,000 parameters."""
    return Bert()


def gpt2() -> Gpt2:
    """``Gpt2`` with 12 layers, width 768, 12 heads and 128 tokens: 85,056,000 parameters."""
    return Gpt2()


def vit_b16() -> Vit:
    """``Vit`` with 12 layers, width 768, 12 heads and 197 rows: 86,567,656 parameters."""
    return Vit()


def bert_small() -> Bert:
    """``Bert`` with 2 layers, width 64, 4 heads and 16 tokens: 100,096 parameters."""
    return Bert(Size(2, 64, 4, 16))


def gpt2_small() -> Gpt2:
    """``Gpt2`` with 2 layers, width 64, 4 heads and 16 tokens: 100,096 parameters."""
    return Gpt2(Size(2, 64, 4, 16))


def vit_small() -> Vit:
    """``Vit`` with 2 layers, width 64, 4 heads and 17 rows of an image of 32x32: 114,250 parameters."""
    return Vit(Size(2, 64, 4, 17), patch=8, classes=10)
