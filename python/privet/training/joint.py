"""The forward and backward pass of a training step as one graph, traced by PyTorch itself.

``torch.export`` gives the model and its loss with source lines; AOTAutograd differentiates that without taking
operators apart, so every gradient is an operator of its own (``convolution_backward``, ``threshold_backward``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec
from torch.nn.attention import SDPBackend, sdpa_kernel

from .._explain import explain
from .._structure import flatten
from ..capture import trace
from ..errors import CaptureError
from . import _ops_backward, _ops_bits, _ops_dropout, _ops_loss, _ops_norm
from ._lowering import Labels, Shares, TrainingLowering

OPERATIONS = (_ops_backward, _ops_bits, _ops_dropout, _ops_loss, _ops_norm)
"""The modules whose handlers a training step has beside those of inference."""

MODEL = "model."
"""What parameters and layers of the model are called within the traced module."""

Loss = Callable[[Any, Tensor], Tensor]
"""The model's result and the target to one number: a module or a function."""


class Step(nn.Module):
    """A model and its loss, as one module of a batch whose last tensor is the target."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss

    def forward(self, *batch: Tensor) -> tuple[Tensor, ...]:
        """The loss, and the tensors of the model's result."""
        result = self.model(*batch[:-1])
        value = self.loss(result, batch[-1])
        return (value, *(t.detach() for t in flatten(result)[1]))


@dataclass
class Joint:
    """A traced step: the graph under construction, and where in it things are."""

    lowering: TrainingLowering
    loss: int
    results: list[int]
    parameters: dict[str, nn.Parameter] = field(default_factory=dict)
    gradients: dict[str, int] = field(default_factory=dict)
    """By parameter; what the loss does not depend on has none."""
    buffers: dict[str, int] = field(default_factory=dict)
    """New values of the buffers that the step changes."""


@contextmanager
def training_mode(model: nn.Module) -> Iterator[None]:
    """``model.train()`` for the duration; afterwards every submodule is as it was."""
    modes = [(m, m.training) for m in model.modules()]
    model.train()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def joint(
    model: nn.Module,
    loss: Loss,
    batch: Sequence[Tensor],
    names: Sequence[str],
    scale: float = 1.0,
    shares: Mapping[str, Shares] | None = None,
) -> Joint:
    """Trace a step on batches of the shapes of ``batch``, whose tensors are called ``names`` and belong to ``shares``.

    Gradients are those of ``scale`` times the loss. Operations without a counterpart become ``unsupported`` nodes.
    Raises :class:`CaptureError` where model or loss cannot be traced.
    """
    step = Step(model, loss)
    with training_mode(model):
        try:
            program = torch.export.export(step, tuple(batch))
            graph = differentiate(program, step)
        except CaptureError:
            raise
        except Exception as error:  # torch raises many types here; all mean that the trace failed
            raise CaptureError(explain(model, error)) from error
    lowering = TrainingLowering("train", len(batch[0]), shares=shares)
    return lower(lowering, step, program, graph, names, scale)


def differentiate(program: ExportedProgram, step: Step) -> fx.GraphModule:
    """The joint graph: first the loss, the results and the buffers as they are left, then the gradients."""
    from torch._functorch.aot_autograd import aot_export_joint_simple
    from torch.fx.traceback import preserve_node_meta

    specs = program.graph_signature.input_specs
    buffers = [i for i, s in enumerate(specs) if s.kind is InputKind.BUFFER]
    trained = {n for n, p in step.named_parameters(remove_duplicate=False) if p.requires_grad}
    first = first_names(step)
    places = {str(s.target): i for i, s in reversed(list(enumerate(specs)))}
    sources = [places.get(first.get(str(s.target), ""), i) for i, s in enumerate(specs)]

    def run(*given: Tensor) -> list[Tensor]:
        # A tensor of several names is one argument. Buffers are written in place, which must be done to copies.
        copies = [t.clone() if i in buffers else t for i, t in enumerate(given)]
        arguments = [copies[i] for i in sources]
        with preserve_node_meta():
            value, *results = fx.Interpreter(program.graph_module).run(*arguments)
        if value.numel() != 1:
            raise CaptureError(f"the loss has shape {list(value.shape)}; it must be one number: take its mean or sum")
        if not value.requires_grad:
            raise CaptureError("the loss does not depend on any parameter that is trained")
        # Nothing that is returned may be a view of another tensor.
        kept = (t.detach().clone() for t in (*results, *(arguments[i] for i in buffers)))
        return [value.reshape(()).clone(), *kept]

    values = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"]
    mode = values[-1].fake_mode
    # Attention by its definition: the fused kernels have gradients of their own.
    with mode, preserve_node_meta(), sdpa_kernel(SDPBackend.MATH):
        arguments = tuple(
            v.detach().requires_grad_(s.kind is InputKind.PARAMETER and s.target in trained)
            for v, s in zip(values, specs, strict=True)
        )
        made: Any = aot_export_joint_simple(run, arguments, trace_joint=True, decompositions={})
    made.graph.eliminate_dead_code()
    assert isinstance(made, fx.GraphModule)
    return made


