"""Builds a :class:`~privet.graph.Graph` from an exported ATen graph, one node after the other.

Handlers live in the tables of ``_ops_*.py``. Whatever depends on no input is evaluated here once and
becomes a parameter: transposed weights, normalised weights, constants written in ``forward``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import torch
from torch import fx

from ._source import layer_of, source_of
from .graph import Graph, Node, Op

Value = Union[int, torch.Tensor, "Decline", "Symbol", tuple[Any, ...], None]
"""What an ATen node stands for: a graph node's id, a constant, a refused result, something that only certain handlers
understand, several of these, or nothing."""


class Symbol:
    """A value that is no tensor of real numbers: comparison bits, dropout's coins, class labels, private ids."""

    def number(self, lo: Lowering) -> int:
        """The graph node that holds it as real numbers, where there is one."""
        raise Decline("operand is not a single tensor")


Args = dict[str, Any]
"""Arguments by the names in the operator's schema, defaults filled in."""

Handler = Callable[["Lowering", Args], Value]

HANDLERS: dict[str, Handler] = {}
"""Handlers by operator, ``aten.conv2d.default`` style."""


class Decline(Exception):
    """This use of an operator has no counterpart; the text says why and goes into the report."""


def op(*names: str, table: dict[str, Handler] = HANDLERS) -> Callable[[Handler], Handler]:
    """Enter a handler into a table under the operators' names."""

    def enter(handler: Handler) -> Handler:
        for name in names:
            if name in table:
                raise ValueError(f"{name} is in the table twice")
            table[name] = handler
        return handler

    return enter


# Constant-valued whatever the input holds: only its shape matters.
SHAPE_ONLY = {
    f"aten.{name}.default"
    for name in ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "new_empty", "empty_like")
} | {"aten.fill.Scalar"}


def bind(node: fx.Node) -> Args:
    """The arguments of a call by schema name, with defaults."""
    schema = node.target._schema  # type: ignore[union-attr]
    args: Args = {}
    for i, formal in enumerate(schema.arguments):
        if i < len(node.args):
            args[formal.name] = node.args[i]
        elif formal.name in node.kwargs:
            args[formal.name] = node.kwargs[formal.name]
        else:
            args[formal.name] = formal.default_value if formal.has_default_value() else None
    return args


def shape_of(value: Any) -> list[int]:
    """Extents as plain integers; symbolic ones were refused before."""
    return [int(d) for d in value.shape]


