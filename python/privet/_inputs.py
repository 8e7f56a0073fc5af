"""What a model is called with, and how integers and bits among it become the real numbers that a plan takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn

from ._lowering import MOVES, Args, Coder, Lowering, Movable, Value
from ._ops_layers import expand_to, matmul_values, reshape_to
from .errors import CaptureError, InputError

Examples = Tensor | Sequence[Tensor] | Mapping[str, Any]
"""A tensor, one for each argument of ``forward``, or arguments by name."""


@dataclass(frozen=True)
class Call:
    """The arguments of ``forward``; what is no tensor belongs to the program."""

    args: tuple[Tensor, ...]
    named: dict[str, Any]

    @classmethod
    def of(cls, inputs: Examples, model: nn.Module | None = None) -> Call:
        """Check and copy what a user gave."""
        if isinstance(inputs, Mapping):
            args: tuple[Any, ...] = ()
            named = {str(k): v for k, v in inputs.items()}
        else:
            args, named = ((inputs,) if isinstance(inputs, Tensor) else tuple(inputs)), {}
        for i, value in enumerate(args):
            if not isinstance(value, Tensor):
                raise CaptureError(
                    f"input {i} is {type(value).__name__}; inputs must be tensors, or one mapping of names to them"
                )
        for name, value in named.items():
            if not isinstance(value, (Tensor, bool, int, float, str, type(None))):
                raise CaptureError(f"input '{name}' is {type(value).__name__}; give tensors and settings")
        call = cls(tuple(t.detach().cpu() for t in args), {k: settled(v) for k, v in named.items()})
        if not call.tensors():
            raise CaptureError("no example inputs")
        for name, tensor in call.labelled():
            if tensor.is_complex():
                raise CaptureError(f"{name} is complex; give real and imaginary parts")
        return call.without_cache(model) if model is not None else call

    def without_cache(self, model: nn.Module) -> Call:
        """Models that can return keys and values for a next call are asked not to: these are no tensors."""
        parameters = inspect.signature(model.forward).parameters
        if "use_cache" not in parameters or "use_cache" in self.named:
            return self
        position = list(parameters).index("use_cache")
        if len(self.args) > position:
            return self
        return Call(self.args, {**self.named, "use_cache": False})

    def tensors(self) -> list[Tensor]:
        """All tensors, in the order of the plan's inputs."""
        return [*self.args, *(v for v in self.named.values() if isinstance(v, Tensor))]

    def labelled(self) -> list[tuple[str, Tensor]]:
        """The same with what messages call them."""
        given = [(f"input {i}", t) for i, t in enumerate(self.args)]
        return given + [(f"input '{k}'", v) for k, v in self.named.items() if isinstance(v, Tensor)]

    def rows(self, count: int) -> Call:
        """The first row, ``count`` times."""

        def wide(t: Any) -> Any:
            return t[:1].expand(count, *t.shape[1:]).clone() if isinstance(t, Tensor) else t

        return Call(tuple(wide(t) for t in self.args), {k: wide(v) for k, v in self.named.items()})

    def copy(self) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
        """Arguments that a model may write to."""
        named = {k: v.clone() if isinstance(v, Tensor) else v for k, v in self.named.items()}
        return tuple(t.clone() for t in self.args), named

    def batch(self) -> int:
        """Extent of dimension 0, on which all inputs must agree."""
        first: tuple[str, int] | None = None
        for name, tensor in self.labelled():
            if tensor.dim() == 0 or tensor.shape[0] == 0:
                raise CaptureError(f"{name} has shape {list(tensor.shape)}; dimension 0 must be the batch, at least 1")
            if first is not None and tensor.shape[0] != first[1]:
                raise CaptureError(f"{name} has {tensor.shape[0]} rows, {first[0]} has {first[1]}")
            first = first or (name, int(tensor.shape[0]))
        assert first is not None
        return first[1]


def settled(value: Any) -> Any:
    """A tensor without its history; settings as they are."""
    return value.detach().cpu() if isinstance(value, Tensor) else value


# --- Integers ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneHot(Coder):
    """Indices into ``classes`` rows: the data owner shares one-hot rows, so that a look-up is a product."""

    classes: int
    columns: tuple[tuple[int, int, int], ...] = ()
    """Dimension, place and rows of the table, of columns that look up tables of their own."""

    def lower(self, lo: Lowering, name: str, shape: list[int]) -> Value:
        """The input has one more dimension, of 0 but for a 1."""
        return Ids(lo.emit({"kind": "input", "name": name}, [], [*shape, self.classes]), self.classes)

    def encode(self, tensor: Tensor, name: str) -> Tensor:
        """One-hot rows; an index that no row has is refused."""
        whole = whole_numbers(tensor, name)
        refuse(name, (whole < 0) | (whole >= self.classes), f"is not from 0 to {self.classes - 1}")
        for dim, place, rows in self.columns:
            column = (torch.arange(whole.shape[dim]) == place).reshape([-1] + [1] * (whole.dim() - dim - 1))
            refuse(name, (whole >= rows) & column, f"is not from 0 to {rows - 1}")
        return torch.nn.functional.one_hot(whole, self.classes).to(torch.float64)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        columns = {"columns": [list(c) for c in self.columns]} if self.columns else {}
        return {"kind": "one_hot", "classes": self.classes, **columns}


