"""What no handler knows is taken apart by torch's own table into operations that handlers may know."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram

from ._lowering import HANDLERS

ROUNDS = 4
"""A decomposition may give what is to be taken apart again."""

ALWAYS = ("aten.einsum.default",)
"""Notation, for which there is no handler."""


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """The program in operations that handlers know, as far as torch can say them so."""
    table = torch.export.default_decompositions()
    for _ in range(ROUNDS):
        chosen = {target: table[target] for target in unknown(program) if target in table}
        if not chosen:
            break
        program = program.run_decompositions(chosen)
    return program


def unknown(program: ExportedProgram) -> set[Any]:
    """The operators of a program without a handler."""
    targets = {n.target for n in program.graph.nodes if n.op == "call_function"}
    return {t for t in targets if isinstance(t, torch._ops.OpOverload) and str(t) not in HANDLERS}
