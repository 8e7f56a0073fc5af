"""What a model is compiled for: the network on which a run shall be fast, and how many key bytes it may use up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .native import available, native

Network = str | Mapping[str, Any]


@dataclass(frozen=True)
class Aim:
    """A network as the compiled part writes it, and a cap."""

    network: str
    max_key_bytes: int | None

    @staticmethod
    def of(network: Network, max_key_bytes: int | None) -> Aim:
        """Raises ``ValueError`` for a network that is none, and for a cap that is no positive whole number."""
        text = network_profile(network)
        if max_key_bytes is not None and not (type(max_key_bytes) is int and max_key_bytes > 0):
            raise ValueError(f"max_key_bytes is a positive whole number of bytes, not {max_key_bytes!r}")
        # the names of networks are the compiled part's; without it the text stays as it was given
        return Aim(native().network(text) if available() else text, max_key_bytes)


def network_profile(network: Network) -> str:
    """``{"rtt": 0.06, "bandwidth": 36.6e6}`` (seconds, bytes a second, or text with units) as one line."""
    if isinstance(network, str):
        return network
    if not isinstance(network, Mapping) or set(network) != {"rtt", "bandwidth"}:
        raise ValueError(f"a network is a name or a dictionary with 'rtt' and 'bandwidth', not {network!r}")
    parts = []
    for key, scale, unit in (("rtt", 1e3, "ms"), ("bandwidth", 1e-6, "MB/s")):
        value = network[key]
        parts.append(f"{key}={value}" if isinstance(value, str) else f"{key}={value * scale:g}{unit}")
    return ",".join(parts)
