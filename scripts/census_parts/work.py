"""Runs rows in processes of their own: one that ends, or takes too long, is one row and not the end of the census."""

from __future__ import annotations

import logging
import multiprocessing
import os
import warnings
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection

from .groups import LARGE, groups
from .judge import LATE, Row, judge

Key = tuple[str, str]
"""Group and name of a row."""


def work(jobs: Connection) -> None:
    """In a process of its own: judge what is asked for, until nothing more is."""
    silent = os.open(os.devnull, os.O_WRONLY)  # torch prints graphs that it cannot trace
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    known = groups()
    while (key := jobs.recv()) is not None:
        group, name = key
        jobs.send(judge(group, name, known[group][name]))


class Worker:
    """A process that judges one row after the other."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.jobs, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def row(self, key: Key, limit: float) -> Row:
        """What became of a row; none where the process ended or the time is over, and then the process is gone."""
        try:
            self.jobs.send(key)
            if self.jobs.poll(limit):
                row: Row = self.jobs.recv()
                return row
            reason = f"longer than {limit:.0f} s"
        except (EOFError, OSError):
            self.process.join(5)
            reason = f"the process ended with {self.process.exitcode}"
        self.end()
        return Row(*key, LATE, reason)

    def end(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.join()
        self.jobs.close()

    @property
    def there(self) -> bool:
        """Whether it can take another row."""
        return self.process.is_alive()


def rows(keys: Iterable[Key], limit: float) -> Iterator[Row]:
    """One row after the other, as they are judged."""
    worker: Worker | None = None
    for key in keys:
        if worker is None or not worker.there:
            worker = Worker()
        yield worker.row(key, limit)
        if key[0] in LARGE and worker.there:
            worker.end()
    if worker is not None and worker.there:
        worker.end()
