"""How far a long job is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

WIDTH = 30
LINES = 4  # plain lines over the whole job


def progress(label: str, unit: str = "rows", out: TextIO | None = None) -> Callable[[int, int], None]:
    """A function to call with the amount done and the whole, as :meth:`Session.run` does."""
    stream = out if out is not None else sys.stderr
    started = time.monotonic()
    shown = -1

    def show(done: int, total: int) -> None:
        nonlocal shown
        spent = time.monotonic() - started
        left = spent / done * (total - done) if done else 0.0
        text = f"{label}: {done}/{total} {unit}, {spent:.1f} s, {left:.1f} s left"
        if stream.isatty():
            filled = WIDTH * done // max(total, 1)
            stream.write(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {text}   {chr(10) if done == total else ''}")
        elif LINES * done // max(total, 1) != shown:
            shown = LINES * done // max(total, 1)
            stream.write(text + "\n")
        stream.flush()

    return show
