"""Who runs a program's plans: parties, or the integer interpreter in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..native import native


class Engine(Protocol):
    """Runs the plans of a program over states that it keeps."""

    @property
    def step(self) -> int:
        """Steps done so far."""
        ...

    def expect(self, plan: str, runs: int) -> None:
        """So many runs of a plan follow."""
        ...

    def run(self, plan: str, inputs: Mapping[str, Tensor], publics: Mapping[str, float]) -> dict[str, Tensor]:
        """A plan's outputs on a batch."""
        ...

    def keys_left(self) -> int | None:
        """Steps for which keys are there; none where nothing is prepared."""
        ...


class Simulated:
    """The interpreter: the integers of a private run, without protocols, parties or privacy."""

    def __init__(self, program: str, states: Mapping[str, Tensor], seed: int | None = None) -> None:
        self._inner: Any = native().Simulation(program, save_tensors(plain(states)), seed)
        self.step = 0

    def expect(self, plan: str, runs: int) -> None:
        """Nothing is prepared."""

    def run(self, plan: str, inputs: Mapping[str, Tensor], publics: Mapping[str, float]) -> dict[str, Tensor]:
        """A plan's outputs on a batch."""
        outputs: dict[str, Tensor] = load_tensors(self._inner.run(plan, save_tensors(plain(inputs)), dict(publics)))
        self.step += plan == "train"
        return outputs

    def states(self) -> dict[str, Tensor]:
        """All states, exactly."""
        found: dict[str, Tensor] = load_tensors(self._inner.states())
        return found

    def keys_left(self) -> int | None:
        """Nothing is prepared."""
        return None


def plain(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of their own storage, as files of tensors take them."""
    return {name: t.detach().contiguous().clone() for name, t in tensors.items()}
