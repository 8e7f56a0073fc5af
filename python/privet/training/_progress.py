"""How far a training is: a bar on a terminal, some plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

WIDTH = 24
LINES = 10  # plain lines over the whole training


class Progress:
    """Shows steps done of all, the loss where it is known, steps a second, the time left and the keys at hand."""

    def __init__(self, total: int, done: int = 0, out: TextIO | None = None) -> None:
        self.total, self.first, self.out = total, done, out if out is not None else sys.stderr
        self.started = time.monotonic()
        self.shown = -1

    def show(self, done: int, loss: float | None, keys: Callable[[], int | None]) -> None:
        """Called after every step; ``keys`` is asked only where something is shown."""
        if self.out.isatty():
            text = self.text(done, loss, keys())
            filled = WIDTH * done // max(self.total, 1)
            end = "\n" if done == self.total else ""
            self.out.write(f"\r[{'#' * filled}{'.' * (WIDTH - filled)}] {text}\x1b[K{end}")
        elif LINES * done // max(self.total, 1) != self.shown:
            self.shown = LINES * done // max(self.total, 1)
            self.out.write(self.text(done, loss, keys()) + "\n")
        self.out.flush()

    def text(self, done: int, loss: float | None, keys: int | None) -> str:
        """``step 30/468, loss 0.5310, 1.21 steps/s, 361 s left, keys for 2 steps ready``."""
        spent = max(time.monotonic() - self.started, 1e-9)
        speed = (done - self.first) / spent
        parts = [f"step {done}/{self.total}"]
        if loss is not None:
            parts.append(f"loss {loss:.4f}")
        parts.append(f"{speed:.3g} steps/s")
        if speed > 0:
            parts.append(f"{(self.total - done) / speed:.0f} s left")
        if keys is not None:
            parts.append(f"keys for {keys} steps ready")
        return ", ".join(parts)
