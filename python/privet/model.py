"""From a PyTorch model to a private one: compile, check, estimate, compare, save and load."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from . import compare as matching
from ._inputs import Examples, coder_of
from .aim import Aim, Network, network_profile
from .capture import Capture, capture, rebatch
from .errors import CaptureError, PrivetError, UnsupportedModel
from .evaluate import evaluate
from .graph import Graph
from .guard import beyond, guard_of, require
from .interface import Interface
from .native import available, native
from .precision import Precision
from .protocols import choose
from .report import Comparison, Estimate, LayerDifference

UNWATCHED = "guard: off, as asked; a value that outgrows its range inside the model gives a wrong result unseen"
"""What notes say of a plan that is to have no guard."""

DEFAULT_PROTOCOL = "fss"
"""The family where nobody chooses."""


@dataclass(frozen=True)
class Owned:
    """What the model's owner has and nobody else: the captured model and the folded weights of its plan."""

    captured: Capture
    weights: bytes
    rebatch: Callable[[int], Graph] | None = None

    def __repr__(self) -> str:
        return "Owned(..)"


def compile(
    model: nn.Module,
    example_inputs: Examples,
    protocol: str = DEFAULT_PROTOCOL,
    precision: Precision | None = None,
    calibration: Examples | None = None,
    name: str | None = None,
    security: str | None = None,
    *,
    network: Network = "lan",
    max_key_bytes: int | None = None,
    parties: int | None = None,
    parameters: Mapping[str, str | int] | None = None,
    guard: bool | None = None,
) -> PrivateModel:
    """Turn an inference-mode model into a plan that parties can run without seeing inputs or weights.

    Args:
        model: Any ``nn.Module`` that ``torch.export`` can trace; it is used in evaluation mode and left as it was.
        example_inputs: A tensor, one for each argument of ``forward``, or a mapping of arguments by name; dimension 0
            is the rows of one run. Integers that look up an embedding are private indices, shared as one-hot rows.
            Integers of which the example holds 0 and 1 alone are private bits, such as a padding mask.
        protocol: ``fss``, two parties and a dealer; ``rep3``, three parties of which two are honest; ``semi2k``, two
            to eight parties of which all but one may collude; or ``heot``, a server that has the weights and a client.
            Of the others any two that collude learn everything.
        precision: Ring and fraction bits; by default chosen so that calibration fits with room to spare.
        calibration: Typical rows, any number (default: the example inputs). Values beyond their range are refused
            when encoding inputs; inside the network there is a margin, and a guard where one is asked for or cheap.
        name: For reports; by default the model's class.
        security: What the protocol has to withstand: ``semi-honest`` parties, which follow it (all of them),
            or one ``malicious`` party, which may do anything and is then found out before a result is revealed
            (``rep3``, its default).
        network: What lies between the parties: ``"lan"``, ``"wan"``, ``"rtt=60ms,bandwidth=293Mbit/s"`` or the same
            as a dictionary. Where the protocol knows several forms of a comparison, the plan states the one that
            is predicted to be fastest there; ``notes`` has a line about it.
        max_key_bytes: Most key bytes that a run may use up at one party; ``None`` for as many as are fastest.
        parties: How many compute, where the protocol leaves that open (``semi2k``); by default as few as it does with.
        parameters: What ``deployment.toml`` sets of the protocol: with ``{"helper": "dealer"}`` plans of ``semi2k``
            have exponentials and sums of waves as one operation each, which only a dealer can prepare.
        guard: Whether a run tells, in one bit a row, that no value inside left its range; :class:`OutOfRange` names the
            rows where one did (``docs/guard.md``). By default where it costs at most a tenth more by the estimate and
            no fraction bits; ``notes`` say which it is, and what it costs.

    Operations that no protocol can run do not raise here: ``check()`` lists all of them with source lines and
    remedies, and everything else raises :class:`UnsupportedModel`. Raises :class:`CaptureError`,
    :class:`PrecisionError`, and ``ValueError`` for a protocol that does not exist or cannot withstand what it should,
    a network that is none, and a cap on keys that cannot be kept to (it says the least possible).
    """
    if not isinstance(model, nn.Module):
        raise CaptureError(f"the model is a {type(model).__name__}; give a torch.nn.Module: its forward may call it")
    known = choose(protocol, security) if available() else None
    aim = Aim.of(network, max_key_bytes)
    captured = capture(model, example_inputs, name=name, calibration=calibration)
    bits = precision or Precision()
    if captured.graph.unsupported():
        # It runs under no protocol: without the compiled part, which knows them, the names stay as they were given.
        given, against = (known[0].name, known[1]) if known else (protocol, security or "")
        return PrivateModel(Interface.of(captured, given, against), None, Owned(captured, b""), bits, aim=aim)
    family, against = known or choose(protocol, security)
    if parties is not None:
        family.count(parties)
    interface = Interface.of(captured, family.name, against, parties, parameters)
    tensors = save_tensors(captured.parameters)
    graph = captured.graph.to_json()
    plan, weights, notes = native().lower(
        graph, tensors, bits.to_json(guard), family.name, against, astuple(aim), parties, interface.set()
    )
    if guard is False:
        notes = [*notes, UNWATCHED]
    owned = Owned(captured, weights, lambda rows: rebatch(model, example_inputs, captured, rows))
    return PrivateModel(interface, plan, owned, bits, notes, aim=aim)


