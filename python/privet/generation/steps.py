"""The plans of a generation: one reads a chunk of the prompt, one takes a token and says the next one.

Both replace the same states, the keys and values of the last ``window`` tokens. They slide: what is kept of a new token
goes to the end, and the oldest goes, which costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import torch
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from ..aim import Aim
from ..capture import Capture, capture
from ..graph import Update
from ..native import native
from ..precision import Precision
from ..training.engines import plain
from .decoder import Decoder

TOKEN, READ = "token", "read"
"""Names of the plans."""
MASKED = -1024.0
"""What is added to the score of what may not be read: e^-1024 is 0 in fixed point."""
NOISE = 64.0
"""Largest magnitude of the receiver's noise."""
SCORES = "token"
"""The one result: the next token."""


class Step(nn.Module):
    """One run: tokens, the receiver's noise where there is a result, positions, mask and states, to the same again."""

    def __init__(self, decoder: Decoder, places: int, result: bool, top: int | None) -> None:
        super().__init__()
        self.decoder, self.places, self.result, self.top = decoder, places, result, top

    def forward(self, ids: Tensor, mask: Tensor, *others: Tensor) -> list[Tensor]:
        """The next token where that is a result, and what is kept."""
        rest = list(others)
        noise = rest.pop(0) if self.result else None
        positions, past = rest[: self.places], rest[self.places :]
        scores, kept = self.decoder(ids, positions, mask, past)
        window = past[0].shape[2]
        kept = [t[:, :, t.shape[2] - window :] for t in kept]
        if noise is None:
            return kept
        if self.top is not None:
            least = scores.topk(self.top, -1).values[:, -1:]
            scores = torch.where(scores >= least, scores, torch.full_like(scores, MASKED))
        return [(scores + noise).argmax(-1), *kept]


@dataclass(frozen=True)
class Plan:
    """A captured and lowered step."""

    captured: Capture
    names: list[str]
    """Of its inputs, without the states, in the order of :func:`example`."""
    text: str
    weights: bytes
    notes: list[str]


def state_names(decoder: Decoder) -> list[str]:
    """``keys.0``, ``values.0``, ``keys.1``, ..."""
    return [f"{('keys', 'values')[i % 2]}.{i // 2}" for i in range(len(decoder.kept()))]


def empty(decoder: Decoder, window: int) -> dict[str, Tensor]:
    """First values of the states."""
    shapes = [(1, heads, window, width) for heads, width in decoder.kept()]
    return {name: torch.zeros(shape) for name, shape in zip(state_names(decoder), shapes, strict=True)}


def example(decoder: Decoder, window: int, count: int, result: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and states of a step over ``count`` tokens, with the largest numbers that runs will have."""
    drawn = torch.Generator().manual_seed(0)  # an example to trace and check with; no run uses it
    ids = torch.randint(0, decoder.vocabulary, (1, count), generator=drawn)
    mask = torch.zeros(1, 1, count, window + count)
    mask[..., 0] = MASKED
    noise = [torch.linspace(-NOISE, NOISE, decoder.vocabulary).reshape(1, -1)] if result else []
    positions = decoder.positions(torch.arange(1, count + 1).reshape(1, -1))  # not 0, whose sine is 0
    past = [0.5 * torch.randn(t.shape, generator=drawn) for t in empty(decoder, window).values()]
    return [ids, mask, *noise, *positions], past


def plan_of(
    decoder: Decoder,
    name: str,
    sizes: tuple[int, int],
    top: int | None,
    precision: Precision,
    family: tuple[str, str],
    aim: Aim,
    chosen: tuple[int | None, Sequence[tuple[str, str]]],
) -> Plan:
    """Capture a step over ``sizes``, window and tokens, and lower it. Raises what :func:`privet.compile` raises."""
    window, count = sizes
    result = name == TOKEN
    given, past = example(decoder, window, count, result)
    step = Step(decoder, len(decoder.positions(torch.zeros(1, 1, dtype=torch.int64))), result, top)
    captured = capture(step, [*given, *past], name=name)
    graph, states = captured.graph, state_names(decoder)
    inputs = list(graph.inputs())
    names, held = inputs[: len(given)], inputs[len(given) :]
    known = dict(zip(held, states, strict=True))
    place = {}
    for at, node in enumerate(graph.nodes):
        if node.kind == "input" and node.op["name"] in known:
            place[known[node.op["name"]]] = at
            node.op = {"kind": "state", "name": known[node.op["name"]], "owner": "data_owner"}
        elif node.kind == "input" and result and node.op["name"] == names[2]:
            node.op["owner"] = "receiver"
        elif node.kind == "parameter":
            node.op["name"] = f"{name}.{node.op['name']}"
    kept = graph.outputs[1:] if result else graph.outputs
    graph.outputs = graph.outputs[: len(graph.outputs) - len(kept)]
    for output in graph.outputs:
        output.name = SCORES
    graph.updates = [Update(place[state], o.node) for state, o in zip(states, kept, strict=True)]
    graph.prune()
    parameters = {f"{name}.{key}": value for key, value in captured.parameters.items()}
    body = json.dumps({**json.loads(precision.to_json()), "keep_ring": True}, sort_keys=True)
    text, weights, notes = native().lower(
        graph.to_json(), save_tensors(plain(parameters)), body, *family, astuple(aim), *chosen
    )
    return Plan(captured, names, text, weights, list(notes))


def encoded(plan: Plan, given: Sequence[Tensor]) -> Mapping[str, Tensor]:
    """Inputs as the plan takes them; :class:`InputError` for a token that is none."""
    coders = plan.captured.coders
    pairs = zip(plan.names, given, strict=True)
    return {name: coders[name].encode(t, name) if name in coders else t.double() for name, t in pairs}
