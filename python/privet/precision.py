"""How many bits values have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from .errors import PrecisionError

ROUNDINGS = ("nearest", "floor", "stochastic", "one_ulp")


@dataclass(frozen=True)
class Precision:
    """Ring bits and fraction bits, for the whole plan and for single layers; what is not given is chosen.

    Args:
        bits: Ring bits k of linear layers, 8 to 64: values live in Z_2^k.
        fraction: Fraction bits f of activations: a real number x is held as round(x * 2^f).
        weight_fraction: Fraction bits of weights; f where not given.
        rounding: How truncations round: ``nearest``, ``floor``, ``stochastic`` (up with the probability of the
            fraction, so without bias), or ``one_ulp`` (``nearest`` give or take one unit in the last place: costs
            no comparison with ``fss``, and nothing with ``rep3``).
        layers: Other bits and fraction for single layers by module name, which covers the layers below it:
            ``{"conv1": Precision(bits=32, fraction=12)}``.
        headroom: Bits kept free above the calibrated ranges where bits are chosen automatically.

    Raises :class:`PrecisionError` for numbers that cannot work; whether they hold the calibrated ranges is checked
    when a model is compiled.
    """

    bits: int | None = None
    fraction: int | None = None
    weight_fraction: int | None = None
    rounding: str = "nearest"
    layers: Mapping[str, Precision] = field(default_factory=dict)
    headroom: int = 2

    def __post_init__(self) -> None:
        """Check the numbers against each other."""
        if self.bits is not None and not 8 <= self.bits <= 64:
            raise PrecisionError(f"{self.bits} ring bits; choose 8 to 64")
        for fraction in (self.fraction, self.weight_fraction):
            if fraction is not None and not 0 <= fraction <= 62:
                raise PrecisionError(f"{fraction} fraction bits; choose 0 to 62")
        if self.bits is not None and self.fraction is not None and self.fraction >= self.bits - 1:
            raise PrecisionError(
                f"{self.fraction} fraction bits leave no room for a sign and whole numbers in {self.bits} ring bits; "
                "lower `fraction` or raise `bits`"
            )
        if self.rounding not in ROUNDINGS:
            raise PrecisionError(f"no rounding '{self.rounding}'; choose one of {', '.join(ROUNDINGS)}")
        if not 0 <= self.headroom <= 32:
            raise PrecisionError(f"{self.headroom} bits of headroom; choose 0 to 32")
        for name, layer in self.layers.items():
            if layer != Precision(bits=layer.bits, fraction=layer.fraction):
                raise PrecisionError(f"layer '{name}' can have `bits` and `fraction` of its own, nothing else")

    def to_json(self, guard: bool | None = False) -> str:
        """As the planner reads it; what is not set is left out. ``guard``: ``None`` where that is cheap."""
        body: dict[str, object] = {"rounding": self.rounding, "headroom_bits": self.headroom, **given(self)}
        if guard is not False:
            body["guard"] = "on" if guard else "auto"
        if self.weight_fraction is not None:
            body["weight_fraction"] = self.weight_fraction
        if self.layers:
            body["per_layer"] = {name: given(layer) for name, layer in self.layers.items()}
        return json.dumps(body, sort_keys=True)


def given(precision: Precision) -> dict[str, object]:
    """Bits and fraction, where set."""
    pairs = (("bits", precision.bits), ("fraction", precision.fraction))
    return {key: value for key, value in pairs if value is not None}
