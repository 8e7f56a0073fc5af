"""The captured model: operations on real numbers (mirror of ``crates/plan/src/graph.rs``).

A graph carries shapes and ranges but no weights; those live in a dictionary of tensors beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

GRAPH_VERSION = 1

Op = dict[str, Any]
"""An operation: ``{"kind": "conv2d", "stride": [1, 1], ...}``."""


@dataclass
class Node:
    """One operation; its id is its position in the graph."""

    op: Op
    inputs: list[int]
    shape: list[int]
    layer: str = ""
    source: str = ""
    range: tuple[float, float] | None = None

    @property
    def kind(self) -> str:
        """The operation's name, ``conv2d`` style."""
        return str(self.op["kind"])

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of this node."""
        out: dict[str, Any] = {
            "op": self.op,
            "inputs": self.inputs,
            "shape": self.shape,
            "layer": self.layer,
            "source": self.source,
        }
        if self.range is not None:
            out["range"] = list(self.range)
        return out


@dataclass
class Output:
    """A named result, and the role that learns it where it is not the receiver."""

    node: int
    name: str
    to: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of this output."""
        out: dict[str, Any] = {"node": self.node, "name": self.name}
        return out if self.to is None else {**out, "to": self.to}


@dataclass
class Update:
    """In training, the node whose value takes the place of a state when the step is done."""

    state: int
    node: int


@dataclass
class Graph:
    """A captured model in evaluation mode, or a step of training; nodes are in topological order."""

    name: str
    batch: int
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    updates: list[Update] = field(default_factory=list)

    def inputs(self) -> dict[str, Node]:
        """The data owner's tensors by name, in the order of ``forward``."""
        return {n.op["name"]: n for n in self.nodes if n.kind == "input"}

    def parameters(self) -> dict[str, Node]:
        """The model owner's tensors by name."""
        return {n.op["name"]: n for n in self.nodes if n.kind == "parameter"}

    def states(self) -> dict[str, Node]:
        """The tensors that outlive a step, by name."""
        return {n.op["name"]: n for n in self.nodes if n.kind == "state"}

    def publics(self) -> dict[str, Node]:
        """The numbers that everybody knows and that every step gives anew, by name."""
        return {n.op["name"]: n for n in self.nodes if n.kind == "public"}

    def dropouts(self) -> dict[int, Node]:
        """One node for every stream of public coins."""
        return {n.op["stream"]: n for n in self.nodes if n.kind == "dropout"}

    def unsupported(self) -> list[Node]:
        """The operations that cannot be lowered."""
        return [n for n in self.nodes if n.kind == "unsupported"]

    def prune(self, keep: Iterable[int] = ()) -> dict[int, int]:
        """Drop what neither results, updates nor ``keep`` need; gives the new place of each node that is left.

        Inputs stay, since callers pass all of them.
        """
        needed = {o.node for o in self.outputs} | {i for i, n in enumerate(self.nodes) if n.kind == "unsupported"}
        needed |= {i for u in self.updates for i in (u.state, u.node)} | set(keep)
        for i in reversed(range(len(self.nodes))):
            if i in needed:
                needed.update(self.nodes[i].inputs)
        kept = [i for i, n in enumerate(self.nodes) if i in needed or n.kind == "input"]
        place = {old: new for new, old in enumerate(kept)}
        self.nodes = [self.nodes[i] for i in kept]
        for node in self.nodes:
            node.inputs = [place[i] for i in node.inputs]
        for output in self.outputs:
            output.node = place[output.node]
        for update in self.updates:
            update.state, update.node = place[update.state], place[update.node]
        return place

    def to_json(self, indent: int | None = None) -> str:
        """The graph as the planner reads it; ranges must be finite."""
        body: dict[str, Any] = {
            "version": GRAPH_VERSION,
            "name": self.name,
            "batch": self.batch,
            "nodes": [n.to_dict() for n in self.nodes],
            "outputs": [o.to_dict() for o in self.outputs],
        }
        if self.updates:
            body["updates"] = [{"state": u.state, "node": u.node} for u in self.updates]
        separators = (",", ":") if indent is None else None
        return json.dumps(body, indent=indent, separators=separators, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """Parse what :meth:`to_json` wrote; other versions are refused."""
        body = json.loads(text)
        if body["version"] != GRAPH_VERSION:
            raise ValueError(
                f"graph version {body['version']}, this privet reads {GRAPH_VERSION}; capture the model again"
            )
        nodes = [
            Node(
                n["op"],
                n["inputs"],
                n["shape"],
                n["layer"],
                n["source"],
                (n["range"][0], n["range"][1]) if n.get("range") else None,
            )
            for n in body["nodes"]
        ]
        updates = [Update(**u) for u in body.get("updates", [])]
        return cls(body["name"], body["batch"], nodes, [Output(**o) for o in body["outputs"]], updates)