class Lowering:
    """The graph under construction and what each ATen node stands for."""

    def __init__(self, name: str, batch: int) -> None:
        self.graph = Graph(name, batch)
        self.parameters: dict[str, torch.Tensor] = {}
        self.handlers: Mapping[str, Handler] = HANDLERS
        self._values: dict[fx.Node, Value] = {}
        self._names: dict[int, str] = {}  # id of a constant tensor -> its parameter name
        self._literals: set[int] = set()  # ids of constants that come from no weight or buffer
        self._emitted: dict[str, int] = {}  # parameter name -> node
        self._keep: list[torch.Tensor] = []  # keeps the ids above unique
        self.coders: dict[str, Coder] = {}
        """How inputs that are no real numbers become nodes, by name."""
        self.fills: set[int] = set()
        """Products of bits and a number that only says "leave this out" (:mod:`privet._masks`)."""
        self.integers: set[str] = set()
        """Results that are whole numbers or bits."""
        self.bounds: dict[int, tuple[int, int]] = {}
        """The least and the largest value of nodes that hold whole numbers, where it is known."""
        self._node: fx.Node | None = None
        self._layer = ""
        self._source = ""

    # --- What the capture loop calls -------------------------------------------------------------

    def add_input(self, node: fx.Node, name: str, coder: Coder | None = None) -> None:
        """The data owner's tensor: real numbers, or what a coder makes of others."""
        self._node, self._layer, self._source = node, "", ""
        shape = shape_of(node.meta["val"])
        if coder is None:
            self._values[node] = self.emit({"kind": "input", "name": name}, [], shape)
            return
        self.coders[name] = coder
        self._values[node] = coder.lower(self, name, shape)

    def add_constant(self, node: fx.Node, name: str | None, tensor: torch.Tensor) -> None:
        """A weight or buffer, or without a name a literal; it reaches the graph when something uses it."""
        self._values[node] = self.constant(tensor.detach(), name)

    def assign(self, node: fx.Node, value: Value) -> None:
        """Let an ATen node stand for a value."""
        self._values[node] = value

    def lower(self, node: fx.Node) -> None:
        """Translate one call of the exported graph."""
        self._node, self._layer, self._source = node, layer_of(node), source_of(node)
        if node.target is operator.getitem:
            self._values[node] = self._item(node)
            return
        if not node.users and not self._is_constant(node):
            return  # assertions and other calls made for their effect
        if str(node.target) == "with_effects":
            self._values[node] = (None,)  # torch's own check of a result, in its order
            return
        if isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)):
            # an extent that depends on values, or a value as a Python number; who computes with it is reported
            taken = str(node.target) in TAKEN_OUT
            self._values[node] = Decline("a private value as a Python number") if taken else None
            return
        try:
            self._values[node] = self._lowered(node)
        except Decline as reason:
            self._values[node] = reason
        except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError) as error:
            # torch raises many types where a shape or a value is not known; a name in a report helps more than a trace
            self._values[node] = Decline(why(error))
        if isinstance(self._values[node], Decline):
            self._values[node] = self.unsupported(node, str(self._values[node]))

    def _lowered(self, node: fx.Node) -> Value:
        if self._is_constant(node):
            return self._fold(node)
        val = node.meta.get("val")
        if isinstance(val, torch.Tensor) and any(isinstance(n, int) and n == 0 for n in val.shape):
            return self.constant(torch.empty(shape_of(val), dtype=val.dtype))  # nothing is in it
        layout = self._layout_of_symbol(node)
        if layout is not None:
            return layout
        handler = self.handlers.get(str(node.target))
        return handler(self, bind(node)) if handler else Decline("")

    def _layout_of_symbol(self, node: fx.Node) -> Value:
        """What moves elements of a symbol that can be moved."""
        first = node.args[0] if node.args else None
        symbol = self._values.get(first) if isinstance(first, fx.Node) else None
        if isinstance(symbol, Movable) and str(node.target) in MOVES:
            return symbol.moved(self, str(node.target), bind(node))
        return None

    # --- What handlers call ----------------------------------------------------------------------

    @property
    def shape(self) -> list[int]:
        """Shape of the value being lowered."""
        assert self._node is not None
        val = self._node.meta["val"]
        return shape_of(val[0] if isinstance(val, (tuple, list)) else val)

    @property
    def result_dtype(self) -> torch.dtype:
        """Type of the value being lowered."""
        assert self._node is not None
        dtype: torch.dtype = self._node.meta["val"].dtype
        return dtype

    @property
    def operator(self) -> Any:
        """The ATen operator being lowered."""
        assert self._node is not None
        return self._node.target

    def is_read(self, result: int) -> bool:
        """Whether anything reads one of the several results of what is being lowered."""
        assert self._node is not None
        return any(u.target is operator.getitem and u.args[1] == result and u.users for u in self._node.users)

    @property
    def single_result(self) -> bool:
        """Whether the ATen node makes one tensor rather than several."""
        assert self._node is not None
        return isinstance(self._node.meta["val"], torch.Tensor)

    def name_of(self, tensor: torch.Tensor) -> str:
        """The parameter name of a constant; literals are numbered in the order of use."""
        return self._names.setdefault(id(tensor), f"constant.{len(self._names)}")

    def emit(self, op: Op, inputs: Sequence[int], shape: Sequence[int]) -> int:
        """Append a node and return its id."""
        if any(isinstance(v, float) and not math.isfinite(v) for v in op.values()):
            raise Decline("a number that is infinite or NaN")
        self.graph.nodes.append(Node(op, list(inputs), list(shape), self._layer, self._source))
        return len(self.graph.nodes) - 1

    def use(self, argument: Any) -> int:
        """The graph node of an operand; constants become parameters here."""
        value = self.value(argument)
        if isinstance(value, Decline):
            assert isinstance(argument, fx.Node)
            return self.unsupported(argument, str(value))
        if isinstance(value, torch.Tensor):
            return self._parameter(value)
        if isinstance(value, Symbol):
            return value.number(self)
        if not isinstance(value, int):
            raise Decline("operand is not a single tensor")
        return value

    def dtype(self, argument: Any) -> torch.dtype | None:
        """The operand's type in the model."""
        val = argument.meta.get("val") if isinstance(argument, fx.Node) else argument
        return val.dtype if isinstance(val, torch.Tensor) else None

    def apply(self, given: Mapping[str, torch.Tensor]) -> Any:
        """What the ATen node makes of tensors in place of some arguments, the others being constants."""
        assert self._node is not None and callable(self._node.target)
        args = {**bind(self._node), **given}
        known = fx.node.map_arg(args, lambda n: self.tensor(n))
        with torch.no_grad():
            return self._node.target(**known)

    def value(self, argument: Any) -> Value:
        """What an operand stands for."""
        if isinstance(argument, fx.Node):
            return self._values.get(argument)
        if isinstance(argument, torch.Tensor):
            return argument
        raise Decline(f"operand of type {type(argument).__name__}")

    def tensor(self, argument: Any) -> torch.Tensor | None:
        """The operand's tensor if it is known at capture."""
        value = self.value(argument)
        return value if isinstance(value, torch.Tensor) else None

    def scalar(self, argument: Any) -> float | None:
        """The operand as a public number: a Python number, or a literal of one element written in ``forward``.

        A one-element weight stays a parameter, for it belongs to the model's owner.
        """
        if isinstance(argument, (int, float)):
            return float(argument)
        tensor = self.tensor(argument)
        if tensor is not None and tensor.numel() == 1 and tensor.dim() == 0 and id(tensor) in self._literals:
            return float(tensor)
        return None

    def is_literal(self, tensor: torch.Tensor) -> bool:
        """Whether a constant is computed from nothing but the program's own numbers."""
        return id(tensor) in self._literals

    def constant(self, tensor: torch.Tensor, name: str | None = None) -> torch.Tensor:
        """Remember a constant; without a name it is a literal of the program, not the owner's secret."""
        self._keep.append(tensor)
        if name is None:
            self._literals.add(id(tensor))
        else:
            self._names[id(tensor)] = name
        return tensor

    def shape_at(self, node: int) -> list[int]:
        """Shape of a graph node."""
        return self.graph.nodes[node].shape

    def shape_arg(self, argument: Any) -> list[int]:
        """Shape of an operand that may not be in the graph yet."""
        tensor = self.tensor(argument)
        return list(tensor.shape) if tensor is not None else self.shape_at(self.use(argument))

    def unsupported(self, node: fx.Node, reason: str) -> int:
        """Keep an operation that cannot be lowered, with its operands, for the report."""
        producer = node.args[0] if node.target is operator.getitem else node
        assert isinstance(producer, fx.Node)
        name = f"{producer.target} ({reason})" if reason else str(producer.target)
        operands = []
        for a in node.all_input_nodes:
            value = self.value(a)
            if isinstance(value, (int, Decline)) or (isinstance(value, torch.Tensor) and value.numel()):
                operands.append(self.use(a))
        val = node.meta.get("val")
        if isinstance(val, (tuple, list)):
            val = val[0]
        try:
            shape = shape_of(val)
        except (RuntimeError, AttributeError, TypeError, ValueError):
            shape = []  # known only with the values
        if 0 in shape:
            shape = []  # nothing that a graph could hold
        return self.emit({"kind": "unsupported", "name": name}, operands, shape)

    # --- Inside ----------------------------------------------------------------------------------

    def _item(self, node: fx.Node) -> Value:
        source, index = node.args
        value = self.value(source)
        if isinstance(value, tuple):
            assert isinstance(index, int)
            item: Value = value[index]
            return item
        return value  # the operator behind it is unsupported already

    def _is_constant(self, node: fx.Node) -> bool:
        if str(node.target) in SHAPE_ONLY:
            return True
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            return False
        return all(isinstance(self._values.get(a), torch.Tensor) for a in node.all_input_nodes)

    def _fold(self, node: fx.Node) -> Value:
        def real(n: fx.Node) -> torch.Tensor:
            value = self._values.get(n)
            if isinstance(value, torch.Tensor):
                return value
            val = n.meta["val"]  # SHAPE_ONLY reads no element
            return torch.empty(shape_of(val), dtype=val.dtype)

        assert callable(node.target)
        args, kwargs = fx.node.map_arg(node.args, real), fx.node.map_arg(node.kwargs, real)
        target: Any = RESHAPES.get(str(node.target), node.target)
        with torch.no_grad():
            result = target(*args, **kwargs)
        if str(node.target) in EMPTY:
            result = torch.zeros_like(result)  # what is in memory is nobody's business
        if isinstance(result, torch.Tensor):
            operands = [self._values.get(a) for a in node.all_input_nodes]
            if len(operands) == 1 and str(node.target) in ALIASES:
                return operands[0]
            # A value computed from a weight is as secret as the weight; one computed from literals is a literal.
            secret = any(isinstance(v, torch.Tensor) and id(v) not in self._literals for v in operands)
            return self.constant(result, f"{node.name}.folded" if secret else None)
        return tuple(result) if isinstance(result, (tuple, list)) else None

    def _parameter(self, tensor: torch.Tensor) -> int:
        self._keep.append(tensor)
        name = self.name_of(tensor)
        if name not in self._emitted:
            stored = tensor.detach().cpu()
            if stored.dtype not in (torch.float32, torch.float64):
                stored = stored.to(torch.float32)
            self.parameters[name] = stored.clone(memory_format=torch.contiguous_format)  # later training is not ours
            self._emitted[name] = self.emit({"kind": "parameter", "name": name}, [], shape_of(tensor))
            if tensor.numel():
                lo, hi = float(stored.min()), float(stored.max())
                finite = math.isfinite(lo) and math.isfinite(hi)
                self.graph.nodes[self._emitted[name]].range = (lo, hi) if finite else None
        return self._emitted[name]


