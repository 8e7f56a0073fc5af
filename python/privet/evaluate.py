"""Evaluates a captured graph on real numbers: a model, or a step of training.

It gives calibration ranges, layer-by-layer values, and the check that capture changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from ._gradients import GRADIENTS, SMOOTH_GRADIENTS
from .graph import Graph, Node

Compute = Callable[[Node, Sequence[Tensor]], Tensor]


def _conv2d(n: Node, v: Sequence[Tensor]) -> Tensor:
    o = n.op
    bias = v[2] if len(v) > 2 else None
    return F.conv2d(v[0], v[1], bias, o["stride"], o["padding"], o["dilation"], o["groups"])


def _batch_norm(n: Node, v: Sequence[Tensor]) -> Tensor:
    x, gamma, beta, mean, variance = v
    return F.batch_norm(x, mean, variance, gamma, beta, training=False, eps=n.op["eps"])


def _max_pool(n: Node, v: Sequence[Tensor]) -> Tensor:
    w = n.op["window"]
    return F.max_pool2d(v[0], w["kernel"], w["stride"], w["padding"], w["dilation"], w["ceil_mode"])


def _avg_pool(n: Node, v: Sequence[Tensor]) -> Tensor:
    w, count = n.op["window"], n.op["count_include_pad"]
    return F.avg_pool2d(v[0], w["kernel"], w["stride"], w["padding"], w["ceil_mode"], count, n.op.get("divisor"))


def _slice(n: Node, v: Sequence[Tensor]) -> Tensor:
    o = n.op
    index: list[slice] = [slice(None)] * v[0].dim()
    index[o["dim"]] = slice(o["start"], o["end"], o["step"])
    return v[0][tuple(index)]


def _pad(n: Node, v: Sequence[Tensor]) -> Tensor:
    return F.pad(v[0], [amount for pair in reversed(n.op["amounts"]) for amount in pair])


def _argmax(n: Node, v: Sequence[Tensor]) -> Tensor:
    # torch leaves ties open; the plan's meaning is the smallest index.
    x, dim = v[0], n.op["dim"]
    positions = torch.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    largest = x == x.amax(dim, keepdim=True)
    index = torch.where(largest, positions, x.shape[dim]).amin(dim, keepdim=n.op["keepdim"])
    return index.to(x.dtype)


SMOOTH: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "log": torch.log,
    "reciprocal": torch.reciprocal,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "floor": torch.floor,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    **SMOOTH_GRADIENTS,
}
"""The functions of ``smooth`` nodes but for the softmaxes."""


def _smooth(n: Node, v: Sequence[Tensor]) -> Tensor:
    function = n.op["function"]
    if isinstance(function, str):
        return SMOOTH[function](v[0])
    ((kind, settings),) = function.items()
    return (F.softmax if kind == "softmax" else F.log_softmax)(v[0], settings["dim"])


COMPUTE: dict[str, Compute] = {
    "conv2d": _conv2d,
    "linear": lambda n, v: F.linear(*v),
    "mat_mul": lambda n, v: v[0] @ v[1],
    "batch_norm": _batch_norm,
    "relu": lambda n, v: F.relu(v[0]),
    "clamp": lambda n, v: torch.clamp(v[0], n.op.get("lo"), n.op.get("hi")),
    "leaky_relu": lambda n, v: F.leaky_relu(v[0], n.op["slope"]),
    "max_pool2d": _max_pool,
    "avg_pool2d": _avg_pool,
    "adaptive_avg_pool2d": lambda n, v: F.adaptive_avg_pool2d(v[0], n.op["output"]),
    "mean": lambda n, v: v[0].mean(n.op["dims"], n.op["keepdim"]),
    "sum": lambda n, v: v[0].sum(n.op["dims"], n.op["keepdim"]),
    "add": lambda n, v: v[0] + v[1],
    "sub": lambda n, v: v[0] - v[1],
    "mul": lambda n, v: v[0] * v[1],
    "neg": lambda n, v: -v[0],
    "add_scalar": lambda n, v: v[0] + n.op["value"],
    "mul_scalar": lambda n, v: v[0] * n.op["value"],
    "reshape": lambda n, v: v[0].reshape(n.shape),
    "permute": lambda n, v: v[0].permute(n.op["dims"]),
    "slice": _slice,
    "concat": lambda n, v: torch.cat(list(v), n.op["dim"]),
    "pad": _pad,
    "expand": lambda n, v: v[0].expand(n.shape),
    "argmax": _argmax,
    "smooth": _smooth,
    "positive": lambda n, v: (v[0] > 0).to(v[0].dtype),
    "choose": lambda n, v: torch.where(v[0] != 0, v[1], torch.zeros_like(v[1])),
    "in_range": lambda n, v: torch.tensor(
        float(all(bool((t.abs() < n.op["limit"]).all()) for t in v)), dtype=v[0].dtype
    ),
    "reverse": lambda n, v: v[0].flip(n.op["dims"]),
    **GRADIENTS,
}
"""One entry an operation of :mod:`privet.graph`, in the words of its definition there."""


def evaluate(
    graph: Graph,
    parameters: Mapping[str, Tensor],
    inputs: Mapping[str, Tensor],
    *,
    dtype: torch.dtype = torch.float64,
    see: Callable[[int, Tensor], None] | None = None,
) -> list[Tensor]:
    """The outputs of a model's graph on inputs of exactly the captured shapes.

    ``see`` is called with the id and value of every node as it is computed; values are dropped after
    their last use. An unsupported operation raises ``KeyError``.
    """
    sources = Sources(inputs=inputs, parameters=parameters)
    return run(graph, sources, [o.node for o in graph.outputs], dtype, see)


def step(
    graph: Graph,
    states: Mapping[str, Tensor],
    inputs: Mapping[str, Tensor],
    publics: Mapping[str, float],
    masks: Mapping[int, Tensor] | None = None,
    *,
    dtype: torch.dtype = torch.float64,
    see: Callable[[int, Tensor], None] | None = None,
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """One step of training: the outputs by name, and all states as they are afterwards.

    ``masks`` gives the coins of each dropout by its stream, 1 where an element is kept; what is not given is drawn
    from torch's generator.
    """
    coins = {} if masks is None else dict(masks)
    for stream, node in graph.dropouts().items():
        if stream not in coins:
            coins[stream] = torch.bernoulli(torch.full(node.shape, float(node.op["keep"])))
    sources = Sources(inputs=inputs, states=states, publics=publics, masks=coins)
    wanted = [o.node for o in graph.outputs] + [u.node for u in graph.updates]
    found = run(graph, sources, wanted, dtype, see)
    outputs = dict(zip([o.name for o in graph.outputs], found, strict=False))
    names = [graph.nodes[u.state].op["name"] for u in graph.updates]
    return outputs, {**states, **dict(zip(names, found[len(graph.outputs) :], strict=True))}


@dataclass
class Sources:
    """Where a graph's nodes without operands take their values from."""

    inputs: Mapping[str, Tensor]
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    states: Mapping[str, Tensor] = field(default_factory=dict)
    publics: Mapping[str, float] = field(default_factory=dict)
    masks: Mapping[int, Tensor] = field(default_factory=dict)

    def value(self, node: Node, operands: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
        """The value of any node."""
        if node.kind == "input":
            return self.inputs[node.op["name"]].to(dtype)
        if node.kind == "parameter":
            return self.parameters[node.op["name"]].to(dtype)
        if node.kind == "state":
            return self.states[node.op["name"]].to(dtype)
        if node.kind == "public":
            return torch.tensor(self.publics[node.op["name"]], dtype=dtype)
        if node.kind == "dropout":
            return operands[0] * self.masks[node.op["stream"]].reshape(node.shape).to(dtype)
        return COMPUTE[node.kind](node, operands)


def run(
    graph: Graph,
    sources: Sources,
    wanted: Sequence[int],
    dtype: torch.dtype,
    see: Callable[[int, Tensor], None] | None,
) -> list[Tensor]:
    """The values of the wanted nodes."""
    last = {i: at for at, n in enumerate(graph.nodes) for i in n.inputs}
    keep = set(wanted)
    values: dict[int, Tensor] = {}
    with torch.no_grad():
        for at, node in enumerate(graph.nodes):
            value = sources.value(node, [values[i] for i in node.inputs], dtype)
            if list(value.shape) != node.shape:
                raise AssertionError(f"node {at} ({node.kind}): shape {list(value.shape)}, captured as {node.shape}")
            if see is not None:
                see(at, value)
            values[at] = value
            for i in set(node.inputs):
                if last[i] == at and i not in keep:
                    del values[i]
    return [values[i] for i in wanted]


def batches(inputs: Mapping[str, Tensor], batch: int) -> list[dict[str, Tensor]]:
    """Rows in groups of ``batch``; the last group is filled up by repeating its last row."""
    rows = next(iter(inputs.values())).shape[0]
    groups = []
    for start in range(0, rows, batch):
        group = {}
        for name, tensor in inputs.items():
            part = tensor[start : start + batch]
            missing = batch - part.shape[0]
            group[name] = torch.cat([part, part[-1:].expand(missing, *part.shape[1:])]) if missing else part
        groups.append(group)
    return groups


def calibrate(graph: Graph, parameters: Mapping[str, Tensor], inputs: Mapping[str, Tensor]) -> None:
    """Record the smallest and largest value of every node over the rows of ``inputs``.

    Nothing is recorded for a graph with unsupported operations: it cannot be run anyway.
    """
    if graph.unsupported():
        return
    seen: dict[int, tuple[float, float]] = {}

    def see(node: int, value: Tensor) -> None:
        if graph.nodes[node].kind == "parameter" or value.numel() == 0:
            return
        low, high = (float(t) for t in torch.aminmax(value))
        old = seen.get(node, (low, high))
        seen[node] = (min(low, old[0]), max(high, old[1]))

    for group in batches(inputs, graph.batch):
        evaluate(graph, parameters, group, dtype=torch.float32, see=see)
    for node, bounds in seen.items():
        graph.nodes[node].range = bounds