@dataclass(frozen=True)
class Bits(Coder):
    """Zeros and ones: a padding mask."""

    def lower(self, lo: Lowering, name: str, shape: list[int]) -> Value:
        """The numbers themselves."""
        node = lo.emit({"kind": "input", "name": name}, [], shape)
        lo.bounds[node] = (0, 1)
        return node

    def encode(self, tensor: Tensor, name: str) -> Tensor:
        """Refuses everything else."""
        refuse(name, (tensor != 0) & (tensor != 1), "is neither 0 nor 1, which is what the example held")
        return tensor.to(torch.float64)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "bits"}


@dataclass(frozen=True)
class Whole(Coder):
    """Whole numbers that the model computes with."""

    def lower(self, lo: Lowering, name: str, shape: list[int]) -> Value:
        """The numbers themselves."""
        return lo.emit({"kind": "input", "name": name}, [], shape)

    def encode(self, tensor: Tensor, name: str) -> Tensor:
        """As real numbers."""
        return whole_numbers(tensor, name).to(torch.float64)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": "whole"}


def coder_of(body: Mapping[str, Any] | None) -> Coder | None:
    """What ``to_dict`` wrote; nothing for real numbers."""
    if body is None:
        return None

    def one_hot() -> OneHot:
        return OneHot(int(body["classes"]), tuple((d, p, n) for d, p, n in body.get("columns", ())))

    kinds: dict[str, Callable[[], Coder]] = {"one_hot": one_hot, "bits": Bits, "whole": Whole}
    return kinds[body["kind"]]()


def whole_numbers(tensor: Tensor, name: str) -> Tensor:
    """As int64; anything else is refused."""
    if tensor.is_floating_point():
        refuse(name, tensor != tensor.round(), "is no whole number")
    return tensor.to(torch.int64)


def refuse(name: str, bad: Tensor, reason: str) -> None:
    """Raise :class:`InputError` at the first element that is bad."""
    if bool(bad.any()):
        index = torch.nonzero(bad)[0].tolist()
        raise InputError(f"input '{name}' at index {index} {reason}")


def coder_for(node: fx.Node, example: Tensor, sizes: Mapping[fx.Node, int]) -> Coder | None:
    """How an input is coded: by what it indexes, else by what the example holds."""
    if example.is_floating_point():
        return None
    columns = {u: column_of(u) for u in node.users}
    whole = [sizes[u] for u in lookups(node, [n for n, column in columns.items() if column]) if u in sizes]
    known = {(*column, sizes[u]) for n, column in columns.items() if column for u in lookups(n) if u in sizes}
    if whole or known:
        classes = min(whole) if whole else max(rows for *_, rows in known)
        return OneHot(classes, tuple(sorted(c for c in known if c[2] < classes)))
    if example.dtype == torch.bool or bool(((example == 0) | (example == 1)).all()):
        return Bits()
    return Whole()


def column_of(node: fx.Node) -> tuple[int, int] | None:
    """The dimension and the place that a node takes of an input, where it is one column."""
    if str(node.target) != "aten.select.int":
        return None
    shape = node.args[0].meta["val"].shape  # type: ignore[union-attr]
    dim = int(node.args[1]) % len(shape)  # type: ignore[arg-type]
    return dim, int(node.args[2]) % int(shape[dim])  # type: ignore[arg-type]


INDICES = {
    "aten.embedding.default": (1, 0), "aten._embedding_bag.default": (1, 0), "aten.embedding_bag.padding_idx": (1, 0),
    "aten.embedding_bag.default": (1, 0), "aten.cross_entropy_loss.default": (1, 1), "aten.nll_loss_nd.default": (1, 1),
    "aten.nll_loss.default": (1, 1), "aten.nll_loss2d.default": (1, 1), "aten.multi_margin_loss.default": (1, 1),
    "aten.gather.default": (2, None), "aten.index_select.default": (2, None),
}  # fmt: skip
"""Operators that look up: which argument is the index, and of which dimension of the first, unless another says it."""


