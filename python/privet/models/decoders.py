"""Language models that write one token after the other: GPT-2 and Llama.

Keys and values of earlier tokens are arguments and results (:class:`privet.generation.Decoder`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..generation.decoder import Decoder


@dataclass(frozen=True)
class Layout:
    """Sizes of a decoder; ``keys`` heads of keys and values are shared by ``heads`` heads of queries."""

    vocabulary: int
    layers: int = 2
    width: int = 32
    heads: int = 4
    keys: int = 4
    hidden: int = 64
    positions: int = 64

    @property
    def head(self) -> int:
        """The width of a head."""
        return self.width // self.heads


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """``softmax(q k^T / sqrt(d) + mask) v``; heads of keys and values are repeated for their queries."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ k.transpose(-1, -2) * (1.0 / math.sqrt(q.shape[-1])) + mask
    y = scores.softmax(-1) @ v
    return y.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


def split(x: Tensor, heads: int) -> Tensor:
    """``[n, tokens, width]`` as ``[n, heads, tokens, width / heads]``."""
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


class CachedDecoder(Decoder):
    """What both have in common: sizes of states."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.vocabulary = layout.vocabulary
        self.longest = layout.positions

    def kept(self) -> list[tuple[int, int]]:
        """Keys and values of every layer."""
        return [(self.layout.keys, self.layout.head)] * (2 * self.layout.layers)


class Gpt2Block(nn.Module):
    """Attention and two linear layers with a GELU between, normalised before each, added to their operand."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.heads, width = layout.heads, layout.width
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.joint, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, layout.hidden), nn.Linear(layout.hidden, width)
        self.gelu = nn.GELU("tanh")

    def forward(self, x: Tensor, mask: Tensor, past: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """The same shape, and all keys and values."""
        q, k, v = (split(part, self.heads) for part in self.joint(self.norms[0](x)).chunk(3, -1))
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        x = x + self.output(attend(q, k, v, mask))
        return x + self.down(self.gelu(self.up(self.norms[1](x)))), [k, v]


class Gpt2(CachedDecoder):
    """Radford et al., 2019: learnt positions, LayerNorm, GELU, scores by the table of tokens."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.tokens = nn.Embedding(layout.vocabulary, layout.width)
        self.places = nn.Embedding(layout.positions, layout.width)
        self.blocks = nn.ModuleList(Gpt2Block(layout) for _ in range(layout.layers))
        self.norm = nn.LayerNorm(layout.width)
        self.scores = nn.Linear(layout.width, layout.vocabulary, bias=False)
        self.scores.weight = self.tokens.weight

    def positions(self, places: Tensor) -> list[Tensor]:
        """The indices themselves."""
        return [places]

    def forward(
        self, ids: Tensor, positions: Sequence[Tensor], mask: Tensor, past: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Scores of the last token, and all keys and values."""
        x, kept = self.tokens(ids) + self.places(positions[0]), []
        for i, block in enumerate(self.blocks):
            x, pair = block(x, mask, past[2 * i : 2 * i + 2])
            kept += pair
        return self.scores(self.norm(x[:, -1])), kept


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Pairs of numbers turned by an angle that grows with the token's place."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cosine + turned * sine


class LlamaBlock(nn.Module):
    """Attention with turned keys and queries, and a gated linear layer, normalised before each."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.heads, self.keys, width, head = layout.heads, layout.keys, layout.width, layout.head
        self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-5) for _ in range(2))
        self.query, self.output = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, layout.keys * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, layout.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(layout.hidden, width, bias=False)

    def forward(
        self, x: Tensor, turn: Sequence[Tensor], mask: Tensor, past: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """The same shape, and all keys and values."""
        y = self.norms[0](x)
        q = rotated(split(self.query(y), self.heads), *turn)
        k, v = rotated(split(self.key(y), self.keys), *turn), split(self.value(y), self.keys)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        x = x + self.output(attend(q, k, v, mask))
        y = self.norms[1](x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), [k, v]


class Llama(CachedDecoder):
    """Touvron et al., 2023: rotary positions, RMSNorm, SwiGLU, grouped queries."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.tokens = nn.Embedding(layout.vocabulary, layout.width)
        self.blocks = nn.ModuleList(LlamaBlock(layout) for _ in range(layout.layers))
        self.norm = nn.RMSNorm(layout.width, eps=1e-5)
        self.scores = nn.Linear(layout.width, layout.vocabulary, bias=False)

    def positions(self, places: Tensor) -> list[Tensor]:
        """Cosines and sines of the angles, ``[1, tokens, head]``."""
        head = self.layout.head
        rates = 10_000.0 ** (-torch.arange(0, head, 2, dtype=torch.float32) / head)
        angles = places[..., None].to(torch.float32) * rates
        angles = torch.cat([angles, angles], -1)
        return [angles.cos(), angles.sin()]

    def forward(
        self, ids: Tensor, positions: Sequence[Tensor], mask: Tensor, past: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Scores of the last token, and all keys and values."""
        x, kept = self.tokens(ids), []
        turn = [p.unsqueeze(1) for p in positions]
        for i, block in enumerate(self.blocks):
            x, pair = block(x, turn, mask, past[2 * i : 2 * i + 2])
            kept += pair
        return self.scores(self.norm(x[:, -1])), kept
