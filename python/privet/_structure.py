"""The shape of a model's result: a tensor, or tuples, lists and dictionaries of tensors.

A structure is JSON: an index into the flat list of tensors, ``{"tuple": [...]}``, ``{"list": [...]}``,
``{"dict": {...}}``, or ``{"constant": ...}`` for None and plain numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from .errors import CaptureError

Structure = Any


def flatten(result: Any) -> tuple[Structure, list[Tensor], list[str]]:
    """The structure of a result, its tensors in order, and a name for each (``output``, ``output.0``, ...)."""
    tensors: list[Tensor] = []
    names: list[str] = []

    def walk(value: Any, name: str) -> Structure:
        if isinstance(value, Tensor):
            tensors.append(value)
            names.append(name or "output")
            return len(tensors) - 1
        if isinstance(value, Mapping):
            return {"dict": {str(k): walk(v, join(name, str(k))) for k, v in value.items()}}
        if isinstance(value, (tuple, list)):
            items = [walk(v, join(name or "output", str(i))) for i, v in enumerate(value)]
            return {"list" if isinstance(value, list) else "tuple": items}
        if value is None or isinstance(value, (bool, int, float)):
            return {"constant": value}
        raise CaptureError(
            f"the model returns {type(value).__name__} ({name or 'output'}); return tensors, "
            "or tuples, lists and dictionaries of tensors (of transformers, call the model with use_cache=False)"
        )

    return walk(result, ""), tensors, names


def join(name: str, part: str) -> str:
    """``logits``, ``output.0``."""
    return f"{name}.{part}" if name else part


def unflatten(structure: Structure, values: Sequence[Any]) -> Any:
    """Put flat values back into a structure."""
    if isinstance(structure, int):
        return values[structure]
    kind, content = next(iter(structure.items()))
    if kind == "constant":
        return content
    if kind == "dict":
        return {k: unflatten(v, values) for k, v in content.items()}
    items = [unflatten(v, values) for v in content]
    return items if kind == "list" else tuple(items)
