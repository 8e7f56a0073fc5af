"""Private machine learning for PyTorch by multi-party computation.

    private = privet.compile(model, example_inputs, calibration=images)
    private.check()                       # what is not supported, where, and what to do
    print(private.estimate(network="wan"))
    with privet.local(private) as session:
        y = session.run(x)

    with privet.Trainer(model, loss, optimizer) as trainer:
        history = trainer.fit(loader, epochs=1, evaluate=test_loader)
        model.load_state_dict(trainer.reveal())

See :func:`compile`, :class:`PrivateModel`, :func:`local`, :func:`connect`, :class:`Precision` and :class:`Trainer`.
"""

from __future__ import annotations

from .capture import Capture, capture
from .errors import (
    CaptureError,
    InputError,
    NativeMissing,
    OutOfRange,
    PrecisionError,
    PrivetError,
    SessionError,
    TrainingDiverged,
    UnsupportedModel,
    UnsupportedOptimiser,
)
from .generation import Generator, generate
from .graph import Graph
from .ladder import Ladder
from .model import PrivateModel, compile, load
from .precision import Precision
from .report import Comparison, Estimate, RunReport
from .session import Session, connect, local
from .training.estimate import TrainingEstimate
from .training.history import History
from .training.trainer import Trained, Trainer

__all__ = [
    "Capture",
    "CaptureError",
    "Comparison",
    "Estimate",
    "Generator",
    "Graph",
    "History",
    "InputError",
    "Ladder",
    "NativeMissing",
    "OutOfRange",
    "Precision",
    "PrecisionError",
    "PrivateModel",
    "PrivetError",
    "RunReport",
    "Session",
    "SessionError",
    "Trained",
    "Trainer",
    "TrainingDiverged",
    "TrainingEstimate",
    "UnsupportedModel",
    "UnsupportedOptimiser",
    "capture",
    "compile",
    "connect",
    "generate",
    "load",
    "local",
]
