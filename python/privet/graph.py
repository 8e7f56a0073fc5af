"""The captured model: operations on real numbers (mirror of ``crates/plan/src/graph.rs``).

A graph carries shapes and ranges but no weights; those live in a dictionary of tensors beside it.
"""

from __future__ import annotations

import json
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
    """A named result."""

    node: int
    name: str


@dataclass
class Graph:
    """A captured model in evaluation mode; nodes are in topological order."""

    name: str
    batch: int
    nodes: list[Node] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)

    def inputs(self) -> dict[str, Node]:
        """The data owner's tensors by name, in the order of ``forward``."""
        return {n.op["name"]: n for n in self.nodes if n.kind == "input"}

    def parameters(self) -> dict[str, Node]:
        """The model owner's tensors by name."""
        return {n.op["name"]: n for n in self.nodes if n.kind == "parameter"}

    def unsupported(self) -> list[Node]:
        """The operations that cannot be lowered."""
        return [n for n in self.nodes if n.kind == "unsupported"]

    def to_json(self, indent: int | None = None) -> str:
        """The graph as the planner reads it; ranges must be finite."""
        body = {
            "version": GRAPH_VERSION,
            "name": self.name,
            "batch": self.batch,
            "nodes": [n.to_dict() for n in self.nodes],
            "outputs": [{"node": o.node, "name": o.name} for o in self.outputs],
        }
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
        return cls(body["name"], body["batch"], nodes, [Output(**o) for o in body["outputs"]])
