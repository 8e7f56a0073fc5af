"""Private generation: a language model writes tokens that only the receiver sees (``docs/generation.md``)."""

from .decoder import Decoder, decoder_of
from .generator import Generator, generate

__all__ = ["Decoder", "Generator", "decoder_of", "generate"]
