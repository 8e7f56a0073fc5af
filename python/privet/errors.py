"""Errors that privet raises. Each message names the cause and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence


class PrivetError(Exception):
    """Base of all errors raised by privet."""


class CaptureError(PrivetError):
    """The model could not be traced into a graph (data-dependent control flow, unusual inputs)."""


class UnsupportedModel(PrivetError):
    """The model uses operations that no protocol can run yet.

    ``report`` holds one entry an operation: ``op``, ``layer``, ``source``, ``what`` and ``remedy``.
    """

    def __init__(self, message: str, report: list[dict[str, str]] | None = None) -> None:
        super().__init__(message)
        self.report: list[dict[str, str]] = report or []


class UnsupportedOptimiser(PrivetError):
    """An optimiser, a setting of one, or a part of a training set-up that has no private counterpart."""


class PrecisionError(PrivetError):
    """The requested ring or fraction bits cannot hold the values seen in calibration."""


class InputError(PrivetError):
    """An input was refused before anything left this process: NaN, infinity, range or shape."""


class OutOfRange(PrivetError):
    """Inside the model a value left the range of calibration; the results of ``rows`` are not to be used."""

    def __init__(self, message: str, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.rows = list(rows)


class SessionError(PrivetError):
    """A session failed: a party or the dealer ended, a connection broke, a plan did not match."""


class TrainingDiverged(PrivetError):
    """A step's numbers left their range; what it computed is not to be used."""


class NativeMissing(PrivetError):
    """The compiled part of privet is not installed."""
