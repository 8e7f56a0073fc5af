"""Plans of several lengths and batches from one compile; which of them runs is chosen by the public shape of a request.

A plan has fixed shapes. A ladder is a program of several plans, its *rungs*: the parties serve all of them, and learn
which one a run takes, so the length up to the next rung.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from ._inputs import Call, Examples
from ._processes import Processes
from ._structure import flatten, unflatten
from .aim import Network
from .errors import CaptureError, InputError, PrivetError
from .interface import Interface
from .model import PrivateModel, compile, write_secret
from .native import native
from .precision import Precision
from .report import Estimate, RunReport, merge
from .session import Guard, Session

LADDER_VERSION = 1


@dataclass(frozen=True, order=True)
class Size:
    """The shape of a rung: its length, where lengths differ, and its rows."""

    length: int
    rows: int

    @property
    def name(self) -> str:
        """What its plan is called."""
        return f"length{self.length}.rows{self.rows}"


class Ladder:
    """A model as several plans, for lengths and batches that are known to everybody.

    Args:
        model: As for :func:`privet.compile`.
        example_inputs: As for :func:`privet.compile`, as long as the longest length in dimension 1 of each input that
            has a length. The shorter plans get the beginning of it.
        lengths: Extents of dimension 1, such as numbers of tokens; by default that of the example alone.
        batches: Rows of a run; by default those of the example.
        pad: What fills inputs up to the next length, by name: ``{"input_ids": 0, "attention_mask": 0}``. The model
            has to leave such places out, by its mask. Without it inputs have one of the lengths.
        calibration: Typical rows at the longest length.
        settings: Those of :func:`privet.compile`: ``protocol``, ``security``, ``precision``, ``guard``, ...

    Raises what :func:`privet.compile` raises, and :class:`CaptureError` for examples that are not that long.
    """

    def __init__(
        self,
        model: nn.Module,
        example_inputs: Examples,
        *,
        lengths: Sequence[int] | None = None,
        batches: Sequence[int] | None = None,
        pad: Mapping[str, float] | None = None,
        calibration: Examples | None = None,
        **settings: Any,
    ) -> None:
        call = Call.of(example_inputs, model)
        extents = [t.shape[1] for t in call.tensors() if t.dim() > 1]
        longest = max(lengths) if lengths else max(extents, default=0)
        sizes = [Size(n, b) for n in sorted(set(lengths or [longest])) for b in sorted(set(batches or [call.batch()]))]
        if any(size.length < 1 or size.rows < 1 for size in sizes) and (lengths or extents):
            raise ValueError(f"lengths {lengths} and batches {batches}; each is at least 1")
        if lengths and longest not in extents:
            raise CaptureError(
                f"no input has extent {longest} in dimension 1, which is the longest length; these have {extents}"
            )
        seen = example_inputs if calibration is None else calibration
        self.rungs: dict[Size, PrivateModel] = {
            size: compile(
                model,
                cut(example_inputs, longest, size.length, size.rows),
                calibration=cut(seen, longest, size.length, None),
                **settings,
            )
            for size in sizes
        }
        names = [port.name for port in self._longest.interface.inputs]
        sized = [n for n, t in zip(names, call.tensors(), strict=True) if t.dim() > 1 and t.shape[1] == longest]
        self.sized: list[str] = sized if lengths else []
        """The inputs that have a length."""
        self.pad = dict(pad or {})
        unknown = set(self.pad) - set(self.sized)
        if unknown:
            raise ValueError(f"no input '{min(unknown)}' has a length; these have: {', '.join(self.sized) or 'none'}")

    @classmethod
    def _of(cls, rungs: dict[Size, PrivateModel], sized: list[str], pad: dict[str, float]) -> Ladder:
        made = cls.__new__(cls)
        made.rungs, made.sized, made.pad = rungs, sized, pad
        return made

    def __repr__(self) -> str:
        """Sizes; never weights."""
        return f"Ladder({self._longest.interface.name!r}, lengths={self.lengths}, batches={self.batches})"

    @property
    def lengths(self) -> list[int]:
        """In increasing order."""
        return sorted({size.length for size in self.rungs})

    @property
    def batches(self) -> list[int]:
        """In increasing order."""
        return sorted({size.rows for size in self.rungs})

    @property
    def _longest(self) -> PrivateModel:
        return self.rungs[max(self.rungs)]

    def check(self) -> list[dict[str, str]]:
        """As :meth:`PrivateModel.check`: what cannot run is the same at every length."""
        return self._longest.check()

    def estimate(self, length: int | None = None, rows: int | None = None, network: Network = "lan") -> Estimate:
        """Predicted cost of one run of the plan that such a request takes; by default the largest."""
        size = Size(self.rung(length or self.lengths[-1]), self.batch(rows or self.batches[-1]))
        return self.rungs[size].estimate(network=network)

    # --- What a request takes ------------------------------------------------------------------------

    def rung(self, length: int) -> int:
        """The least length that holds so many; :class:`InputError` where none does."""
        found = [n for n in self.lengths if n >= length]
        if not found:
            raise InputError(f"a length of {length}; the plans take up to {self.lengths[-1]}: make longer ones")
        return found[0]

    def batch(self, rows: int) -> int:
        """The batch that so many rows take next: the largest one that is full, or else the least that holds them."""
        largest = self.batches[-1]
        return largest if rows >= largest else min(b for b in self.batches if b >= rows)

    def fitted(self, given: Sequence[Any]) -> tuple[list[Tensor], int]:
        """A request's inputs in order, filled up to the next length, and their own length.

        Raises :class:`InputError`.
        """
        names = [port.name for port in self._longest.interface.inputs]
        if len(given) == 1 and isinstance(given[0], Mapping):
            given = [given[0][n] for n in names if n in given[0]]
        if len(given) != len(names):
            raise InputError(f"{len(given)} inputs given, the model takes {len(names)}: {', '.join(names)}")
        tensors = {n: torch.as_tensor(t) for n, t in zip(names, given, strict=True)}
        extents = {n: int(tensors[n].shape[1]) for n in self.sized if tensors[n].dim() > 1}
        if len(extents) < len(self.sized) or len(set(extents.values())) > 1:
            raise InputError(f"inputs {', '.join(self.sized)} have one length, in dimension 1; given: {extents}")
        if not extents:
            return list(tensors.values()), self.lengths[-1]
        length = next(iter(extents.values()))
        rung = self.rung(length)
        if length == rung:
            return list(tensors.values()), length
        missing = [n for n in self.sized if n not in self.pad]
        if missing:
            raise InputError(
                f"a length of {length}; the plans take {', '.join(map(str, self.lengths))}: give one of these, or say"
                f" by `pad` what fills '{missing[0]}' up, where the model leaves such places out"
            )
        for name in self.sized:
            tensor = tensors[name]
            more = tensor.new_full((tensor.shape[0], rung - length, *tensor.shape[2:]), self.pad[name])
            tensors[name] = torch.cat([tensor, more], 1)
        return list(tensors.values()), length

    def split(self, rows: int) -> list[int]:
        """The batches that so many rows are run in."""
        found = []
        while rows > 0:
            found.append(self.batch(rows))
            rows -= found[-1]
        return found

    def joined(self, parts: Sequence[Any], length: int) -> Any:
        """The results of all batches as one, without what was filled up."""
        structure = flatten(parts[0])[0]
        columns = zip(*(flatten(part)[1] for part in parts), strict=True)
        ports, values = self._longest.interface.outputs, []
        if len(parts) > 1 and not self._longest.interface.batched():
            raise InputError(f"give at most {self.batches[-1]} rows: a result of this model mixes or drops rows")
        for i, (port, column) in enumerate(zip(ports, columns, strict=True)):
            value = torch.cat(column) if len(column) > 1 else column[0]
            for dim in range(1, len(port.shape)):
                if self.grows(i, dim):
                    value = value.narrow(dim, 0, length)
            values.append(value)
        return unflatten(structure, values)

    def grows(self, output: int, dim: int) -> bool:
        """Whether a dimension of a result is the length: its extent is that of every rung."""
        shapes = {size.length: rung.interface.outputs[output].shape for size, rung in self.rungs.items()}
        return len(shapes) > 1 and all(shape[dim] == length for length, shape in shapes.items())

    # --- Runs ----------------------------------------------------------------------------------------

    def simulate(self, *inputs: Any) -> Any:
        """A private run's result, by the integer interpreter in the clear."""
        return self._run(inputs, lambda size, part: self.rungs[size].simulate(*part))

    def _run(self, inputs: Sequence[Any], run: Any) -> Any:
        tensors, length = self.fitted(inputs)
        rung, first, parts = self.rung(length), 0, []
        for rows in self.split(int(tensors[0].shape[0])):
            parts.append(run(Size(rung, rows), [t[first : first + rows] for t in tensors]))
            first += rows
        if not parts:
            raise InputError("give at least one row")
        return self.joined(parts, length)

    @contextmanager
    def local(self, directory: str | Path | None = None) -> Iterator[LadderSession]:
        """The parties as processes on this machine, over mutual TLS; see :func:`privet.local`."""
        program, weights = self._program()
        interface = self._longest.interface
        with tempfile.TemporaryDirectory(prefix="privet-") as scratch:
            plan, file = Path(scratch, "program.json"), Path(scratch, "weights.safetensors")
            plan.write_text(program)
            write_secret(file, weights)
            folder = Path(directory) if directory is not None else Path(scratch, "session")
            family = (interface.protocol, interface.security, interface.parties, interface.parameters)
            with Processes(folder, *family) as processes:
                processes.initialise(plan, file)
                processes.start()
                with self.connect(processes.client_file, processes.while_alive, with_weights=False) as session:
                    yield session

    @contextmanager
    def connect(
        self, node: str | Path, guard: Guard = lambda action: action(), *, with_weights: bool = True
    ) -> Iterator[LadderSession]:
        """Running parties that serve :attr:`program`, as the client that a node file describes.

        Weights are shared where this is the owner's copy and the deployment names this client as the model's owner.
        """
        interface = self._longest.interface
        weights = self.weights if with_weights and self._longest.has_weights() else None
        family = (interface.protocol, interface.security)
        client = guard(lambda: native().Client.connect(str(node), self.program, weights, *family))
        try:
            yield LadderSession(self, client, guard)
        finally:
            client.close()

    # --- Files ---------------------------------------------------------------------------------------

    @property
    def program(self) -> str:
        """All plans as JSON; public."""
        return self._program()[0]

    @property
    def weights(self) -> bytes:
        """The folded weights of all plans (safetensors): the model owner's secret."""
        return self._program()[1]

    def _program(self) -> tuple[str, bytes]:
        """Plans and weights. A weight that is the same in all plans is there once."""
        owned = self._longest.has_weights()
        tensors = {size: load_tensors(rung.weights) if owned else {} for size, rung in self.rungs.items()}
        once, kept = shared(list(tensors.values())), {}
        plans = []
        for size, rung in self.rungs.items():
            plan = json.loads(rung.plan)
            for node in plan["nodes"] if owned else ():
                if node["op"]["kind"] == "weight":
                    name = node["op"]["name"]
                    node["op"]["name"] = name if name in once else f"{size.name}.{name}"
                    kept[node["op"]["name"]] = tensors[size][name]
            plans.append({"name": size.name, "plan": plan})
        name = self._longest.interface.name
        program = json.dumps({"version": 1, "name": name, "plans": plans}, separators=(",", ":"))
        return program, save_tensors(kept)

    def save(self, directory: str | Path) -> None:
        """Write ``program.json`` and ``ladder.json``, both public, and ``weights.safetensors``, the owner's secret."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        program, weights = self._program()
        (folder / "program.json").write_text(program)
        rungs = [
            {"length": size.length, "rows": size.rows, "interface": rung.interface.to_json()}
            for size, rung in self.rungs.items()
        ]
        body = {"version": LADDER_VERSION, "rungs": rungs, "sized": self.sized, "pad": self.pad}
        (folder / "ladder.json").write_text(json.dumps(body, indent=1))
        if self._longest.has_weights():
            write_secret(folder / "weights.safetensors", weights)

    @classmethod
    def load(cls, directory: str | Path) -> Ladder:
        """What :meth:`save` wrote, without the weights: enough for the data's owner."""
        folder = Path(directory)
        try:
            body = json.loads((folder / "ladder.json").read_text())
            program = json.loads((folder / "program.json").read_text())
        except OSError as error:
            raise PrivetError(f"{folder} holds no saved ladder: {error}") from error
        if body["version"] != LADDER_VERSION:
            raise ValueError(f"ladder version {body['version']}, this privet reads {LADDER_VERSION}; save it again")
        plans = {p["name"]: json.dumps(p["plan"], separators=(",", ":")) for p in program["plans"]}
        rungs = {}
        for rung in body["rungs"]:
            size = Size(rung["length"], rung["rows"])
            interface = Interface.from_json(rung["interface"])
            rungs[size] = PrivateModel(interface, plans[size.name], None, Precision())
        return cls._of(rungs, body["sized"], body["pad"])


