"""Traces a model in evaluation mode and lowers it to privet's graph.

``torch.export`` gives an ATen graph. Functionalising it (``run_decompositions({})``, an empty table) removes
in-place writes and views but keeps composite operations such as softmax or pooling whole, which is what the
protocols want. What no handler knows is taken apart by torch's own table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument

from . import (
    _ops_angle,
    _ops_attention,
    _ops_compare,
    _ops_convolution,
    _ops_count,
    _ops_distance,
    _ops_gather,
    _ops_layers,
    _ops_loss,
    _ops_norm,
    _ops_order,
    _ops_pointwise,
    _ops_pool,
    _ops_resample,
    _ops_round,
    _ops_scan,
    _ops_scatter,
    _ops_shape,
    _ops_smooth,
    _ops_tables,
)
from ._decompose import decomposed
from ._explain import explain
from ._inputs import Call, Examples, coder_for, looked_up
from ._lowering import Coder, Lowering
from ._masks import masks_of, settle
from ._scales import widen
from ._structure import Structure, flatten
from .errors import CaptureError, InputError
from .evaluate import calibrate, evaluate
from .graph import Graph, Output

OPERATIONS = (
    _ops_angle, _ops_attention, _ops_compare, _ops_convolution, _ops_count, _ops_distance, _ops_gather, _ops_layers,
    _ops_loss, _ops_norm, _ops_order, _ops_pointwise, _ops_pool, _ops_resample, _ops_round, _ops_scan, _ops_scatter,
    _ops_shape, _ops_smooth, _ops_tables,
)  # fmt: skip
"""The modules whose handlers make up the table of operations."""


@dataclass
class Capture:
    """A traced model: the graph, its parameters by name, how its results are nested, and inputs that are coded."""

    graph: Graph
    parameters: dict[str, Tensor]
    structure: Structure
    coders: dict[str, Coder] = field(default_factory=dict)
    integers: set[str] = field(default_factory=set)
    """The results that are whole numbers or bits."""

    def encode(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        """What the graph takes for what the model takes; :class:`InputError` where an integer is out of range."""
        pairs = zip(self.graph.inputs(), tensors, strict=True)
        return {n: self.coders[n].encode(t, n) if n in self.coders else t for n, t in pairs}


def capture(
    model: nn.Module,
    example_inputs: Examples,
    *,
    name: str | None = None,
    calibration: Examples | None = None,
) -> Capture:
    """Lower ``model`` to a :class:`Graph` for inputs of the shapes of ``example_inputs``.

    ``calibration`` gives rows (any number; default: the example inputs) on which the range of every
    intermediate value is recorded. Operations without a counterpart become ``unsupported`` nodes. The graph is
    run once on the example inputs and compared with the model, so a capture that returns is faithful.
    Raises :class:`CaptureError` when the model cannot be traced.
    """
    call = Call.of(example_inputs, model)
    rows = call.batch()
    with evaluation_mode(model), torch.no_grad():
        program = trace(model, call)
        args, named = call.copy()
        result = model(*args, **named)
    structure, expected, names = flatten(result)

    lowering = lower_program(name or type(model).__name__.lower(), rows, program, names, call)
    captured = Capture(lowering.graph, lowering.parameters, structure, lowering.coders, lowering.integers)
    if captured.graph.unsupported():
        return captured
    masks = masks_of(captured.graph, captured.parameters, lowering.fills)
    if captured.graph.unsupported():
        return captured
    given = encoded(captured, call)
    tolerance = tolerance_of(program)
    try:
        verify(captured, given, expected, tolerance)
    except CaptureError:
        # Eager mode may take a fast path that the trace does not: what is captured is the trace.
        with torch.no_grad():
            args, named = call.copy()
            verify(captured, given, flatten(program.module()(*args, **named))[1], tolerance)
    seen = call if calibration is None else Call.of(calibration, model)
    calibration_rows(captured, call, seen)
    given = encoded(captured, seen)
    calibrate(captured.graph, captured.parameters, given)
    if masks:
        settle(captured.graph, captured.parameters, masks)
        calibrate(captured.graph, captured.parameters, given)
    if widen(captured.graph, captured.parameters):
        calibrate(captured.graph, captured.parameters, given)
    return captured


def encoded(captured: Capture, call: Call) -> dict[str, Tensor]:
    """The inputs of the graph; an example that is out of range is an error of the capture."""
    try:
        return captured.encode(call.tensors())
    except InputError as error:
        raise CaptureError(f"of the examples: {error}") from error


def calibration_rows(captured: Capture, call: Call, seen: Call) -> None:
    """Refuse calibration inputs that do not fit to the examples."""
    if len(seen.tensors()) != len(call.tensors()):
        raise CaptureError(f"{len(seen.tensors())} calibration tensors for a model of {len(call.tensors())} inputs")
    for given, example, label in zip(seen.tensors(), call.tensors(), captured.graph.inputs(), strict=True):
        if given.shape[1:] != example.shape[1:]:
            got, wanted = list(given.shape[1:]), list(example.shape[1:])
            raise CaptureError(f"calibration rows of '{label}' have shape {got}, the example's {wanted}")
        if not bool(torch.isfinite(given).all()):
            raise CaptureError(f"calibration input '{label}' holds NaN or infinity")


def rebatch(model: nn.Module, example_inputs: Examples, captured: Capture, batch: int) -> Graph:
    """The graph of the same model for another number of rows, with the ranges of ``captured``.

    The model is traced again, not run: only shapes depend on the batch. Raises :class:`CaptureError` where the model
    itself takes another course with other rows.
    """
    call = Call.of(example_inputs, model).rows(batch)
    with evaluation_mode(model), torch.no_grad():
        program = trace(model, call)
    names = [o.name for o in captured.graph.outputs]
    graph = lower_program(captured.graph.name, batch, program, names, call).graph
    if [n.kind for n in graph.nodes] != [n.kind for n in captured.graph.nodes]:
        raise CaptureError(f"the model computes something else with {batch} rows than with {captured.graph.batch}")
    for node, known in zip(graph.nodes, captured.graph.nodes, strict=True):
        node.range = known.range
        if node.kind in ("mul_scalar", "add_scalar", "parameter"):
            node.op = known.op  # what a mask subtracts, and factors of small values, are chosen with the ranges
    return graph


# --- Steps -------------------------------------------------------------------------------------------


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


def trace(model: nn.Module, call: Call | tuple[Tensor, ...]) -> ExportedProgram:
    """The functional ATen graph, composite operations whole where a handler knows them."""
    given = call if isinstance(call, Call) else Call(call, {})
    try:
        program: ExportedProgram = torch.export.export(model, given.args, given.named).run_decompositions({})
        return decomposed(program)
    except Exception as error:  # torch raises many types here; all mean that the trace failed
        raise CaptureError(explain(model, error)) from error


def lower_program(name: str, rows: int, program: ExportedProgram, names: Sequence[str], call: Call) -> Lowering:
    """Walk the exported graph in order; ``names`` are those of its results that are tensors."""
    lowering = Lowering(name, rows)
    inputs = {s.arg.name: s for s in program.graph_signature.input_specs if hasattr(s.arg, "name")}
    examples = iter(call.tensors())
    sizes = tables(program)
    for node in program.graph.nodes:
        if node.op == "placeholder":
            spec = inputs[node.name]
            if spec.kind is InputKind.TOKEN:  # torch's own order of calls made for their effect
                lowering.assign(node, None)
            elif spec.kind is InputKind.USER_INPUT:
                if not isinstance(spec.arg, ConstantArgument):
                    lowering.add_input(node, node.name, coder_for(node, next(examples), sizes))
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                lowering.add_constant(node, None, program.constants[str(spec.target)])
            else:
                lowering.add_constant(node, str(spec.target), tensor_of(program, str(spec.target)))
        elif node.op == "call_function":
            lowering.lower(node)
        elif node.op == "get_attr":
            lowering.assign(node, None)
    by_name = {node.name: node for node in program.graph.nodes}
    results = [s.arg for s in program.graph_signature.output_specs if s.kind is OutputKind.USER_OUTPUT]
    tensors = [argument for argument in results if isinstance(argument, TensorArgument)]
    for label, argument in zip(names, tensors, strict=True):
        if lowering.tensor(by_name[argument.name]) is not None:
            raise CaptureError(
                f"result '{label}' does not depend on an input: revealing it would reveal the model; remove it"
            )
        lowering.graph.outputs.append(Output(lowering.use(by_name[argument.name]), label))
        if not by_name[argument.name].meta["val"].is_floating_point():
            lowering.integers.add(label)
    place = lowering.graph.prune()
    lowering.fills = {place[i] for i in lowering.fills if i in place}
    used = lowering.graph.parameters()
    lowering.parameters = {k: v for k, v in lowering.parameters.items() if k in used}
    return lowering


def tensor_of(program: ExportedProgram, name: str) -> Tensor:
    """A weight or buffer by its name."""
    stored: Tensor | None = program.state_dict.get(name)
    tensor: Tensor = stored if stored is not None else program.constants[name]
    return tensor


def tables(program: ExportedProgram) -> dict[fx.Node, int]:
    """How many rows or classes there are where something is looked up or a label is read."""
    found = ((n, looked_up(n)) for n in program.graph.nodes)
    return {n: use[1] for n, use in found if use is not None}


def tolerance_of(program: ExportedProgram) -> float:
    """How far a faithful graph may be from the model, relative to its results: the trace may compute in 16 bits."""
    values = [n.meta.get("val") for n in program.graph.nodes]
    kinds = {v.dtype for v in values if isinstance(v, Tensor) and v.is_floating_point()}
    return max([1e-3, *(16 * torch.finfo(k).eps for k in kinds)])


def verify(captured: Capture, inputs: dict[str, Tensor], expected: Sequence[Any], tolerance: float = 1e-3) -> None:
    """The graph must compute what the model computes; a difference is an error in privet."""
    found = evaluate(captured.graph, captured.parameters, inputs)
    if rounds(captured.graph):
        # On the border of whole numbers float64 and the model's own type may go apart.
        near = evaluate(captured.graph, captured.parameters, inputs, dtype=torch.float32)
        pairs = zip(found, near, expected, strict=True)
        found = [min((ours, single), key=lambda v, t=theirs: gap(v, t)) for ours, single, theirs in pairs]  # type: ignore[misc]
    for output, ours, theirs in zip(captured.graph.outputs, found, expected, strict=True):
        reference = theirs.to(torch.float64)
        if not bool(torch.isfinite(reference).all()):
            raise CaptureError(
                f"the model itself gives '{output.name}' with NaN or infinity{first_without_number(captured, inputs)};"
                " give other example inputs"
            )
        scale = max(1.0, float(reference.abs().max())) if reference.numel() else 1.0
        difference = gap(ours, reference)
        kind = captured.graph.nodes[output.node].kind
        # Nearly equal scores may have another order in float32: indices are not compared.
        if kind != "argmax" and output.name not in captured.integers and not difference <= tolerance * scale:
            raise CaptureError(
                f"the captured graph gives '{output.name}' with a difference of {difference:.3g} to the model; "
                "please report this model"
            )


def gap(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of two results."""
    return float((ours.to(torch.float64) - theirs.to(torch.float64)).abs().max()) if theirs.numel() else 0.0


def rounds(graph: Graph) -> bool:
    """Whether a value is rounded to whole numbers."""
    return any(node.op.get("function") == "floor" for node in graph.nodes)


def first_without_number(captured: Capture, inputs: dict[str, Tensor]) -> str:
    """The operation that first gives NaN or infinity, and its place in the model."""
    graph, bad = captured.graph, []

    def see(node: int, value: Tensor) -> None:
        if not bool(torch.isfinite(value).all()):
            bad.append(node)

    evaluate(graph, captured.parameters, inputs, see=see)
    if not bad:
        return ""
    node = graph.nodes[bad[0]]
    name = node.op.get("function", node.kind)
    where = f" in {node.layer}" if node.layer else ""
    return f", first by {name if isinstance(name, str) else next(iter(name))}{where} at {node.source}"
