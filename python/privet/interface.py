"""The public face of a private model: names and shapes, and the checks that inputs pass before they are shared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from ._inputs import OneHot, coder_of, refuse
from ._structure import Structure, unflatten
from .capture import Capture
from .errors import InputError
from .evaluate import batches

INTERFACE_VERSION = 3


@dataclass(frozen=True)
class Port:
    """An input or output: its name, its shape with the batch, and whether its elements are whole numbers."""

    name: str
    shape: list[int]
    integer: bool = False
    coder: dict[str, Any] | None = None
    """How integers of an input become the real numbers that are shared (:mod:`privet._inputs`)."""


@dataclass(frozen=True)
class Interface:
    """What every participant may know besides the plan."""

    name: str
    protocol: str
    security: str
    batch: int
    inputs: list[Port]
    outputs: list[Port]
    structure: Structure
    parties: int | None = None
    """How many parties it was compiled for; as few as the protocol does with where nobody said."""
    parameters: dict[str, str | int] = field(default_factory=dict)
    """What the deployment that it was compiled for sets of the protocol."""

    @classmethod
    def of(
        cls,
        captured: Capture,
        protocol: str,
        security: str,
        parties: int | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> Interface:
        """The interface of a captured model."""
        graph = captured.graph
        inputs = []
        for name, node in graph.inputs().items():
            coder = captured.coders.get(name)
            shape = node.shape[:-1] if isinstance(coder, OneHot) else node.shape
            inputs.append(Port(name, shape, coder is not None, None if coder is None else coder.to_dict()))
        outputs = []
        for o in graph.outputs:
            node = graph.nodes[o.node]
            outputs.append(Port(o.name, node.shape, node.kind == "argmax" or o.name in captured.integers))
        sizes = (graph.name, protocol, security, graph.batch)
        return cls(*sizes, inputs, outputs, captured.structure, parties, dict(parameters or {}))

    def set(self) -> list[tuple[str, str]]:
        """The protocol's parameters as people write them."""
        return [(name, str(value)) for name, value in self.parameters.items()]

    def to_json(self) -> str:
        """For ``interface.json``."""
        return json.dumps({"version": INTERFACE_VERSION, **asdict(self)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Interface:
        """Parse what :meth:`to_json` wrote."""
        body = json.loads(text)
        version = body.pop("version", None)
        if version != INTERFACE_VERSION:
            raise ValueError(
                f"interface version {version}, this privet reads {INTERFACE_VERSION}; save the model again"
            )
        for key in ("inputs", "outputs"):
            body[key] = [Port(**p) for p in body[key]]
        return cls(**body)

    def check_inputs(self, given: Sequence[Any], limits: Mapping[str, float]) -> dict[str, Tensor]:
        """The inputs by name as float64, any number of rows.

        Refuses wrong counts and shapes, NaN, infinity and magnitudes above the plan's limit with an
        :class:`InputError` that names tensor and index; the value itself is secret and never shown. A single mapping
        gives the inputs by name.
        """
        if len(given) == 1 and isinstance(given[0], Mapping):
            missing = [p.name for p in self.inputs if p.name not in given[0]]
            if missing:
                raise InputError(
                    f"no input '{missing[0]}' was given; the model takes {', '.join(p.name for p in self.inputs)}"
                )
            given = [given[0][p.name] for p in self.inputs]
        if len(given) != len(self.inputs):
            names = ", ".join(p.name for p in self.inputs)
            raise InputError(f"{len(given)} inputs given, the model takes {len(self.inputs)}: {names}")
        checked: dict[str, Tensor] = {}
        for port, value in zip(self.inputs, given, strict=True):
            tensor = as_tensor(value, port.name)
            if tensor.is_complex():
                raise InputError(f"input '{port.name}' is complex; private inputs are real numbers")
            if tensor.dim() != len(port.shape) or list(tensor.shape[1:]) != port.shape[1:] or tensor.shape[0] == 0:
                expected = ", ".join(["rows", *map(str, port.shape[1:])])
                raise InputError(
                    f"input '{port.name}' has shape {list(tensor.shape)}; the model takes [{expected}]:"
                    " a plan has fixed shapes, privet.Ladder makes plans for several lengths"
                )
            coder = coder_of(port.coder)
            if coder is not None and not tensor.is_floating_point():
                tensor = coder.encode(tensor, port.name)
            elif coder is not None:
                raise InputError(f"input '{port.name}' is {tensor.dtype}; the model takes whole numbers")
            tensor = tensor.to(torch.float64).contiguous()
            refuse(port.name, ~torch.isfinite(tensor), "is NaN or infinite")
            limit = limits.get(port.name)
            if limit is not None:
                reason = f"exceeds {limit:g} in magnitude, the range of calibration; calibrate with such rows too"
                refuse(port.name, tensor.abs() > limit, reason)
            checked[port.name] = tensor
        rows = {t.shape[0] for t in checked.values()}
        if len(rows) != 1:
            raise InputError("the inputs have different numbers of rows: " + ", ".join(map(str, sorted(rows))))
        if rows != {self.batch} and not self.batched():
            raise InputError(f"give exactly {self.batch} rows: a result of this model mixes or drops rows")
        return checked

    def batched(self) -> bool:
        """Whether dimension 0 of every output is the row, so that rows can be split over runs."""
        return all(p.shape[:1] == [self.batch] for p in self.outputs)

    def groups(self, inputs: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """Rows in groups of the plan's batch, the last one filled up with copies of its last row."""
        return batches(inputs, self.batch)

    def assemble(self, parts: Sequence[Mapping[str, Tensor]], rows: int) -> Any:
        """The model's result from the outputs of all groups, float32 or, for indices, int64."""
        values = []
        for port in self.outputs:
            pieces = [part[port.name] for part in parts]
            value = torch.cat(pieces)[:rows] if self.batched() else pieces[0]
            values.append(value.round().to(torch.int64) if port.integer else value.to(torch.float32))
        return unflatten(self.structure, values)


def as_tensor(value: Any, name: str) -> Tensor:
    """A tensor, an array or nested lists of numbers as a tensor; :class:`InputError` for anything else."""
    try:
        return torch.as_tensor(value).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        kind = type(value).__name__
        raise InputError(f"input '{name}' is {kind}; give a tensor, an array, or lists of numbers") from error
