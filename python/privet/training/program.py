"""The graphs of a training: one step, an evaluation, and what reveals the trained model; all over the same states."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from .._structure import Structure, flatten
from ..capture import evaluation_mode
from ..errors import CaptureError
from ..graph import Graph, Node, Output, Update
from ._lowering import Shares, TrainingLowering
from .joint import Joint, Loss, evaluation, first_names, joint
from .optimisers import LOSS_SCALE, Optimiser, optimiser_of

DATA_OWNER = "data_owner"
"""The role that has inputs and targets, unless it is said who has."""

MODEL_OWNER = "model_owner"
"""The role that has the model at first and gets it at the end."""

TARGET = "target"
"""What the last tensor of a batch is called."""

LOSS = "loss"
GUARDS = {"in_range.values": 2.0**12, "in_range.parameters": 2.0**8}
"""Outputs that are 1 while training is within range, and their limits: of the results and the loss, and of the sums of
squares of parameters' rows (``docs/training.md``, "Guard")."""


@dataclass
class Training:
    """A captured training: graphs, the first values of all states, and the optimiser's counterpart."""

    train: Graph
    evaluate: Graph
    reveal: Graph
    states: dict[str, Tensor]
    optimiser: Optimiser
    classes: dict[str, int] = field(default_factory=dict)
    """The number of classes of every input that holds one-hot rows."""
    structure: Structure = 0
    """How the model's result is nested."""
    names: tuple[str, ...] = ()
    """A batch's tensors: inputs, then the target."""
    shares: Mapping[str, Shares] = field(default_factory=dict)
    """The owners of each of them, where it is not the data owner alone."""

    def graphs(self) -> dict[str, Graph]:
        """The plans of the program by name."""
        return {"train": self.train, "evaluate": self.evaluate, "reveal": self.reveal}

    def unsupported(self) -> list[Node]:
        """The operations that cannot be lowered, of the step and, where others, of the evaluation."""
        step = self.train.unsupported()
        known = {(n.op["name"], n.source, n.layer) for n in step}
        others = [n for n in self.evaluate.unsupported() if (n.op["name"], n.source, n.layer) not in known]
        return step + others


def capture_training(
    model: nn.Module,
    loss: Loss,
    optimizer: torch.optim.Optimizer,
    batch: Sequence[Tensor],
    *,
    name: str | None = None,
    reveal_loss: bool = True,
    highest: Sequence[float] | None = None,
    rows: Mapping[str, int] | None = None,
    target_owner: str | None = None,
) -> Training:
    """Lower model, loss and optimiser to the graphs of a training, for batches of the shapes of ``batch``.

    The last tensor of a batch is the target. ``highest`` is the largest learning rate that steps will have, by
    parameter group; by default the present one. ``rows`` splits every batch between data owners, and ``target_owner``
    is the role that has the targets where the data owners do not.

    Raises :class:`CaptureError` and :class:`UnsupportedOptimiser`; operations without a counterpart become
    ``unsupported`` nodes.
    """
    checked = check_batch(batch)
    names = [*input_names(model, len(checked) - 1), TARGET]
    shares = shares_of(names, len(checked[0]), rows, target_owner)
    made = joint(model, loss, checked, names, LOSS_SCALE, shares)
    lo = made.lowering
    optimiser = optimiser_of(optimizer, made.parameters)
    if highest is not None:
        optimiser.highest = [max(a, b) for a, b in zip(optimiser.highest, highest, strict=True)]
    trained = {n for g in optimiser.groups for n in g.names}
    optimiser.apply(lo, {n: g for n, g in made.gradients.items() if n in trained})
    lo.updates.update(made.buffers)
    finish(made, reveal_loss)
    lo.graph.name = name or type(model).__name__.lower()

    with evaluation_mode(model), torch.no_grad():
        structure, _, labels = flatten(model(*[t.clone() for t in checked[:-1]]))
    forward, results = evaluation(model, checked[:-1], names[:-1])
    forward.graph.name = lo.graph.name
    forward.graph.outputs = [Output(node, label) for node, label in zip(results, labels, strict=True)]
    forward.graph.prune()
    reveal = reveal_graph(lo)
    states = {n: lo.parameters[n] for n in {**lo.graph.states(), **reveal.states()}}
    for other, value in forward.parameters.items():
        if other in forward.graph.states() and other not in states:
            states[other] = value
    classes = {label: y.classes for label, y in lo.labels.items()}
    return Training(lo.graph, forward.graph, reveal, states, optimiser, classes, structure, tuple(names), shares)


