"""Sessions with running parties: :func:`local` starts them on this machine, :func:`connect` finds them elsewhere."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from ._processes import Processes
from .errors import SessionError
from .guard import require
from .interface import Interface
from .model import PrivateModel, load, write_secret
from .native import native
from .protocols import PROTOCOLS
from .report import RunReport, merge

T = TypeVar("T")

ONLY_PLAN = "run"
"""What the plan of a file is called that holds one and no more."""

Guard = Callable[[Callable[[], Any]], Any]
"""Does an action, and may raise earlier: a local process that ended says more than the connection it broke."""


class Session:
    """A connection to running parties. Use it in a ``with`` statement.

    ``report`` holds the cost of the last :meth:`run` and what each process learned in it.
    """

    def __init__(
        self, client: Any, private: PrivateModel, guard: Guard = lambda action: action(), plan: str = ONLY_PLAN
    ) -> None:
        self._client = client
        self._plan = plan
        self._interface: Interface = private.interface
        self._limits = private.limits()
        self._guard_of = private.guard
        self._guard = guard
        self._uses_keys = PROTOCOLS[private.interface.protocol].uses_up is not None
        self._prepared: float = 0
        self.report: RunReport | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def prepare(self, rows: int, checks: int = 0) -> None:
        """Have keys dealt for this many rows now, so that the following runs need no offline phase.

        Where runs use up nothing (``rep3``) this only begins the session.

        With ``checks`` (at most 255) the dealer deals so many more times as much, and the parties open and compare all
        but one share of it, chosen by a coin: a dealer that cheats in one is caught with probability
        ``checks / (checks + 1)``, and :class:`SessionError` says so. Prepare checked keys before the first run:
        those added later without checks, by :meth:`run` too, are not checked (``docs/dealer-checks.md``).
        """
        runs = -(-rows // self._interface.batch)
        self._call(lambda: self._client.prepare(runs, checks, self._plan))
        self._prepared += runs if self._uses_keys else math.inf

    def run(self, *inputs: Any, progress: Callable[[int, int], None] | None = None) -> Any:
        """The model's result on private inputs, in the structure that the model returns.

        Rows beyond the plan's batch are run in several groups; ``progress`` is then called with the rows done and
        their number. Keys that :meth:`prepare` did not have dealt are dealt run by run. Inputs are checked before
        anything leaves this process (:class:`InputError`). Raises :class:`SessionError` when a party fails; nothing
        of that run was revealed then. Raises :class:`OutOfRange` when the plan has a guard and a row does not pass it.
        """
        checked = self._interface.check_inputs(inputs, self._limits)
        rows = next(iter(checked.values())).shape[0]
        groups = self._interface.groups(checked)
        parts, reports = [], []
        for i, group in enumerate(groups):
            if self._prepared == 0:  # one run at a time: the keys of many can take more disk than there is
                self.prepare(self._interface.batch)
            content = save_tensors(group)
            # A record of keys is used up by the attempt, whether or not the run succeeds.
            self._prepared -= 1
            outputs, report = self._call(lambda content=content: self._client.run(content, self._plan))  # type: ignore[misc]
            parts.append(load_tensors(outputs))
            reports.append(RunReport(json.loads(report)))
            if progress is not None:
                progress(min((i + 1) * self._interface.batch, rows), rows)
        self.report = merge(reports)
        require(self._guard_of, parts, rows)
        return self._interface.assemble(parts, rows)

    def close(self) -> None:
        """Hang up. Doing so twice is harmless."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _call(self, action: Callable[[], T]) -> T:
        if self._client is None:
            raise SessionError("this session is closed; open another one")
        result: T = self._guard(action)
        return result


@contextmanager
def local(
    private: PrivateModel,
    *,
    weights: str | Path | None = None,
    directory: str | Path | None = None,
    parties: int | None = None,
    parameters: Mapping[str, str | int] | None = None,
) -> Iterator[Session]:
    """The parties, and a dealer where the protocol has one, as processes on this machine, over mutual TLS.

    Party 1 (``heot``: party 0, the server) is the model's owner and reads the weights from a file; this process is the
    data's owner and receives the result. The processes end with the ``with`` block.

    Args:
        private: The compiled model. Its weights are not needed where ``weights`` names their file.
        weights: The folded weights that :meth:`PrivateModel.save` wrote (``model/weights.safetensors``).
        directory: A new folder for keys, certificates and logs; by default a temporary one that is removed.
        parties: How many compute, where the protocol leaves that open; by default as many as it was compiled for.
        parameters: What ``deployment.toml`` would set of the protocol; by default what it was compiled for.
    """
    with tempfile.TemporaryDirectory(prefix="privet-") as scratch:
        plan = Path(scratch, "plan.json")
        plan.write_text(private.plan)
        file = Path(weights).resolve() if weights is not None else Path(scratch, "weights.safetensors")
        if weights is None:
            write_secret(file, private.weights)
        folder = Path(directory) if directory is not None else Path(scratch, "session")
        interface = private.interface
        count = parties if parties is not None else interface.parties
        given = parameters if parameters is not None else interface.parameters
        with Processes(folder, interface.protocol, interface.security, count, given) as processes:
            processes.initialise(plan, file)
            processes.start()
            client = processes.while_alive(lambda: dial(processes.client_file, private, None))
            with Session(client, private, processes.while_alive) as session:
                yield session


@contextmanager
def connect(
    deployment: str | Path, private: PrivateModel | None = None, *, node: str | Path | None = None
) -> Iterator[Session]:
    """Use running parties on other hosts, as ``deployment.toml`` names them.

    Args:
        deployment: The file that all participants share.
        private: The compiled model; by default the one saved in the deployment's folder (``interface.json`` beside
            ``plan.json``). Its weights are shared only where the deployment names this client as the model's owner.
        node: This client's own settings (certificate and key); by default ``node.toml`` beside the deployment.
    """
    path = Path(deployment)
    model = private if private is not None else load(path.parent)
    own = Path(node) if node is not None else path.parent / "node.toml"
    if not own.is_file():
        raise SessionError(f"{own} is not there: make it with `privet init`, or give node=")
    weights = model.weights if model.has_weights() else None
    with Session(dial(own, model, weights), model) as session:
        yield session


def dial(node: Path, private: PrivateModel, weights: bytes | None) -> Any:
    """Connect as the client that a node file describes, sharing the weights if there are any."""
    interface = private.interface
    return native().Client.connect(str(node), private.plan, weights, interface.protocol, interface.security)