def load(directory: str | Path, *, with_weights: bool = True) -> PrivateModel:
    """Read what :meth:`PrivateModel.save` wrote.

    Where its folder ``model`` is missing, or without ``with_weights``, only plan and interface are known: enough to
    run the model as the data's owner.
    """
    folder = Path(directory)
    try:
        interface = Interface.from_json((folder / "interface.json").read_text())
        plan = (folder / "plan.json").read_text()
    except OSError as error:
        raise PrivetError(f"{folder} holds no saved private model: {error}") from error
    secret = folder / "model"
    if not with_weights or not secret.is_dir():
        return PrivateModel(interface, plan, None, Precision())
    graph = Graph.from_json((secret / "graph.json").read_text())
    parameters = load_tensors((secret / "parameters.safetensors").read_bytes())
    coders = {p.name: coder for p in interface.inputs if (coder := coder_of(p.coder)) is not None}
    captured = Capture(graph, parameters, interface.structure, coders)
    return PrivateModel(interface, plan, Owned(captured, (secret / "weights.safetensors").read_bytes()), Precision())


class PrivateModel:
    """A compiled model: a public plan and, with its owner, the weights."""

    def __init__(
        self,
        interface: Interface,
        plan: str | None,
        owned: Owned | None,
        precision: Precision,
        notes: Sequence[str] = (),
        aim: Aim | None = None,
    ) -> None:
        self.interface = interface
        self.precision = precision
        self.notes = list(notes)
        """What the planner did: folded BatchNorms, chosen bits, swapped operations, forms of comparisons."""
        self._aim = aim
        self._plan = plan
        self._owned = owned
        self.guard: str | None = None if plan is None else guard_of(plan, interface)
        """The plan's result that says whether all was in range; none where it has no guard."""

    def __repr__(self) -> str:
        """Names and sizes only; never weights."""
        i = self.interface
        state = (
            "not runnable, see check()" if self._plan is None else "with weights" if self._owned else "without weights"
        )
        family = f"protocol={i.protocol!r}, security={i.security!r}"
        return f"PrivateModel({i.name!r}, {family}, batch={i.batch}, {state})"

    @property
    def plan(self) -> str:
        """The plan as JSON; public. Raises :class:`UnsupportedModel` where there is none."""
        if self._plan is None:
            problems = self.check()
            lines = [f"- {p['op']} in '{p['layer']}' at {p['source']}: {p['remedy']}" for p in problems]
            raise UnsupportedModel(
                "\n".join([f"{len(problems)} operations of this model cannot run privately:", *lines]), problems
            )
        return self._plan

    @property
    def weights(self) -> bytes:
        """The folded weights (safetensors, F64): the model owner's secret."""
        return self._require_owner().weights

    def check(self) -> list[dict[str, str]]:
        """Every operation that cannot run privately: ``op``, ``layer``, ``source``, ``what`` and ``remedy`` each.

        Empty for a model that can run.
        """
        if self._owned is None:
            return []
        graph = self._owned.captured.graph
        if available():
            return [dict(p) for p in native().check(graph.to_json())]
        return [
            {
                "op": n.op["name"],
                "layer": n.layer,
                "source": n.source,
                "what": "no private implementation",
                "remedy": "rewrite it with supported operations, or move it outside the private part of the model",
            }
            for n in graph.unsupported()
        ]

    def estimate(self, batch: int | None = None, network: Network = "lan", *, local: bool = False) -> Estimate:
        """Predicted bytes, rounds, key bytes, memory and seconds, by layer and in total.

        Where the protocol knows several forms of a comparison, ``alternatives`` has what other networks would choose.

        Args:
            batch: Rows of one run; by default those of the example inputs.
            network: ``"lan"``, ``"wan"``, ``"rtt=60ms,bandwidth=293Mbit/s"`` or the same as a dictionary;
                ``"local"`` for loopback.
            local: All parties on one machine like this one, as under :func:`privet.local`: they share its cores.

        Seconds go by the rates of this machine, where ``privet bench --calibrate`` has measured them, else by those of
        the shipped profile; the estimate says which.
        """
        plan = self.plan
        if batch is not None and batch != self.interface.batch:
            owner = self._require_owner()
            if owner.rebatch is None or self._aim is None:
                raise PrivetError(f"this saved model is for {self.interface.batch} rows; compile it for {batch}")
            parameters = save_tensors(owner.captured.parameters)
            graph = owner.rebatch(batch).to_json()
            bits, aim = self.precision.to_json(self.guard is not None), astuple(self._aim)
            plan, _, _ = native().lower(graph, parameters, bits, *self._family, aim, *self._chosen)
        profile = network_profile(network)
        return Estimate(json.loads(native().estimate(plan, profile, *self._family, local, *self._chosen)))

    def compare(self, *inputs: Any) -> Comparison:
        """Layer-by-layer difference between the integer plan, run in the clear, and the model in float64.

        The protocols give exactly the plan's integers up to stochastic rounding, so this is the error of a private
        run. Only the model's owner can do this. A layer that the planner merged into another one is left out. Where a
        layer has several values of one shape, the plan's nearest one is compared.
        ``beyond`` lists the layers with values beyond what calibration leaves room for.
        """
        owner, plan = self._require_owner(), json.loads(self.plan)
        graph = owner.captured.graph
        ours_at, theirs_at = matching.plan_values(plan), matching.model_values(graph, plan)
        matched = {key: (ours_at[key], theirs_at[key]) for key in ours_at if key in theirs_at}
        layers: dict[matching.Key, dict[int, LayerDifference]] = {key: {} for key in matched}
        outputs: dict[str, LayerDifference] = {}
        checked = self.interface.check_inputs(inputs, self.limits())
        largest: dict[int, float] = {}
        for group in self.interface.groups(checked):
            seen: dict[int, Tensor] = {}
            keep = {at for _, at in matched.values()}
            expected = evaluate(graph, owner.captured.parameters, group, see=keeper(seen, keep, largest))
            found = load_tensors(native().interpret(self.plan, owner.weights, save_tensors(group), True, True))
            for key, (candidates, at) in matched.items():
                for i, operation in candidates:
                    new = matching.difference(key[0], operation, found[f"#{i}"], seen[at])
                    layers[key][i] = matching.worst(layers[key].get(i), new)
            for output, reference in zip(graph.outputs, expected, strict=True):
                new = matching.difference(output.name, "output", found[output.name], reference)
                outputs[output.name] = matching.worst(outputs.get(output.name), new)
        ranges = {i: max(map(abs, n.range)) for i, n in enumerate(graph.nodes) if n.range and n.kind != "parameter"}
        sizes = ((graph.nodes[i].layer, largest[i], limit) for i, limit in ranges.items() if i in largest)
        far = beyond(sizes, 2.0**self.precision.headroom)
        nearest = [matching.standing(list(candidates.values())) for candidates in layers.values()]
        return Comparison(nearest, list(outputs.values()), far)

    def simulate(self, *inputs: Any) -> Any:
        """The plan's result in the clear, without any protocol: what a private run returns."""
        owner = self._require_owner()
        checked = self.interface.check_inputs(inputs, self.limits())
        watched = self.guard is not None
        parts = [
            load_tensors(native().interpret(self.plan, owner.weights, save_tensors(g), False, watched))
            for g in self.interface.groups(checked)
        ]
        rows = next(iter(checked.values())).shape[0]
        require(self.guard, parts, rows)
        return self.interface.assemble(parts, rows)

    def plaintext(self, *inputs: Any) -> Any:
        """The captured model's result in float64 arithmetic, for comparison."""
        owner = self._require_owner()
        checked = self.interface.check_inputs(inputs, {})
        graph = owner.captured.graph
        names = [o.name for o in graph.outputs]
        parts = [
            dict(zip(names, evaluate(graph, owner.captured.parameters, g), strict=True))
            for g in self.interface.groups(checked)
        ]
        return self.interface.assemble(parts, next(iter(checked.values())).shape[0])

    def limits(self) -> dict[str, float]:
        """Largest magnitude that each input may have, by the plan."""
        ops = [node["op"] for node in json.loads(self.plan)["nodes"]]
        return {op["name"]: float(op["limit"]) for op in ops if op["kind"] == "input"}

    def save(self, directory: str | Path) -> None:
        """Write ``plan.json`` and ``interface.json``, which are public, and with the weights a folder ``model``.

        ``model`` is the owner's secret: it is readable by its owner only, and it is what must not be handed on.
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_text(self.plan)
        (folder / "interface.json").write_text(self.interface.to_json())
        if self._owned is None:
            return
        secret = folder / "model"
        secret.mkdir(mode=0o700, exist_ok=True)
        write_secret(secret / "graph.json", self._owned.captured.graph.to_json().encode())
        write_secret(secret / "parameters.safetensors", save_tensors(self._owned.captured.parameters))
        write_secret(secret / "weights.safetensors", self._owned.weights)

    def has_weights(self) -> bool:
        """Whether this is the owner's copy."""
        return self._owned is not None

    @property
    def _family(self) -> tuple[str, str]:
        return self.interface.protocol, self.interface.security

    @property
    def _chosen(self) -> tuple[int | None, list[tuple[str, str]]]:
        return self.interface.parties, self.interface.set()

    def _require_owner(self) -> Owned:
        if self._owned is None:
            raise PrivetError("only the model's owner can do this: this copy was saved without its `model` folder")
        return self._owned


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


def keeper(seen: dict[int, Tensor], wanted: set[int], largest: dict[int, float]) -> Callable[[int, Tensor], None]:
    """A function that stores the values of the wanted nodes, and the largest magnitude of every node."""

    def see(node: int, value: Tensor) -> None:
        if value.numel():
            largest[node] = max(largest.get(node, 0.0), float(value.abs().max()))
        if node in wanted:
            seen[node] = value

    return see
