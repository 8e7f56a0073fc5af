"""How many bits values have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import PrecisionError


@dataclass(frozen=True)
class Precision:
    """Explicit ring bits and fraction bits, for the whole plan and for single layers.

    Args:
        bits: Ring bits k, 8 to 64: values live in Z_2^k. ``None`` lets privet choose from calibration.
        fraction: Fraction bits f: a real number x is held as round(x * 2^f). ``None`` lets privet choose.
        layers: Other values for single layers, by module name: ``{"conv1": Precision(bits=32, fraction=12)}``.

    Raises :class:`PrecisionError` for values that cannot work; whether they hold the calibrated ranges is checked
    when a model is compiled.
    """

    bits: int | None = None
    fraction: int | None = None
    layers: Mapping[str, Precision] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the numbers against each other."""
        if self.bits is not None and not 8 <= self.bits <= 64:
            raise PrecisionError(f"{self.bits} ring bits; choose 8 to 64")
        if self.fraction is not None and not 0 <= self.fraction <= 62:
            raise PrecisionError(f"{self.fraction} fraction bits; choose 0 to 62")
        if self.bits is not None and self.fraction is not None and self.fraction >= self.bits - 1:
            raise PrecisionError(
                f"{self.fraction} fraction bits leave no room for a sign and whole numbers in {self.bits} ring bits; "
                "lower `fraction` or raise `bits`"
            )
        for name, layer in self.layers.items():
            if layer.layers:
                raise PrecisionError(f"the precision of layer '{name}' names layers itself; give one level only")

    def to_json(self) -> str:
        """``{"bits": 64, "fraction": 24, "layers": {"conv1": {"bits": 32}}}``; what is not set is left out."""
        return json.dumps(self._body(), sort_keys=True)

    def _body(self) -> dict[str, object]:
        body: dict[str, object] = {}
        if self.bits is not None:
            body["bits"] = self.bits
        if self.fraction is not None:
            body["fraction"] = self.fraction
        if self.layers:
            body["layers"] = {name: layer._body() for name, layer in self.layers.items()}
        return body