class LadderSession:
    """A connection to running parties that serve a ladder.

    ``reports`` holds what the last :meth:`run` did cost and tell, by the name of each plan that it took.
    """

    def __init__(self, ladder: Ladder, client: Any, guard: Guard) -> None:
        self._ladder = ladder
        self._sessions = {s: Session(client, rung, guard, s.name) for s, rung in ladder.rungs.items()}
        self.reports: dict[str, RunReport] = {}

    def prepare(self, rows: int, length: int | None = None) -> None:
        """Have keys dealt for so many rows of a length (by default the longest), so that runs need no offline phase."""
        rung = self._ladder.rung(length or self._ladder.lengths[-1])
        for batch in self._ladder.split(rows):
            self._sessions[Size(rung, batch)].prepare(batch)

    def run(self, *inputs: Any) -> Any:
        """The model's result on private inputs of any of the lengths, without what was filled up.

        The parties learn the length of the plan and the number of runs. Raises what :meth:`Session.run` raises.
        """
        reports: dict[str, list[RunReport]] = {}

        def run(size: Size, part: list[Tensor]) -> Any:
            session = self._sessions[size]
            result = session.run(*part)
            if session.report is not None:
                reports.setdefault(size.name, []).append(session.report)
            return result

        result = self._ladder._run(inputs, run)
        self.reports = {name: merge(found) for name, found in reports.items()}
        return result


def cut(inputs: Examples, longest: int, length: int, rows: int | None) -> Examples:
    """Examples of a length and, where given, of so many rows."""

    def shorter(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if value.dim() > 1 and value.shape[1] == longest:
            value = value[:, :length]
        if rows is not None and value.dim() > 0:
            value = value[torch.arange(rows) % value.shape[0]]
        return value

    if isinstance(inputs, Tensor):
        short: Tensor = shorter(inputs)
        return short
    if isinstance(inputs, Mapping):
        return {name: shorter(value) for name, value in inputs.items()}
    return [shorter(value) for value in inputs]


def shared(weights: Sequence[Mapping[str, Tensor]]) -> set[str]:
    """The names that stand for the same tensor wherever they are."""
    names = {name for tensors in weights for name in tensors}

    def same(name: str) -> bool:
        there = [tensors[name] for tensors in weights if name in tensors]
        return all(torch.equal(a, b) for a, b in pairwise(there))

    return {name for name in names if same(name)}