def shares_of(
    names: Sequence[str], batch: int, rows: Mapping[str, int] | None, target_owner: str | None
) -> dict[str, Shares]:
    """Who shares which rows of a batch's tensors."""
    found: dict[str, Shares] = {}
    if rows is not None:
        if sum(rows.values()) != batch or min(rows.values(), default=0) < 1:
            raise CaptureError(f"the owners' rows are {dict(rows)}; they must add up to the batch of {batch}")
        found = {name: tuple(rows.items()) for name in names}
    if target_owner is not None:
        found[names[-1]] = ((target_owner, batch),)
    return found


def check_batch(batch: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A batch as tensors: inputs of real numbers, then a target of as many rows."""
    if len(batch) < 2:
        raise CaptureError("a batch is inputs and a target: (x, y), the target last")
    for i, value in enumerate(batch):
        if not isinstance(value, Tensor):
            raise CaptureError(f"tensor {i} of the batch is {type(value).__name__}; batches must be tensors")
        if value.dim() == 0 or value.shape[0] == 0 or value.shape[0] != batch[0].shape[0]:
            raise CaptureError(f"tensor {i} of the batch has shape {list(value.shape)}; dimension 0 must be its rows")
        if not value.is_floating_point() and (i != len(batch) - 1 or value.dtype not in (torch.int64, torch.int32)):
            raise CaptureError(
                f"tensor {i} of the batch is {value.dtype}; inputs are real numbers, and targets real numbers or "
                "class indices of int64"
            )
    return tuple(t.detach().cpu() for t in batch)


def input_names(model: nn.Module, count: int) -> list[str]:
    """The names of ``forward``'s arguments."""
    found = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            found.append(parameter.name)
    found += [f"input.{i}" for i in range(len(found), count)]
    names = [n if n != TARGET else f"{TARGET}.input" for n in found[:count]]
    return names


def finish(made: Joint, reveal_loss: bool) -> None:
    """Enter results, guards and updates, and drop what nobody needs."""
    lo = made.lowering
    lo.at("guard")
    graph = lo.graph
    watched = [*made.results, *([made.loss] if reveal_loss else [])]
    sums = [rows_squared(lo, lo.updates[n]) for n in made.parameters if n in lo.updates]
    values, parameters = GUARDS
    outputs = [(made.loss, LOSS)] if reveal_loss else []
    outputs.append((lo.emit({"kind": "in_range", "limit": GUARDS[values]}, watched, []), values))
    if sums:
        outputs.append((lo.emit({"kind": "in_range", "limit": GUARDS[parameters]}, sums, []), parameters))
    graph.outputs = [Output(node, label) for node, label in outputs]
    graph.updates = [Update(lo.states[n], node) for n, node in lo.updates.items()]
    graph.prune()


def rows_squared(lo: TrainingLowering, node: int) -> int:
    """The sum of squares of every row of a parameter."""
    shape = lo.shape_at(node)
    rows = shape[0] if len(shape) > 1 else 1
    size = 1
    for extent in shape:
        size *= extent
    flat = lo.emit({"kind": "reshape"}, [node], [rows, 1, size // rows])
    column = lo.emit({"kind": "reshape"}, [node], [rows, size // rows, 1])
    return lo.emit({"kind": "mat_mul"}, [flat, column], [rows, 1, 1])


def reveal_graph(lo: TrainingLowering) -> Graph:
    """Every trained parameter and every buffer that training changes, to the model's owner."""
    graph = Graph(lo.graph.name, 1)
    for name in lo.updates:
        if not name.startswith("optimizer."):
            node = Node({"kind": "state", "name": name}, [], list(lo.parameters[name].shape))
            graph.nodes.append(node)
            graph.outputs.append(Output(len(graph.nodes) - 1, name, MODEL_OWNER))
    return graph


def trained_state(model: nn.Module, revealed: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
    """The model's ``state_dict`` with the revealed values in it, in the model's own types."""
    found = {}
    aliases = first_names(model)
    for name, old in model.state_dict().items():
        new = revealed.get(aliases.get(name, name))
        if new is not None:
            found[name] = new.to(old.dtype).reshape(old.shape)
        elif name.rpartition(".")[2] == "num_batches_tracked":
            found[name] = old + steps
        else:
            found[name] = old.clone()
    return found


__all__ = ["GUARDS", "LOSS", "Training", "capture_training", "trained_state"]
