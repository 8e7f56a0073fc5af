"""Traces a model in evaluation mode and lowers it to privet's graph.

``torch.export`` gives an ATen graph. Functionalising it (``run_decompositions({})``, an empty table) removes
in-place writes and views but keeps composite operations such as softmax or pooling whole, which is what the
protocols want.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

from . import _ops_layers, _ops_pointwise, _ops_shape, _ops_smooth
from ._lowering import Lowering
from ._source import last_user_frame
from ._structure import Structure, flatten
from .errors import CaptureError
from .evaluate import calibrate, evaluate
from .graph import Graph, Output

OPERATIONS = (_ops_layers, _ops_pointwise, _ops_shape, _ops_smooth)
"""The modules whose handlers make up the table of operations."""


@dataclass
class Capture:
    """A traced model: the graph, its parameters by name, and how its results are nested."""

    graph: Graph
    parameters: dict[str, Tensor]
    structure: Structure


def capture(
    model: nn.Module,
    example_inputs: Tensor | Sequence[Tensor],
    *,
    name: str | None = None,
    calibration: Tensor | Sequence[Tensor] | None = None,
) -> Capture:
    """Lower ``model`` to a :class:`Graph` for inputs of the shapes of ``example_inputs``.

    ``calibration`` gives rows (any number; default: the example inputs) on which the range of every
    intermediate value is recorded. Operations without a counterpart become ``unsupported`` nodes. The graph is
    run once on the example inputs and compared with the model, so a capture that returns is faithful.
    Raises :class:`CaptureError` when the model cannot be traced.
    """
    examples = as_inputs(example_inputs)
    rows = batch_of(examples)
    with evaluation_mode(model), torch.no_grad():
        program = trace(model, examples)
        result = model(*[t.clone() for t in examples])
    structure, expected, names = flatten(result)

    lowering = lower_program(name or type(model).__name__.lower(), rows, program, names)
    captured = Capture(lowering.graph, lowering.parameters, structure)
    input_names = list(captured.graph.inputs())
    if captured.graph.unsupported():
        return captured
    verify(captured, dict(zip(input_names, examples, strict=True)), expected)
    rows_seen = examples if calibration is None else as_inputs(calibration)
    if len(rows_seen) != len(examples):
        raise CaptureError(f"{len(rows_seen)} calibration tensors for a model of {len(examples)} inputs")
    for seen, example, label in zip(rows_seen, examples, input_names, strict=True):
        if seen.shape[1:] != example.shape[1:]:
            got, wanted = list(seen.shape[1:]), list(example.shape[1:])
            raise CaptureError(f"calibration rows of '{label}' have shape {got}, the example's {wanted}")
        if not bool(torch.isfinite(seen).all()):
            raise CaptureError(f"calibration input '{label}' holds NaN or infinity")
    calibrate(captured.graph, captured.parameters, dict(zip(input_names, rows_seen, strict=True)))
    return captured


def rebatch(model: nn.Module, example_inputs: Tensor | Sequence[Tensor], captured: Capture, batch: int) -> Graph:
    """The graph of the same model for another number of rows, with the ranges of ``captured``.

    The model is traced again, not run: only shapes depend on the batch. Raises :class:`CaptureError` where the model
    itself takes another course with other rows.
    """
    examples = tuple(t[:1].expand(batch, *t.shape[1:]) for t in as_inputs(example_inputs))
    with evaluation_mode(model), torch.no_grad():
        program = trace(model, examples)
    graph = lower_program(captured.graph.name, batch, program, [o.name for o in captured.graph.outputs]).graph
    if [n.kind for n in graph.nodes] != [n.kind for n in captured.graph.nodes]:
        raise CaptureError(f"the model computes something else with {batch} rows than with {captured.graph.batch}")
    for node, known in zip(graph.nodes, captured.graph.nodes, strict=True):
        node.range = known.range
    return graph


# --- Steps -------------------------------------------------------------------------------------------


def as_inputs(inputs: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The positional arguments of ``forward`` as tensors."""
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    for i, value in enumerate(given):
        if not isinstance(value, Tensor):
            raise CaptureError(f"input {i} is {type(value).__name__}; inputs must be tensors")
        if not value.is_floating_point():
            raise CaptureError(f"input {i} is {value.dtype}; private inputs are real numbers: convert with .float()")
    if not given:
        raise CaptureError("no example inputs")
    return tuple(t.detach().cpu() for t in given)


