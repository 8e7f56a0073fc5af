"""The loop over batches: the same for parties and for the interpreter."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .._structure import unflatten
from ..errors import SessionError, TrainingDiverged
from ..evaluate import batches
from ._progress import Progress
from .batches import Encoder, batches_of
from .engines import Engine
from .history import Evaluation, History, LossCurve
from .joint import Loss
from .program import GUARDS, LOSS, Training
from .schedule import learning_rates

Stop = Callable[[History], bool]
"""Asked after every step: whether training is to end now."""


@dataclass(frozen=True)
class Settings:
    """What :meth:`privet.Trainer.fit` and :meth:`privet.Trainer.simulate` have in common."""

    epochs: int = 1
    steps: int | None = None
    """At most so many steps, of however many epochs."""
    scheduler: Any = None
    schedule_steps: bool = False
    """Whether the scheduler is stepped after every step rather than every epoch."""
    evaluate: Iterable[Any] | None = None
    evaluate_every: int | None = None
    """Steps between evaluations; by default an epoch's."""
    stop: Stop | None = None
    compare: bool = False
    """Whether PyTorch trains a copy in float32 on the same batches, for comparison."""
    progress: bool = True

    def total(self, each: int) -> int:
        """Steps in all, of epochs of ``each``."""
        every = self.epochs * each
        return every if self.steps is None else min(self.steps, every)

    def rates(self, optimizer: torch.optim.Optimizer, each: int) -> list[list[float]]:
        """Learning rates by group, for every step or for every epoch."""
        count = self.total(each) if self.schedule_steps else self.epochs
        return learning_rates(optimizer, self.scheduler, max(count, 1))

    def highest_rates(self, optimizer: torch.optim.Optimizer, each: int) -> list[float]:
        """The largest learning rate of each group."""
        return [max(column) for column in zip(*self.rates(optimizer, each), strict=True)]


class Companion:
    """PyTorch itself in float32 on the same batches, from the same start: what a private training is compared with."""

    def __init__(self, model: nn.Module, loss: Loss, optimizer: torch.optim.Optimizer) -> None:
        self.model, self.optimizer = copy.deepcopy((model, optimizer))
        self.model.train()
        self.loss = loss

    def step(self, batch: Sequence[Tensor], rates: Sequence[float]) -> float:
        """One step; the loss before it."""
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self.optimizer.zero_grad()
        value = self.loss(self.model(*batch[:-1]), batch[-1])
        torch.autograd.backward(value)
        self.optimizer.step()
        return float(value.detach())

    def evaluate(self, step: int, rows: Iterable[Any], loss: Loss) -> Evaluation:
        """The model as it is now, on rows."""
        self.model.eval()
        with torch.no_grad():
            scored = [(self.model(*batch[:-1]), batch[-1]) for _, batch in batches_of(rows)]
            found = score(step, scored, loss)
        self.model.train()
        return found


class Loop:
    """Steps over batches, evaluations, guards, and the loss where it is revealed."""

    def __init__(
        self, training: Training, engine: Engine, encoder: Encoder, loss: Loss, companion: Companion | None
    ) -> None:
        self.training, self.engine, self.encoder = training, engine, encoder
        self.loss, self.companion = loss, companion
        self.history = History(steps=engine.step, curve=LossCurve("private", engine.step + 1))
        if companion is not None:
            self.history.plaintext = LossCurve("plaintext", engine.step + 1)

    def run(self, loader: Any, settings: Settings) -> History:
        """All epochs, from the step that the engine has done."""
        each = len(loader)
        total, every = settings.total(each), settings.evaluate_every or each
        by_step = settings.schedule_steps
        rates = settings.rates(self.training.optimiser.source, each)
        bar = Progress(total, self.engine.step) if settings.progress else None
        started = time.monotonic()
        done = self.engine.step
        self.engine.expect("train", total - done)
        for epoch in range(done // max(each, 1), settings.epochs):
            for number, batch in batches_of(loader, skip=done - epoch * each):
                if done >= total:
                    break
                self.one(done + 1, number, batch, rates[done if by_step else epoch])
                done += 1
                self.history.seconds = time.monotonic() - started
                if bar is not None:
                    bar.show(done, self.history.losses[-1] if self.history.losses else None, self.engine.keys_left)
                if settings.evaluate is not None and (done % every == 0 or done == total):
                    self.evaluate(done, settings.evaluate)
                if settings.stop is not None and settings.stop(self.history):
                    self.history.stopped = done < total
                    return self.history
        return self.history

    def one(self, step: int, number: int, batch: Sequence[Tensor], rates: Sequence[float]) -> None:
        """One step: encode, run, look at the guards."""
        inputs = self.encoder.encode(number, batch)
        publics = self.training.optimiser.publics(step, rates)
        outputs = self.engine.run("train", inputs, publics)
        for name, limit in GUARDS.items():
            if name in outputs and round(float(outputs[name])) != 1:
                what = "a result of the model or the loss" if name == "in_range.values" else "a row of a parameter"
                raise TrainingDiverged(
                    f"training diverged in step {step}: {what} is beyond {limit:g} (in squares, for a parameter); "
                    "lower the learning rate, and go on from the last checkpoint"
                )
        self.history.steps = step
        if LOSS in outputs:
            self.history.curve.losses.append(float(outputs[LOSS]))
        if self.companion is not None and self.history.plaintext is not None:
            self.history.plaintext.losses.append(self.companion.step(batch, rates))

    def evaluate(self, step: int, rows: Iterable[Any]) -> None:
        """The model as it is now, on rows whose targets stay here."""
        kept = list(rows)
        sizes = [int(torch.as_tensor(batch[0]).shape[0]) for _, batch in batches_of(kept)]
        self.engine.expect("evaluate", sum(-(-size // self.training.evaluate.batch) for size in sizes))
        scored = [(self.predict(number, batch[:-1]), batch[-1]) for number, batch in batches_of(kept)]
        self.history.evaluations.append(score(step, scored, self.loss))
        if self.companion is not None:
            self.history.plaintext_evaluations.append(self.companion.evaluate(step, kept, self.loss))

    def predict(self, number: int, inputs: Sequence[Tensor]) -> Any:
        """The model's result on any number of rows."""
        graph = self.training.evaluate
        names = list(graph.inputs())
        given = dict(zip(names, (torch.as_tensor(t) for t in inputs), strict=True))
        parts: list[dict[str, Tensor]] = []
        for group in batches(given, graph.batch):
            checked = {n: self.encoder.numbers(f"evaluation batch {number}", n, t) for n, t in group.items()}
            parts.append(self.engine.run("evaluate", checked, {}))
        rows = next(iter(given.values())).shape[0]
        values = [torch.cat([p[o.name] for p in parts])[:rows].to(torch.float32) for o in graph.outputs]
        return unflatten(self.training.structure, values)


def score(step: int, scored: Sequence[tuple[Any, Tensor]], loss: Loss) -> Evaluation:
    """Loss (a mean over batches, by their rows) and accuracy of results beside their targets."""
    if not scored:
        raise SessionError("the evaluation's loader gave no batch")
    rows, total, right, classes = 0, 0.0, 0, True
    for result, target in scored:
        count = int(target.shape[0])
        rows += count
        total += float(loss(result, target)) * count
        if target.is_floating_point() or not isinstance(result, Tensor) or result.dim() < 2:
            classes = False
        else:
            right += int((result.argmax(1) == target).reshape(count, -1).all(1).sum())
    return Evaluation(step, rows, total / rows, right / rows if classes else None)


__all__ = ["Companion", "Loop", "Settings", "Stop"]