def why(error: Exception) -> str:
    """One line about an error of torch's."""
    if "data-dependent" in str(error) or "GuardOnDataDependent" in type(error).__name__ or "Sym" in str(error):
        return "a shape or a branch depends on values"
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return first[:120]


RESHAPES = {
    "aten.view.default": torch.ops.aten.reshape.default,
    "aten._unsafe_view.default": torch.ops.aten.reshape.default,
}
"""Views of constants: these may lie in memory in another order than in the trace."""

MOVES = {
    f"aten.{name}"
    for name in (
        "view.default", "_unsafe_view.default", "reshape.default", "flatten.using_ints", "unsqueeze.default",
        "squeeze.default", "squeeze.dim", "squeeze.dims", "expand.default", "slice.Tensor", "select.int",
        "clone.default", "alias.default", "contiguous.default", "detach.default", "to.dtype", "_to_copy.default",
        "to.device", "to.dtype_layout", "lift_fresh_copy.default",
    )
}  # fmt: skip
"""Operators that move elements, or change their type alone."""


class Movable(Symbol):
    """A symbol whose elements can be moved."""

    def moved(self, lo: Lowering, operator: str, a: Args) -> Value:
        """What an operator of :data:`MOVES` makes of it."""
        raise NotImplementedError


class Coder:
    """How the data owner's tensor of integers becomes the real numbers that the plan takes."""

    def lower(self, lo: Lowering, name: str, shape: list[int]) -> Value:
        """The input of the graph, and what it stands for."""
        raise NotImplementedError

    def encode(self, tensor: torch.Tensor, name: str) -> torch.Tensor:
        """The real numbers; raises :class:`~privet.errors.InputError` with the place of what is out of range."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """For the interface of a compiled model."""
        raise NotImplementedError


EMPTY = {
    f"aten.{name}"
    for name in ("empty.memory_format", "new_empty.default", "empty_like.default", "empty_strided.default")
}
"""Operators whose result is not defined."""

TAKEN_OUT = ("aten.item.default", "aten._local_scalar_dense.default")
"""What `x.item()` and `x.tolist()` become."""

ALIASES = {
    f"aten.{name}.default" for name in ("clone", "detach", "detach_", "alias", "lift_fresh", "lift_fresh_copy")
} | {"aten.contiguous.default"}
"""Operators whose result is their operand."""
