"""Functions of torch, one row each: what is written in a `forward` without a module."""

from __future__ import annotations

from .cases import Build
from .matrices import PRODUCTS, REDUCTIONS
from .numbers import COMPARISONS, ORDER, POINTWISE
from .places import PLACING
from .programs import PROGRAMS

FUNCTIONS: dict[str, Build] = {
    **COMPARISONS, **ORDER, **POINTWISE, **REDUCTIONS, **PRODUCTS, **PLACING, **PROGRAMS,
}  # fmt: skip
