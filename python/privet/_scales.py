"""Small values that a normalisation divides by their own size get the digits that they would lose.

``y = x / sqrt(mean(x^2) + e)`` does not change when x is 2^s times as large and e is 4^s times. Where x comes from a
layer with weights and is read by nothing else, the weights take the factor, which costs nothing.
"""

from __future__ import annotations

import math

from torch import Tensor

from .graph import Graph, Node

SMALL = 2.0**-3
"""Values up to this are scaled."""
MOST = 12
"""Largest exponent of a factor."""

MOVES = ("reshape", "permute")
LAYERS = ("linear", "conv2d")


def widen(graph: Graph, parameters: dict[str, Tensor]) -> bool:
    """Scale layers before normalisations of small values; whether there was any. Ranges are to be calibrated again."""
    users: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        for operand in set(node.inputs):
            users.setdefault(operand, []).append(i)
    for output in graph.outputs:
        users.setdefault(output.node, []).append(-1)
    found = False
    for i, node in enumerate(graph.nodes):
        if node.op == {"kind": "smooth", "function": "rsqrt"}:
            found |= widen_before(graph, parameters, users, i)
    return found


def widen_before(graph: Graph, parameters: dict[str, Tensor], users: dict[int, list[int]], root: int) -> bool:
    """The same for one root."""
    nodes = graph.nodes
    eps = nodes[nodes[root].inputs[0]]
    x = operand_of(nodes, users, root) if eps.kind == "add_scalar" else None
    if x is None:
        return False
    while nodes[x].kind in MOVES:
        x = nodes[x].inputs[0]
        if len(users[x]) != 1:
            return False
    layer, limits = nodes[x], nodes[x].range
    weights = layer.inputs[1:]
    plain = all(nodes[w].kind == "parameter" and len(users[w]) == 1 for w in weights)
    if layer.kind not in LAYERS or limits is None or not plain:
        return False
    largest = max(map(abs, limits))
    if not 0 < largest < SMALL:
        return False
    exponent = min(MOST, math.floor(-math.log2(largest)))
    eps.op = {**eps.op, "value": eps.op["value"] * 4.0**exponent}
    for w in weights:
        name = nodes[w].op["name"]
        parameters[f"{name}.scaled"] = parameters.pop(name) * 2.0**exponent
        nodes[w].op = {**nodes[w].op, "name": f"{name}.scaled"}
    return True


def operand_of(nodes: list[Node], users: dict[int, list[int]], root: int) -> int | None:
    """The x of ``x rsqrt(mean(x^2) + e)``, or of the same less its mean, where nothing else reads it."""
    mean = nodes[nodes[root].inputs[0]].inputs[0]
    square = nodes[mean].inputs[0] if nodes[mean].kind == "mean" else mean
    if nodes[mean].kind != "mean" or nodes[square].kind != "mul" or len(set(nodes[square].inputs)) != 1:
        return None
    chain = (nodes[root].inputs[0], mean, square)
    centred = nodes[square].inputs[0]
    products = [u for u in users[centred] if u != square]
    alone = all(len(users[at]) == 1 for at in chain) and users[root] == products
    if not alone or len(products) != 1 or sorted(nodes[products[0]].inputs) != sorted([centred, root]):
        return None
    if nodes[centred].kind != "sub":
        return centred
    x, shift = nodes[centred].inputs
    own = nodes[shift].kind == "mean" and nodes[shift].inputs == [x] and users[shift] == [centred]
    return x if own and sorted(users[x]) == sorted([shift, centred]) else None
