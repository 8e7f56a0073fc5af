"""Matches the values of the integer plan with those of the model, layer by layer.

A layer may hold several values of one shape, such as queries, keys and values of attention. A plan computes what does
not depend on each other in an order of its own, so names and shapes alone do not tell which is which. Of the plan's
values of a layer and shape the one that is nearest to the model's stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .graph import Graph
from .report import LayerDifference

INCREASING = ("relu", "clamp", "leaky_relu")

Key = tuple[str, tuple[int, ...]]
"""A layer and the shape of a value in it; of the model's values the last one counts."""

SAME = 2.0**-8
"""Of a value's size: a plan's values that are as near as the nearest but for this are one value, rounded or not yet."""


def plan_values(plan: Mapping[str, Any]) -> dict[Key, list[tuple[int, str]]]:
    """The values of each layer and shape in a plan, in its order, with their operations."""
    values: dict[Key, list[tuple[int, str]]] = {}
    for i, node in enumerate(plan["nodes"]):
        if node["op"]["kind"] not in ("input", "weight"):
            values.setdefault((node["layer"], tuple(node["ty"]["shape"])), []).append((i, node["op"]["kind"]))
    return values


def model_values(graph: Graph, plan: Mapping[str, Any]) -> dict[Key, int]:
    """The node of the model that each layer and shape of the plan stands for.

    The planner folds a BatchNorm into the convolution before it, which then gives the BatchNorm's value; and it
    pools before a ReLU where the model pools after it, so that the ReLU gives the pooled value. Where attention divides
    at the end there are no weights, and the value of their shape is what they would be of.
    """
    weighed = softmaxes(plan)
    users: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        for operand in node.inputs:
            users.setdefault(operand, []).append(i)
    values: dict[Key, int] = {}
    for i, node in enumerate(graph.nodes):
        if node.kind in ("input", "parameter"):
            continue
        after = [graph.nodes[u] for u in users.get(i, [])]
        follower = users[i][0] if len(after) == 1 else None
        if node.kind in ("conv2d", "linear") and follower is not None and after[0].kind == "batch_norm":
            values[node.layer, tuple(node.shape)] = follower
        elif node.kind in INCREASING and follower is not None and after[0].kind == "max_pool2d":
            values[node.layer, tuple(after[0].shape)] = follower
        elif is_softmax(node.op) and (node.layer, tuple(node.shape)) not in weighed:
            continue
        elif not (node.kind == "max_pool2d" and only_activation(graph, users, node.inputs[0])):
            values[node.layer, tuple(node.shape)] = i
    return values


def softmaxes(plan: Mapping[str, Any]) -> set[Key]:
    """Layers and shapes of the softmaxes in a plan."""
    return {(n["layer"], tuple(n["ty"]["shape"])) for n in plan["nodes"] if is_softmax(n["op"])}


def is_softmax(op: Mapping[str, Any]) -> bool:
    """Whether an operation of a graph or a plan is a softmax, or stands for one."""
    function = op.get("function")
    return isinstance(function, Mapping) and "softmax" in function


def only_activation(graph: Graph, users: Mapping[int, list[int]], node: int) -> bool:
    """Whether a value is an increasing activation that feeds nothing else."""
    return graph.nodes[node].kind in INCREASING and len(users[node]) == 1


def difference(layer: str, operation: str, ours: Tensor, theirs: Tensor) -> LayerDifference:
    """Distances of two float64 tensors."""
    gap = (ours - theirs).abs()
    if gap.numel() == 0:
        return LayerDifference(layer, operation, 0.0, 0.0, 0.0)
    return LayerDifference(layer, operation, float(gap.max()), float(gap.mean()), float(theirs.abs().max()))


def worst(old: LayerDifference | None, new: LayerDifference) -> LayerDifference:
    """The larger difference of two groups of rows; the mean is that of the group with the larger one."""
    return new if old is None or new.max_abs >= old.max_abs else old


def standing(candidates: list[LayerDifference]) -> LayerDifference:
    """Of a plan's values of one layer and shape the one that stands for the model's: of the nearest ones the last."""
    least = min(candidates, key=lambda c: c.max_abs)
    near = least.max_abs + SAME * least.scale
    return next((c for c in reversed(candidates) if c.max_abs <= near), least)
