"""Batches on their way to the parties: everything that can be wrong with one is found here, and names it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..errors import InputError
from ._lowering import part_of
from .program import DATA_OWNER, Training


class Encoder:
    """Turns batches into a plan's inputs: float64, class indices as one-hot rows, every owner's rows apart.

    ``roles`` are those of this client: its batches hold only the tensors and rows that these own; none means all.
    ``limits`` gives the largest magnitude of each input by the plan.
    """

    def __init__(
        self, training: Training, limits: Mapping[str, float] | None = None, roles: Collection[str] | None = None
    ) -> None:
        self.classes = training.classes
        self.limits = dict(limits or {})
        inputs = training.train.inputs()
        self.parts: dict[str, list[tuple[str, int]]] = {}
        """By tensor of a batch, the plan's inputs that it is cut into, with their rows."""
        for name in training.names:
            shares = training.shares.get(name, ((DATA_OWNER, training.train.batch),))
            mine = [(part_of(name, shares, role), rows) for role, rows in shares if roles is None or role in roles]
            if mine and mine[0][0] in inputs:
                self.parts[name] = mine
        self.shapes = {part: inputs[part].shape for mine in self.parts.values() for part, _ in mine}

    def encode(self, number: int, batch: Sequence[Any]) -> dict[str, Tensor]:
        """The inputs of batch ``number`` by name. Raises :class:`InputError`, which never shows a value."""
        where = f"batch {number}"
        if len(batch) != len(self.parts):
            names = ", ".join(self.parts)
            raise InputError(f"{where} has {len(batch)} tensors; a step takes {len(self.parts)}: {names}")
        found = {}
        for (name, parts), value in zip(self.parts.items(), batch, strict=True):
            tensor = torch.as_tensor(value).detach().cpu()
            rows = sum(count for _, count in parts)
            if tensor.dim() and tensor.shape[0] != rows:
                raise InputError(
                    f"{where} has {tensor.shape[0]} rows, a step takes {rows}: give the DataLoader drop_last=True"
                )
            classes = self.classes.get(name)
            made = self.numbers(where, name, tensor) if classes is None else self.labels(where, name, tensor, classes)
            wanted = [rows, *self.shapes[parts[0][0]][1:]]
            if list(made.shape) != wanted:
                raise InputError(f"'{name}' of {where} has shape {list(tensor.shape)}; a step takes {wanted}")
            cut = torch.split(made, [count for _, count in parts])
            found.update({part: rows for (part, _), rows in zip(parts, cut, strict=True)})
        return found

    def numbers(self, where: str, name: str, tensor: Tensor) -> Tensor:
        """Real numbers: finite and within the plan's limit."""
        if tensor.is_complex():
            raise InputError(f"'{name}' of {where} is complex; inputs are real numbers")
        numbers = tensor.to(torch.float64).contiguous()
        first_bad(~torch.isfinite(numbers), f"'{name}' of {where}", "is NaN or infinite")
        if name in self.limits:
            limit = self.limits[name]
            first_bad(numbers.abs() > limit, f"'{name}' of {where}", f"exceeds {limit:g} in magnitude")
        return numbers

    def labels(self, where: str, name: str, tensor: Tensor, classes: int) -> Tensor:
        """Class indices as one-hot rows, the classes along dimension 1."""
        if tensor.is_floating_point() or tensor.dtype == torch.bool:
            raise InputError(f"'{name}' of {where} is {tensor.dtype}; class indices are whole numbers (int64)")
        outside = (tensor < 0) | (tensor >= classes)
        first_bad(outside, f"'{name}' of {where}", f"is no class: they are 0 to {classes - 1}")
        return F.one_hot(tensor.long(), classes).movedim(-1, 1).to(torch.float64).contiguous()


def first_bad(bad: Tensor, what: str, reason: str) -> None:
    """Raise :class:`InputError` at the first element that is bad."""
    if bool(bad.any()):
        raise InputError(f"{what}, index {torch.nonzero(bad)[0].tolist()}, {reason}")


def batches_of(loader: Iterable[Any], skip: int = 0) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """A loader's batches with their numbers, counted from 0; the first ``skip`` are left out."""
    for number, batch in enumerate(loader):
        if number >= skip:
            yield number, tuple(batch)
