"""Builds the graph of a training step: parameters are states, and what was computed once is not computed again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from .._lowering import HANDLERS, Decline, Handler, Lowering, Symbol, op
from ..graph import Op

TRAINING: dict[str, Handler] = {}
"""Handlers of a training step; those of inference serve where there is none here."""

EVALUATION: dict[str, Handler] = {}
"""Handlers of a model in evaluation mode whose parameters are states."""

training = partial(op, table=TRAINING)
"""Enters a handler into :data:`TRAINING`."""


class Factor(Symbol):
    """A value of which only products with others can be used."""

    def times(self, lo: Lowering, y: int) -> int:
        """The product with a graph node."""
        raise NotImplementedError


@dataclass(frozen=True)
class Labels(Symbol):
    """Class indices, one a row: as an input of the graph they are one-hot rows."""

    name: str


Shares = tuple[tuple[str, int], ...]
"""The roles that share an input, with the rows of each, in order."""


def part_of(name: str, shares: Shares, role: str) -> str:
    """What the plan calls a role's part of an input."""
    return name if len(shares) == 1 else f"{name}.{role}"


@dataclass(frozen=True)
class OneHot:
    """An input of the graph that holds one 1 along a dimension and else 0."""

    node: int
    dim: int
    classes: int


class TrainingLowering(Lowering):
    """A lowering in which all tensors but the inputs are states, also the constants of the program.

    Equal operations on equal operands become one node, so that a gradient finds what the forward pass computed; and
    transpositions that undo each other vanish, as autograd writes many.
    """

    def __init__(
        self, name: str, batch: int, *, training: bool = True, shares: Mapping[str, Shares] | None = None
    ) -> None:
        super().__init__(name, batch)
        self.shares = dict(shares or {})
        self.handlers = {**HANDLERS, **EVALUATION, **(TRAINING if training else {})}
        self.labels: dict[str, OneHot] = {}
        self.streams = 0
        self._made: dict[tuple[str, tuple[int, ...], tuple[int, ...]], int] = {}
        self.states: dict[str, int] = {}
        """Nodes of states by name."""
        self.publics: dict[str, int] = {}
        """Nodes of public numbers by name."""
        self.updates: dict[str, int] = {}
        """What takes the place of states, by their names."""

    def state(self, name: str, tensor: torch.Tensor, frac: int | None = None) -> int:
        """The node of a state, which is made when it is first asked for; ``tensor`` is its first value.

        ``frac`` gives it other fraction bits than the plan's.
        """
        if name not in self.states:
            node: Op = {"kind": "state", "name": name}
            if frac is not None:
                node["frac"] = frac
            self.parameters[name] = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
            self.states[name] = self.emit(node, [], list(tensor.shape))
        return self.states[name]

    def at(self, layer: str) -> None:
        """Name the layer of the nodes that follow; they come from no line of the model."""
        self._layer, self._source = layer, ""

    def public(self, name: str, limit: float) -> int:
        """The node of a public number, at most ``limit`` in magnitude."""
        return self.emit({"kind": "public", "name": name, "limit": limit}, [], [])

    def input(self, name: str, shape: list[int]) -> int:
        """An input, of one owner or put together of several owners' rows."""
        shares = self.shares.get(name)
        if shares is None:
            return self.emit({"kind": "input", "name": name}, [], shape)
        parts = []
        for role, rows in shares:
            node: Op = {"kind": "input", "name": part_of(name, shares, role), "owner": role}
            parts.append(self.emit(node, [], [rows, *shape[1:]]))
        return parts[0] if len(parts) == 1 else self.emit({"kind": "concat", "dim": 0}, parts, shape)

    def one_hot(self, labels: Labels, classes: int, dim: int, shape: list[int]) -> OneHot:
        """The input that stands for class indices, of the shape of the scores that they are compared with."""
        found = self.labels.get(labels.name)
        if found is None:
            found = OneHot(self.input(labels.name, shape), dim, classes)
            self.labels[labels.name] = found
        if (found.dim, found.classes) != (dim, classes):
            raise Decline(f"labels for {classes} classes that stand for {found.classes} elsewhere")
        return found

    def emit(self, op: Op, inputs: Sequence[int], shape: Sequence[int]) -> int:
        """The node of an operation: a new one, or the one that computes the same already."""
        op, inputs = self._simpler(op, list(inputs), list(shape))
        if op["kind"] == "same":
            return inputs[0]
        key = (json.dumps(op, sort_keys=True), tuple(inputs), tuple(shape))
        if op["kind"] == "unsupported" or key not in self._made:
            self._made[key] = super().emit(op, inputs, shape)
        return self._made[key]

    def scalar(self, argument: object) -> float | None:
        """As for inference; also a literal tensor whose elements are all the same, such as an expanded number."""
        number = super().scalar(argument)
        if number is not None or isinstance(argument, (int, float)):
            return number
        tensor = self.tensor(argument)
        if tensor is None or id(tensor) not in self._literals or tensor.numel() == 0:
            return None
        first = tensor.reshape(-1)[0]
        return float(first) if bool((tensor == first).all()) else None

    def _simpler(self, op: Op, inputs: list[int], shape: list[int]) -> tuple[Op, list[int]]:
        """An operation of less work with the same result; kind ``same`` for none at all."""
        nodes = self.graph.nodes
        before = nodes[inputs[-1]] if inputs else None
        if op["kind"] == "permute" and before is not None:
            dims = op["dims"]
            if before.kind == "permute":
                dims, inputs = [before.op["dims"][d] for d in dims], before.inputs
            same = dims == sorted(dims)
            return {"kind": "same"} if same else {"kind": "permute", "dims": dims}, inputs
        if op["kind"] == "reshape" and before is not None:
            if before.kind == "reshape":
                inputs = before.inputs
            return {"kind": "same"} if nodes[inputs[0]].shape == shape else op, inputs
        if op["kind"] == "mul" and (x := self._silu_grad(inputs)) is not None:
            return {"kind": "smooth", "function": "silu_grad"}, [x]
        if op["kind"] == "mat_mul" and before is not None and before.op == {"kind": "permute", "dims": [1, 0]}:
            return {"kind": "linear"}, [inputs[0], before.inputs[0]]
        return op, inputs

    def _silu_grad(self, inputs: list[int]) -> int | None:
        """The x of ``s (1 + x (1 - s))``, s its sigmoid, as autograd writes the derivative of SiLU."""
        nodes = self.graph.nodes
        s, outer = (nodes[i] for i in inputs)
        if s.op != {"kind": "smooth", "function": "sigmoid"} or outer.op != {"kind": "add_scalar", "value": 1.0}:
            return None
        product = nodes[outer.inputs[0]]
        if product.kind != "mul" or product.inputs[0] != s.inputs[0]:
            return None
        rest = nodes[product.inputs[1]]
        negated = nodes[rest.inputs[0]] if rest.op == {"kind": "add_scalar", "value": 1.0} else None
        found = negated is not None and negated.kind == "neg" and negated.inputs == [inputs[0]]
        return s.inputs[0] if found else None

    def _parameter(self, tensor: torch.Tensor) -> int:
        """A constant of the program, which becomes a state that no step replaces."""
        self._keep.append(tensor)
        return self.state(self.name_of(tensor), tensor if tensor.is_floating_point() else tensor.to(torch.float64))
