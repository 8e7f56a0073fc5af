"""What generation asks of a model, and models of ``transformers`` that have it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import UnsupportedModel


class Decoder(nn.Module):
    """A language model whose keys and values are arguments and results.

    ``vocabulary`` is the number of tokens, ``longest`` the number of places that it knows, if it knows a number.
    """

    vocabulary: int
    longest: int | None = None

    def kept(self) -> list[tuple[int, int]]:
        """Heads and width of every tensor ``[1, heads, tokens, width]`` that is kept, in the order of ``forward``."""
        raise NotImplementedError

    def positions(self, places: Tensor) -> list[Tensor]:
        """What the data's owner gives beside tokens at ``places`` ``[1, tokens]``: indices, or cosines and sines."""
        raise NotImplementedError

    def forward(
        self, ids: Tensor, positions: Sequence[Tensor], mask: Tensor, past: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """Scores of the token after the last one, ``[1, vocabulary]``, and what is kept of all tokens.

        Args:
            ids: ``[1, tokens]``.
            positions: Those of :meth:`positions`.
            mask: ``[1, 1, tokens, earlier + tokens]``, added to scores.
            past: What is kept of earlier tokens.
        """
        raise NotImplementedError


def decoder_of(model: nn.Module) -> Decoder:
    """The model itself, or a model of ``transformers`` that keeps keys and values in a ``DynamicCache``."""
    if isinstance(model, Decoder):
        return model
    known = inspect.signature(model.forward).parameters
    if hasattr(model, "config") and {"past_key_values", "position_ids", "attention_mask"} <= set(known):
        return Published(model)
    raise UnsupportedModel(
        f"{type(model).__name__} cannot generate privately: it is no causal model of transformers with keys and values"
        " as a cache; write a `privet.generation.Decoder`, as `privet.models.decoders` does"
    )


class Rotary(nn.Module):
    """Stands where a model computes cosines and sines of positions, and gives those of the owner."""

    def __init__(self) -> None:
        super().__init__()
        self.given: tuple[Tensor, Tensor] | None = None

    def forward(self, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """What was given."""
        if self.given is None:
            raise UnsupportedModel("the model asks for positions that were not given")
        return self.given


class Published(Decoder):
    """A causal model of ``transformers``, with learnt or rotary positions."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        config: Any = model.config
        self.vocabulary = int(config.vocab_size)
        self.longest = int(config.max_position_embeddings)
        self.layers = int(config.num_hidden_layers)
        heads = int(config.num_attention_heads)
        self.heads = int(getattr(config, "num_key_value_heads", None) or heads)
        self.head = int(getattr(config, "head_dim", None) or config.hidden_size // heads)
        self.rotary = [
            (parent, name)
            for parent in model.modules()
            for name, child in parent.named_children()
            if type(child).__name__.endswith("RotaryEmbedding")
        ]

    def kept(self) -> list[tuple[int, int]]:
        """Keys and values of every layer."""
        return [(self.heads, self.head)] * (2 * self.layers)

    def positions(self, places: Tensor) -> list[Tensor]:
        """Indices of a table, or cosines and sines."""
        if not self.rotary:
            return [places]
        parent, name = self.rotary[0]
        with torch.no_grad():
            cosine, sine = getattr(parent, name)(torch.zeros(1), places)
        return [cosine, sine]

    def forward(
        self, ids: Tensor, positions: Sequence[Tensor], mask: Tensor, past: Sequence[Tensor]
    ) -> tuple[Tensor, list[Tensor]]:
        """The model's own, with a cache of these keys and values."""
        cache = importlib.import_module("transformers").DynamicCache()
        for layer in range(self.layers):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        places = positions[0] if not self.rotary else torch.zeros_like(ids)
        with self.given(positions):
            result = self.model(
                input_ids=ids, position_ids=places, attention_mask=mask, past_key_values=cache, use_cache=True
            )
        kept = [t for layer in cache.layers for t in (layer.keys, layer.values)]
        return result.logits[:, -1], kept

    @contextmanager
    def given(self, positions: Sequence[Tensor]) -> Iterator[None]:
        """Rotary positions are the owner's, while this lasts."""
        before = [(parent, name, getattr(parent, name)) for parent, name in self.rotary]
        try:
            for parent, name, _ in before:
                stand_in = Rotary()
                stand_in.given = (positions[0], positions[1])
                setattr(parent, name, stand_in)
            yield
        finally:
            for parent, name, own in before:
                setattr(parent, name, own)
