"""Private machine learning for PyTorch by multi-party computation.

    private = privet.compile(model, example_inputs, calibration=images)
    private.check()                       # what is not supported, where, and what to do
    print(private.estimate(network="wan"))
    with privet.local(private) as session:
        y = session.run(x)

See :func:`compile`, :class:`PrivateModel`, :func:`local`, :func:`connect` and :class:`Precision`.
"""

from __future__ import annotations

from .capture import Capture, capture
from .errors import (
    CaptureError,
    InputError,
    NativeMissing,
    PrecisionError,
    PrivetError,
    SessionError,
    UnsupportedModel,
)
from .graph import Graph
from .model import PrivateModel, compile, load
from .precision import Precision
from .report import Comparison, Estimate, RunReport
from .session import Session, connect, local

__all__ = [
    "Capture",
    "CaptureError",
    "Comparison",
    "Estimate",
    "Graph",
    "InputError",
    "NativeMissing",
    "Precision",
    "PrecisionError",
    "PrivateModel",
    "PrivetError",
    "RunReport",
    "Session",
    "SessionError",
    "UnsupportedModel",
    "capture",
    "compile",
    "connect",
    "load",
    "local",
]