def looked_up(node: fx.Node) -> tuple[fx.Node, int] | None:
    """The index that an operator looks up, and how many places there are; nothing where it looks up none."""
    name = str(node.target)
    if name == "aten.index.Tensor":
        indices = node.args[1]
        alone = isinstance(indices, (list, tuple)) and len(indices) == 1
        index, dim = (indices[0], 0) if alone else (None, 0)  # type: ignore[index]
    elif name in INDICES and len(node.args) > INDICES[name][0]:
        at, known = INDICES[name]
        index, dim = node.args[at], known if known is not None else int(node.args[1])  # type: ignore[arg-type]
    else:
        return None
    if not isinstance(index, fx.Node) or index.meta["val"].is_floating_point() or index.meta["val"].dtype == torch.bool:
        return None
    shape = node.args[0].meta["val"].shape  # type: ignore[union-attr]
    return (index, int(shape[dim if len(shape) > dim else 0])) if len(shape) else None


def lookups(node: fx.Node, without: Sequence[fx.Node] = ()) -> list[fx.Node]:
    """What looks up a value, moved or not."""
    found, seen, waiting = [], set(without), [node]
    while waiting:
        at = waiting.pop()
        for user in at.users:
            name, use = str(user.target), looked_up(user)
            if use is not None and use[0] is at:
                found.append(user)
            elif name in MOVES and user not in seen:
                seen.add(user)
                waiting.append(user)
    return found


@dataclass(frozen=True)
class Ids(Movable):
    """Private indices, held as one-hot rows along a last dimension."""

    node: int
    classes: int

    def number(self, lo: Lowering) -> int:
        """The indices themselves, as a product with 0, 1, 2, ..."""
        shape = lo.shape_at(self.node)[:-1]
        steps = lo.use(lo.constant(torch.arange(self.classes, dtype=torch.float32).reshape(1, -1)))
        found = lo.emit({"kind": "linear"}, [self.node, steps], [*shape, 1])
        node = reshape_to(lo, found, shape)
        lo.bounds[node] = (0, self.classes - 1)
        return node

    def equal(self, lo: Lowering, value: int) -> int:
        """1 where the index is ``value``, else 0: one column."""
        shape = lo.shape_at(self.node)[:-1]
        if not 0 <= value < self.classes:
            zero = lo.emit({"kind": "mul_scalar", "value": 0.0}, [self.equal(lo, 0)], shape)
            lo.bounds[zero] = (0, 0)
            return zero
        dim = len(shape)
        cut: dict[str, Any] = {"kind": "slice", "dim": dim, "start": value, "end": value + 1, "step": 1}
        node = reshape_to(lo, lo.emit(cut, [self.node], [*shape, 1]), shape)
        lo.bounds[node] = (0, 1)
        return node

    def look_up(self, lo: Lowering, table: int) -> int:
        """Rows of a table: ``[..., classes] x [classes, width]``."""
        rows, width = lo.shape_at(table)
        node = self.node
        shape = lo.shape_at(node)
        if rows > self.classes:
            cut: dict[str, Any] = {"kind": "slice", "dim": 0, "start": 0, "end": self.classes, "step": 1}
            table = lo.emit(cut, [table], [self.classes, width])
        elif rows < self.classes:  # another column has more
            first: dict[str, Any] = {"kind": "slice", "dim": len(shape) - 1, "start": 0, "end": rows, "step": 1}
            node = lo.emit(first, [node], [*shape[:-1], rows])
        return matmul_values(lo, node, table, [*shape[:-1], width])

    def moved(self, lo: Lowering, operator: str, a: Args) -> Value:
        """Elements move; the dimension of classes stays the last one."""
        from ._ops_shape import clamp_index, cut, pick  # these need the table that this module is entered in

        shape, rank = [*lo.shape, self.classes], len(lo.shape_at(self.node)) - 1
        if operator == "aten.slice.Tensor":
            dim = int(a["dim"]) % rank
            extent = lo.shape_at(self.node)[dim]
            start = clamp_index(a["start"], extent, 0)
            end = clamp_index(a["end"], extent, extent)
            return Ids(cut(lo, self.node, dim, start, max(start, end), int(a["step"])), self.classes)
        if operator == "aten.select.int":
            dim = int(a["dim"]) % rank
            return Ids(pick(lo, self.node, dim, int(a["index"]) % lo.shape_at(self.node)[dim]), self.classes)
        if operator == "aten.expand.default":
            return Ids(expand_to(lo, self.node, shape), self.classes)
        dtype = a.get("dtype")
        if dtype is not None and dtype.is_floating_point:
            return self.number(lo)
        if dtype == torch.bool:
            positive = lo.emit({"kind": "neg"}, [self.equal(lo, 0)], lo.shape)
            node = lo.emit({"kind": "add_scalar", "value": 1.0}, [positive], lo.shape)
            lo.bounds[node] = (0, 1)
            return node
        return Ids(reshape_to(lo, self.node, shape), self.classes)
