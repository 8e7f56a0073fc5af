"""Training by running parties: steps, keys, checkpoints, and local parties as processes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from .._processes import Processes
from ..errors import SessionError
from ..native import native
from ..protocols import Protocol
from ..report import RunReport
from .engines import plain

MOST_RUNS = 1 << 20
"""Runs that are prepared at one request."""
AT_ONCE = 8
"""The same where they are all there before the first one begins."""

Guard = Callable[[Callable[[], Any]], Any]
"""Does an action, and may raise earlier: a local process that ended says more than the connection it broke."""


def dial(node: Path, program: str, protocol: str, security: str) -> Any:
    """Connect as the client that a node file describes."""
    return native().Client.connect(str(node), program, None, protocol, security)


class Parties:
    """A client of running parties, which keep the states.

    ``record`` is a file that names the training, so that another process can go on with it. ``prepares`` says whether
    runs use up something that has to be prepared.
    """

    def __init__(
        self,
        client: Any,
        record: Path,
        prepares: bool,
        guard: Guard = lambda action: action(),
        owns_model: bool = True,
        streams: bool = True,
    ) -> None:
        self._client, self._record, self._guard = client, record, guard
        self._prepares, self._owns_model = prepares and owns_model, owns_model
        self._streams = streams
        self._asked: dict[str, int] = {}
        """By plan, runs whose keys were asked for and that have not been used up."""
        self._expected: dict[str, int] = {}
        self.step = 0

    def begin(self, states: Mapping[str, Tensor], checkpoint_every: int) -> None:
        """Share the first values of all states; without the model, join the training that its owner began."""
        if not self._owns_model:
            self.step = int(self._guard(self._client.join_training)[1])
            return
        content = save_tensors(plain(states))
        name = self._guard(lambda: self._client.begin_training(content, checkpoint_every))
        self._record.write_text(json.dumps({"training": name}))
        self.step = 0

    def resume(self) -> None:
        """Go on with the recorded training, at the last step that all parties have; or join its owner, who does."""
        if not self._owns_model:
            self.step = int(self._guard(self._client.join_training)[1])
            return
        try:
            name = json.loads(self._record.read_text())["training"]
        except (OSError, ValueError, KeyError) as error:
            raise SessionError(f"{self._record} names no training to go on with: fit without resume") from error
        self.step = int(self._guard(lambda: self._client.resume(name)))

    def expect(self, plan: str, runs: int) -> None:
        """So many runs of a plan follow: the first of them asks for all their keys, which come as a stream."""
        self._expected[plan] = runs

    def run(self, plan: str, inputs: Mapping[str, Tensor], publics: Mapping[str, float]) -> dict[str, Tensor]:
        """A plan's outputs on a batch; while it runs, keys of the next runs come."""
        content = save_tensors(plain(inputs))
        # What is left of a stream is known only while all goes well: after an error the next run asks anew, and uses
        # what the parties have before what comes.
        asked = self._asked.pop(plan, 0)
        if self._prepares and asked == 0:
            asked = self._ask_for_keys(plan)
        outputs = self._guard(lambda: self._client.step(plan, content, dict(publics)))
        self._asked[plan] = asked - 1
        self._expected[plan] = self._expected.get(plan, 0) - 1
        self.step += plan == "train"
        found: dict[str, Tensor] = load_tensors(outputs)
        return found

    def _ask_for_keys(self, plan: str) -> int:
        """Have keys dealt for the runs that follow; gives their number."""
        runs = max(1, min(self._expected.get(plan, 0), MOST_RUNS if self._streams else AT_ONCE))
        self._guard(lambda: self._client.prepare(runs, 0, plan, self._streams and runs > 1))
        return runs

    def keys_left(self) -> int | None:
        """Steps for which both parties have keys now, whoever had them dealt; none where runs use up nothing."""
        if not self._prepares:
            return None
        plans = [party["plans"]["train"] for party in json.loads(self._guard(self._client.status))]
        return min(int(p["runs_left"] or 0) - int(p["stream"]["to_come"] if p["stream"] else 0) for p in plans)

    def report(self) -> RunReport | None:
        """What all steps so far did cost."""
        text = self._guard(lambda: self._client.report("train"))
        return None if text is None else RunReport(json.loads(text))

    def close(self) -> None:
        """Hang up."""
        self._client.close()


class LocalParties:
    """Parties as processes on this machine, over mutual TLS; this process owns model and data and is the receiver.

    A folder that holds a deployment already is used as it is, so that a training can go on there.
    """

    def __init__(
        self,
        directory: Path | None,
        family: Protocol,
        security: str,
        program: str,
        count: int | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> None:
        self.directory, self.family, self.security, self.program = directory, family, security, program
        self.count, self.parameters = count, parameters
        self._stack = ExitStack()

    def __enter__(self) -> Parties:
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="privet-")))
            folder = self.directory if self.directory is not None else scratch / "session"
            family = (self.family.name, self.security, self.count, self.parameters)
            processes = stack.enter_context(Processes(folder, *family))
            if not processes.client_file.is_file():
                plan = scratch / "program.json"
                plan.write_text(self.program)
                processes.initialise(plan, None)
            processes.start()
            client = processes.while_alive(
                lambda: dial(processes.client_file, self.program, self.family.name, self.security)
            )
            parties = Parties(
                client,
                folder / "training.json",
                self.family.uses_up is not None,
                processes.while_alive,
                streams=self.family.streams,
            )
            stack.callback(parties.close)
            self._stack = stack.pop_all()
        return parties

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