def batch_of(inputs: Sequence[Tensor]) -> int:
    """Extent of dimension 0, on which all inputs must agree."""
    for i, tensor in enumerate(inputs):
        if tensor.dim() == 0 or tensor.shape[0] == 0:
            raise CaptureError(f"input {i} has shape {list(tensor.shape)}; dimension 0 must be the batch, at least 1")
        if tensor.shape[0] != inputs[0].shape[0]:
            raise CaptureError(f"input {i} has {tensor.shape[0]} rows, input 0 has {inputs[0].shape[0]}")
    return int(inputs[0].shape[0])


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """``model.eval()`` for the duration; afterwards every submodule is as it was."""
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def trace(model: nn.Module, examples: tuple[Tensor, ...]) -> ExportedProgram:
    """The functional ATen graph, composite operations whole."""
    try:
        program: ExportedProgram = torch.export.export(model, examples).run_decompositions(decompositions())
        return program
    except Exception as error:  # torch raises many types here; all mean that the trace failed
        raise CaptureError(explain(model, error)) from error


def decompositions() -> dict[Any, Any]:
    """What is taken apart into simpler operations: notation, never a function that protocols know."""
    table = torch.export.default_decompositions()
    einsum = torch.ops.aten.einsum.default
    return {einsum: table[einsum]} if einsum in table else {}


def explain(model: nn.Module, error: Exception) -> str:
    """What went wrong in a trace, where in the model, and what to do."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
    where = last_user_frame(str(error)) or last_user_frame("".join(traceback.format_tb(error.__traceback__)))
    text = f"torch.export could not trace {type(model).__name__}"
    text += f" at {where}: {first}" if where else f": {first}"
    if "data-dependent" in str(error) or "GuardOnDataDependent" in type(error).__name__:
        text += (
            "\nThe model decides by the values of a tensor, which nobody may see in a private run. Make the decision"
            " on shapes or settings, or compute both branches and combine them arithmetically."
        )
    return text


def lower_program(name: str, rows: int, program: ExportedProgram, names: Sequence[str]) -> Lowering:
    """Walk the exported graph in order; ``names`` are those of its results."""
    lowering = Lowering(name, rows)
    inputs = {s.arg.name: s for s in program.graph_signature.input_specs if hasattr(s.arg, "name")}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            spec = inputs[node.name]
            if spec.kind is InputKind.USER_INPUT:
                if not isinstance(spec.arg, ConstantArgument):
                    lowering.add_input(node, node.name)
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                lowering.add_constant(node, None, program.constants[str(spec.target)])
            else:
                stored = program.state_dict.get(str(spec.target))
                tensor = stored if stored is not None else program.constants[str(spec.target)]
                lowering.add_constant(node, str(spec.target), tensor)
        elif node.op == "call_function":
            lowering.lower(node)
    by_name = {node.name: node for node in program.graph.nodes}
    results = [s.arg for s in program.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    for label, argument in zip(names, results, strict=True):
        if not isinstance(argument, TensorArgument):
            raise CaptureError(f"result '{label}' does not depend on an input; return it without privet")
        if lowering.tensor(by_name[argument.name]) is not None:
            raise CaptureError(
                f"result '{label}' does not depend on an input: revealing it would reveal the model; remove it"
            )
        lowering.graph.outputs.append(Output(lowering.use(by_name[argument.name]), label))
    lowering.graph.prune()
    used = lowering.graph.parameters()
    lowering.parameters = {k: v for k, v in lowering.parameters.items() if k in used}
    return lowering


def verify(captured: Capture, inputs: dict[str, Tensor], expected: Sequence[Any]) -> None:
    """The graph must compute what the model computes; a difference is an error in privet."""
    found = evaluate(captured.graph, captured.parameters, inputs)
    for output, ours, theirs in zip(captured.graph.outputs, found, expected, strict=True):
        reference = theirs.to(torch.float64)
        scale = max(1.0, float(reference.abs().max())) if reference.numel() else 1.0
        difference = float((ours - reference).abs().max()) if reference.numel() else 0.0
        kind = captured.graph.nodes[output.node].kind
        # Nearly equal scores may have another order in float32: indices are not compared.
        if kind != "argmax" and not difference <= 1e-3 * scale:
            raise CaptureError(
                f"the captured graph gives '{output.name}' with a difference of {difference:.3g} to the model; "
                "please report this model"
            )
