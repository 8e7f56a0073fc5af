"""Access to the compiled extension, with a clear error where it is missing."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import NativeMissing


def available() -> bool:
    """Whether the extension is built."""
    try:
        native()
    except NativeMissing:
        return False
    return True


def native() -> Any:
    """The extension, as ``_native.pyi`` describes it; :class:`NativeMissing` says how to build it."""
    try:
        return importlib.import_module("privet._native")
    except ImportError as error:
        raise NativeMissing(
            "the compiled part of privet (privet._native) is not there: run `make build` in a checkout, "
            f"or install a wheel for this Python ({error})"
        ) from error