def first_names(module: nn.Module) -> dict[str, str]:
    """The first name of every parameter and buffer, some of which have several."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in named}


def lower(
    lowering: TrainingLowering,
    step: Step,
    program: ExportedProgram,
    module: fx.GraphModule,
    names: Sequence[str],
    scale: float,
) -> Joint:
    """Walk the joint graph in order."""
    specs = program.graph_signature.input_specs
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    tensors = Tensors(program, list(names), first_names(step))
    for node, spec in zip(placeholders, specs, strict=False):
        tensors.place(lowering, node, spec)
    for node in placeholders[len(specs) :]:  # the gradient of the loss by itself
        lowering.assign(node, lowering.constant(torch.full(node.meta["val"].shape, scale, dtype=torch.float64)))
    for node in module.graph.nodes:
        if node.op == "get_attr":
            lowering.add_constant(node, None, getattr(module, str(node.target)))
        elif node.op == "call_function":
            lowering.lower(node)
    strip_layers(lowering)

    (output,) = (n for n in module.graph.nodes if n.op == "output")
    found: list[Any] = list(output.args[0])
    count = len(program.graph_signature.output_specs)
    mutated = len(program.graph_signature.buffers_to_mutate)
    results = count - mutated
    named = dict(step.named_parameters(remove_duplicate=False))
    made = Joint(lowering, lowering.use(found[0]), [lowering.use(r) for r in found[1:results]])
    buffers = [s for s in specs if s.kind is InputKind.BUFFER]
    for spec, after in zip(buffers, found[results:], strict=False):
        name = without_prefix(str(spec.target))
        value = lowering.value(after)
        before = lowering.states.get(name)
        if isinstance(value, int) and before is not None and value != before:
            made.buffers[name] = value
    for spec, gradient in zip(specs, found[results + len(buffers) :], strict=True):
        if spec.kind is InputKind.PARAMETER:
            name = without_prefix(str(spec.target))
            made.parameters[name] = named[str(spec.target)]
            if gradient is not None:
                made.gradients[name] = lowering.use(gradient)
    return made


def evaluation(model: nn.Module, inputs: Sequence[Tensor], names: Sequence[str]) -> tuple[TrainingLowering, list[int]]:
    """The model in evaluation mode with its parameters as states, and the nodes of its results."""
    from ..capture import evaluation_mode

    with evaluation_mode(model), torch.no_grad():
        program = trace(model, tuple(inputs))
    lowering = TrainingLowering("evaluate", len(inputs[0]), training=False)
    tensors = Tensors(program, list(names), first_names(model))
    placeholders = (n for n in program.graph.nodes if n.op == "placeholder")
    for node, spec in zip(placeholders, program.graph_signature.input_specs, strict=True):
        tensors.place(lowering, node, spec)
    for node in program.graph.nodes:
        if node.op == "call_function":
            lowering.lower(node)
    (output,) = (n for n in program.graph.nodes if n.op == "output")
    mutated = len(program.graph_signature.buffers_to_mutate)
    return lowering, [lowering.use(r) for r in output.args[0][mutated:]]


class Tensors:
    """What the placeholders of an exported program stand for."""

    def __init__(self, program: ExportedProgram, names: list[str], first: dict[str, str]) -> None:
        self.program = program
        self.names = names
        self.first = first

    def place(self, lowering: TrainingLowering, node: fx.Node, spec: InputSpec) -> None:
        """Enter one of them: an input, labels, a state, or a constant of the program."""
        if spec.kind is InputKind.USER_INPUT:
            name = self.names.pop(0)
            if node.meta["val"].is_floating_point():
                lowering.assign(node, lowering.input(name, [int(n) for n in node.meta["val"].shape]))
            else:
                lowering.assign(node, Labels(name))
            return
        if spec.kind is InputKind.CONSTANT_TENSOR:
            lowering.add_constant(node, None, self.program.constants[str(spec.target)])
            return
        stored = self.program.state_dict.get(str(spec.target))
        tensor = stored if stored is not None else self.program.constants[str(spec.target)]
        assert isinstance(tensor, Tensor)
        if tensor.is_floating_point():
            name = self.first.get(str(spec.target), str(spec.target))
            lowering.assign(node, lowering.state(without_prefix(name), tensor))
        else:  # counters and indices are the program's, not secrets
            lowering.add_constant(node, None, tensor)


def without_prefix(name: str) -> str:
    """A parameter's or layer's name in the model."""
    return name.removeprefix(MODEL) if name != MODEL[:-1] else ""


def strip_layers(lowering: TrainingLowering) -> None:
    """Name layers as the model does."""
    for node in lowering.graph.nodes:
        node.layer = without_prefix(node.layer)
