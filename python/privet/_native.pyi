"""The compiled part of privet (``crates/py``): text and bytes in, text and bytes out, no numpy.

Tensors travel as safetensors of F64. Long calls release the interpreter lock and honour Ctrl-C. Errors are
those of :mod:`privet.errors`, raised from Rust with a message that names cause and remedy.
"""

from collections.abc import Sequence
from typing import Any

__version__: str

def lower(
    graph_json: str,
    params_safetensors: bytes,
    precision_json: str,
    protocol: str,
    security: str,
    aim: tuple[str, int | None],
    parties: int | None = None,
    set: Sequence[tuple[str, str]] = (),
) -> tuple[str, bytes, list[str]]:
    """Plan, folded weights and remarks.

    ``precision_json`` is that of :class:`privet.Precision`; what it leaves open, and the forms of comparisons, follow
    the protocol's prices for ``aim``: a network and most key bytes. Raises ``UnsupportedModel``, ``PrecisionError``,
    and ``ValueError`` where there are more key bytes however comparisons are made.
    """

def check(graph_json: str) -> list[dict[str, str]]:
    """What keeps the graph from being lowered: ``op``, ``layer``, ``source``, ``what``, ``remedy`` each."""

def network(text: str) -> str:
    """A network as it is written; ``ValueError`` for what is none."""

def estimate(
    plan_json: str,
    network: str,
    protocol: str,
    security: str,
    local: bool,
    parties: int | None = None,
    set: Sequence[tuple[str, str]] = (),
) -> str:
    """Predicted cost as JSON, with alternatives; ``network`` as ``lan`` or ``rtt=60ms,bandwidth=293Mbit/s``."""

def interpret(plan_json: str, params: bytes, inputs: bytes, all_values: bool, beyond: bool = False) -> bytes:
    """The plan over integers in the clear: outputs under their names, with ``all_values`` node 7 under ``#7``.

    Where values are out of range it goes on ``beyond`` them, as protocols do, or raises ``ValueError``.
    """

def protocols() -> list[dict[str, Any]]:
    """The families: ``name``, ``about``, ``collusion``, ``parties`` (fewest, most), ``uses_up``, ``withstands``.

    ``streams`` is whether what runs use up can come as a stream. ``dealer`` is whether there is one where nobody
    chooses, ``dealer_where`` what a deployment says to have one. ``trains`` is whether states outlive its runs.
    """

def fingerprint(plan_json: str) -> str:
    """The plan's hash, hexadecimal; parties compare it."""

class Simulation:
    """A program's plans (training) over integers in the clear, over states that stay here between runs."""

    def __init__(self, program_json: str, states: bytes, seed: int | None = None) -> None:
        """``states`` are first values; ``seed`` makes the coins of rounding and dropout reproducible."""

    def run(self, plan: str, inputs: bytes, publics: dict[str, float]) -> bytes:
        """Outputs by name. States that the plan updates are replaced; on an error they are as they were."""

    def states(self) -> bytes:
        """All states, exactly."""

class Client:
    """A connection to running parties."""

    @staticmethod
    def connect(config_toml_path: str, plan_json: str, params: bytes | None, protocol: str, security: str) -> Client:
        """Dial the parties named in the node file; ``params`` are the folded weights, if this client owns them.

        Refuses a deployment of another protocol or security.
        """

    def prepare(self, runs: int, checks: int = 0, plan: str = "run", stream: bool = False) -> None:
        """Have keys dealt for so many runs, checking the dealer with so many sessions more; nothing where none is.

        As a stream it returns when the first run's part is there; the rest comes while runs use it up.
        """

    def begin_training(self, states: bytes, checkpoint_every: int = 0) -> str:
        """Share the first values of the states that this client owns; gives the training's name."""

    def resume(self, training: str) -> int:
        """Go on with a training at the last step that all parties have; gives that step."""

    def join_training(self) -> tuple[str, int]:
        """Go where all parties are: the training's name and its step."""

    def step(self, plan: str, inputs: bytes, publics: dict[str, float]) -> bytes:
        """One run of a plan at this client's step: outputs by name."""

    def report(self, plan: str) -> str | None:
        """One report of all runs of a plan so far, as JSON."""

    def status(self) -> str:
        """How things stand at every party, as JSON: ``plans``, ``training``, ``peers``."""

    def run(self, inputs: bytes) -> tuple[bytes, str]:
        """Outputs (by name) and the run report as JSON."""

    def close(self) -> None:
        """Hang up."""
