"""Learning rates ahead of time: PyTorch's own scheduler, stepped before training begins."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from ..errors import UnsupportedOptimiser


def learning_rates(optimizer: torch.optim.Optimizer, scheduler: Any, count: int) -> list[list[float]]:
    """The learning rates of every parameter group before each of ``count`` steps of the scheduler.

    Optimiser and scheduler are left as they were. Raises :class:`UnsupportedOptimiser` for a scheduler that is of
    another optimiser or looks at results (``ReduceLROnPlateau``).
    """
    now = [float(g["lr"]) for g in optimizer.param_groups]
    if scheduler is None:
        return [now] * count
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        raise UnsupportedOptimiser("ReduceLROnPlateau follows results; train in parts, with another rate each")
    if scheduler.optimizer is not optimizer:
        raise UnsupportedOptimiser("the scheduler belongs to another optimizer; make it with this trainer's")
    before = scheduler.state_dict()
    groups = [dict(g) for g in optimizer.param_groups]
    found = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "lr_scheduler.step() before optimizer.step()": there is no such step here
            for _ in range(count):
                found.append([float(g["lr"]) for g in optimizer.param_groups])
                scheduler.step()
    finally:
        scheduler.load_state_dict(before)
        for group, old in zip(optimizer.param_groups, groups, strict=True):
            group.update(old)
    return found
