"""Who runs the plans of a generation: parties, or the integer interpreter in this process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..native import native
from ..report import RunReport
from ..training.engines import plain
from ..training.parties import Guard


class Engine(Protocol):
    """Runs plans over states that it keeps."""

    def begin(self, states: Mapping[str, Tensor], runs: Mapping[str, int]) -> None:
        """Set the states; so many runs of each plan follow."""
        ...

    def run(self, plan: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A plan's results; its updates replace the states."""
        ...


class Simulated:
    """The interpreter: the integers of a private run, without protocols, parties or privacy."""

    def __init__(self, program: str, weights: bytes) -> None:
        self._program, self._weights = program, weights
        self._inner: Any = None

    def begin(self, states: Mapping[str, Tensor], runs: Mapping[str, int]) -> None:
        """Nothing is prepared."""
        self._inner = native().Simulation(self._program, save_tensors(plain(states)), None, self._weights)

    def run(self, plan: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A plan's results."""
        found: dict[str, Tensor] = load_tensors(self._inner.run(plan, save_tensors(plain(inputs)), {}))
        return found


class Parties:
    """A client of running parties, which keep the states as shares."""

    def __init__(self, client: Any, streams: bool, guard: Guard = lambda action: action()) -> None:
        self._client, self._streams, self._guard = client, streams, guard
        self._left: dict[str, float] = {}

    def begin(self, states: Mapping[str, Tensor], runs: Mapping[str, int]) -> None:
        """Have what the runs use up prepared, begin sessions, and share the states."""
        for plan, count in runs.items():
            missing = count - self._left.get(plan, 0)
            if missing > 0:
                stream = self._streams and missing > 1
                self._guard(lambda p=plan, n=int(missing), s=stream: self._client.prepare(n, 0, p, s))  # type: ignore[misc]
                self._left[plan] = count
        content = save_tensors(plain(states))
        self._guard(lambda: self._client.begin_training(content, 0))

    def run(self, plan: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A plan's results. A record of keys is used up by the attempt."""
        content = save_tensors(plain(inputs))
        self._left[plan] -= 1
        found: dict[str, Tensor] = load_tensors(self._guard(lambda: self._client.step(plan, content, {})))
        return found

    def report(self, plan: str) -> RunReport | None:
        """What all runs of a plan so far did cost."""
        text = self._guard(lambda: self._client.report(plan))
        return None if text is None else RunReport(json.loads(text))
