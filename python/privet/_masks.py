"""Constants that say "leave this out of the softmax": minus infinity, the least float, -1e9.

As a number of fixed point it would need all of the ring. An entry is left out as well where it is so far below every
score that its exponential rounds to zero. How far follows from the calibrated scores: twice their spread, so that it
holds for inputs beyond calibration too, and :data:`BELOW`, as e^-20 is less than 2^-28.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .graph import Graph

LARGE = -4000.0
"""Entries up to this are masks where nothing but a softmax reads them."""
NO_NUMBER = -1e30
"""Entries up to this are no numbers that anything could compute with."""
PROVISIONAL = -1e6
"""What stands for a mask until the scores are known; its exponential is zero in float64."""
BELOW = 20.0

MOVES = ("reshape", "permute", "expand", "slice", "concat")


@dataclass
class Mask:
    """A parameter or product that holds masks, its entries that are left out, and what it is added to."""

    source: int
    left_out: Tensor | None
    added_to: set[int] = field(default_factory=set)


def masks_of(graph: Graph, parameters: dict[str, Tensor], fills: Iterable[int]) -> list[Mask]:
    """The masks of a graph, set to a provisional number; those that anything but a softmax reads become unsupported."""
    users: dict[int, list[int]] = {}
    for at, node in enumerate(graph.nodes):
        for operand in node.inputs:
            users.setdefault(operand, []).append(at)
    sources: list[Mask] = [Mask(i, None) for i in fills]
    for at, node in enumerate(graph.nodes):
        if node.kind == "parameter":
            tensor = parameters[node.op["name"]]
            left_out = (tensor <= LARGE) | tensor.isnan()
            if bool(left_out.any()):
                sources.append(Mask(at, left_out))
            elif bool(torch.isinf(tensor).any()):
                refuse(graph, at, "infinity", "the model")
    members = {m.source: reached(graph, users, m.source) for m in sources}
    inside = {node for nodes, _ in members.values() for node in nodes}
    masks = []
    for mask in sources:
        nodes, reader = members[mask.source]
        if reader is None:
            mask.added_to = {i for n in nodes for i in graph.nodes[n].inputs if i not in inside} - {mask.source}
            put(graph, parameters, mask, PROVISIONAL)
            masks.append(mask)
        elif mask.left_out is None or no_number(parameters[graph.nodes[mask.source].op["name"]]):
            refuse(graph, mask.source, "-inf, or near it,", f"'{reader}'")
    return masks


def no_number(tensor: Tensor) -> bool:
    return bool(((tensor <= NO_NUMBER) | ~torch.isfinite(tensor)).any())


def reached(graph: Graph, users: dict[int, list[int]], source: int) -> tuple[set[int], str | None]:
    """All that a mask becomes part of before a softmax, and what else reads it, if anything does."""
    nodes, waiting = {source}, [source]
    results = {o.node for o in graph.outputs}
    while waiting:
        at = waiting.pop()
        if at in results:
            return nodes, "the result"
        for user in users.get(at, []):
            node = graph.nodes[user]
            function = node.op.get("function")
            if node.kind == "smooth" and isinstance(function, dict) and "softmax" in function:
                continue
            if node.kind not in (*MOVES, "add"):
                return nodes, node.kind
            if user not in nodes:
                nodes.add(user)
                waiting.append(user)
    return nodes, None


def refuse(graph: Graph, at: int, what: str, reader: str) -> None:
    node = graph.nodes[at]
    node.op, node.inputs = {"kind": "unsupported", "name": f"a constant of {what} that reaches {reader}"}, []


def put(graph: Graph, parameters: dict[str, Tensor], mask: Mask, below: float) -> None:
    """Let the entries that are left out be ``below`` the least of the others."""
    node = graph.nodes[mask.source]
    if mask.left_out is None:
        node.op = {"kind": "mul_scalar", "value": below}
        return
    tensor = parameters[node.op["name"]]
    kept = tensor[~mask.left_out]
    least = float(kept.min()) if kept.numel() else 0.0
    tensor = torch.where(mask.left_out, torch.tensor(least + below, dtype=tensor.dtype), tensor)
    parameters[node.op["name"]] = tensor
    node.range = (float(tensor.min()), float(tensor.max()))


def settle(graph: Graph, parameters: dict[str, Tensor], masks: list[Mask]) -> None:
    """Choose how far below the scores, whose ranges are known now, entries are."""
    for mask in masks:
        spreads = [b - a for a, b in (graph.nodes[i].range or (0.0, 0.0) for i in mask.added_to)]
        put(graph, parameters, mask, -float(torch.tensor(2 * sum(spreads) + BELOW).ceil()))
