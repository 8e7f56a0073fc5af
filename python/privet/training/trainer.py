"""Private training of an ordinary PyTorch set-up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from ..aim import Aim, Network, network_profile
from ..errors import PrivetError, SessionError, UnsupportedModel
from ..native import available, native
from ..precision import Precision
from ..protocols import choose_training
from ..report import Estimate, RunReport
from .batches import Encoder
from .engines import Engine, Simulated, plain
from .estimate import TrainingEstimate
from .history import History
from .joint import Loss
from .loop import Companion, Loop, Settings
from .parties import LocalParties, Parties, dial
from .program import Training, capture_training, trained_state

PROGRAM_VERSION = 1


@dataclass(frozen=True)
class Trained:
    """What :meth:`Trainer.simulate` gives: how it went, and the trained model's ``state_dict``."""

    history: History
    state_dict: dict[str, Tensor]


class Trainer:
    """Trains a model on data that no party sees.

        trainer = privet.Trainer(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.01))
        with trainer:
            history = trainer.fit(loader, epochs=1, evaluate=test_loader)
            model.load_state_dict(trainer.reveal())

    Args:
        model: Any module that ``torch.export`` can trace in training mode. It stays as it is: training changes
            the parties' shares.
        loss: A module or function of the model's result and the target to one number.
        optimizer: A ``torch.optim`` optimiser over the model's parameters (SGD, Adam, AdamW), whose settings are used.
        protocol: ``fss``, ``rep3`` or ``semi2k``; see :func:`privet.compile`.
        security: What the protocol has to withstand; see :func:`privet.compile`.
        precision: Ring and fraction bits; by default 64 and 24 with stochastic rounding.
        reveal_loss: Whether the receiver learns every step's loss. Otherwise it learns only whether numbers are in
            range, and no logarithm is computed.
        example: A batch; by default the first one of the loader. All batches have its shapes.
        rows: The rows of a batch that each of several data owners has: ``{"data_owner": 64, "data_owner.2": 64}``.
        target_owner: The role that has the targets, where the data owners do not have them: ``"label_owner"``.
        name: For reports; by default the model's class.
        network: What lies between the parties; see :func:`privet.compile`.
        max_key_bytes: Most key bytes that a step, or the evaluation of a batch, may use up at one party.
        parties: How many compute, where the protocol leaves that open; see :func:`privet.compile`.
        parameters: What local parties' deployment sets of the protocol; see :func:`privet.local`.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        optimizer: torch.optim.Optimizer,
        protocol: str = "fss",
        security: str | None = None,
        precision: Precision | None = None,
        reveal_loss: bool = True,
        *,
        example: Sequence[Tensor] | None = None,
        rows: Mapping[str, int] | None = None,
        target_owner: str | None = None,
        name: str | None = None,
        network: Network = "lan",
        max_key_bytes: int | None = None,
        parties: int | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> None:
        self.family, self.security = choose_training(protocol, security)
        self.count, self.parameters = self.family.count(parties), dict(parameters or {})
        self._aim = Aim.of(network, max_key_bytes)
        self.model, self.loss, self.optimizer = model, loss, optimizer
        self.precision = precision or Precision(rounding="stochastic")
        self.reveal_loss = reveal_loss
        self.name, self.rows, self.target_owner = name, rows, target_owner
        self._roles: tuple[str, ...] | None = None
        self.notes: list[str] = []
        """What the planner did."""
        self._training: Training | None = None
        self._plans: dict[str, str] = {}
        self._parties: Parties | None = None
        self._opened = ExitStack()
        if example is not None:
            self.prepare(example)

    def __repr__(self) -> str:
        """Names only."""
        state = "not captured yet" if self._training is None else f"batch={self._training.train.batch}"
        return (
            f"Trainer({type(self.model).__name__}, protocol={self.family.name!r}, security={self.security!r}, {state})"
        )

    # --- Before training -----------------------------------------------------------------------------

    def prepare(self, batch: Sequence[Tensor], highest: Sequence[float] | None = None) -> Training:
        """Capture a step for batches of these shapes, once; what :meth:`fit` does with the loader's first batch.

        ``highest`` is the largest learning rate that each parameter group will have; by default its present one.
        Raises :class:`CaptureError` and :class:`UnsupportedOptimiser`.
        """
        if self._training is None:
            self._training = capture_training(
                self.model,
                self.loss,
                self.optimizer,
                batch,
                name=self.name,
                reveal_loss=self.reveal_loss,
                highest=highest,
                rows=self.rows,
                target_owner=self.target_owner,
            )
        return self._training

    def check(self) -> list[dict[str, str]]:
        """Every operation that cannot run privately: ``op``, ``layer``, ``source``, ``what`` and ``remedy`` each."""
        training = self._captured()
        problems: list[dict[str, str]] = []
        if available():
            for graph in training.graphs().values():
                problems += [dict(p) for p in native().check(graph.to_json()) if dict(p) not in problems]
            return problems
        return [
            {
                "op": n.op["name"],
                "layer": n.layer,
                "source": n.source,
                "what": "no private implementation",
                "remedy": "rewrite it with supported operations",
            }
            for n in training.unsupported()
        ]

    @property
    def program(self) -> str:
        """The program as JSON: the plans ``train``, ``evaluate`` and ``reveal``; public.

        Raises :class:`UnsupportedModel` and :class:`PrecisionError`.
        """
        training = self._captured()
        plans = [{"name": name, "plan": json.loads(self._plan(name))} for name in training.graphs()]
        return json.dumps({"version": PROGRAM_VERSION, "name": training.train.name, "plans": plans})

    def estimate(
        self, batches: int | None = None, network: Network = "lan", *, local: bool = False
    ) -> TrainingEstimate:
        """Predicted bytes, rounds, keys and seconds of a step; with ``batches``, of an epoch of so many.

        ``local`` is for all parties on one machine like this one: they share its cores.
        """

        def predict(name: str) -> Estimate:
            plan, profile = self._plan(name), network_profile(network)
            family = (self.family.name, self.security)
            return Estimate(json.loads(native().estimate(plan, profile, *family, local, self.count, self._set())))

        return TrainingEstimate(predict("train"), predict("evaluate"), batches)

    # --- Training ------------------------------------------------------------------------------------

    def simulate(
        self,
        loader: Any,
        epochs: int = 1,
        *,
        steps: int | None = None,
        seed: int | None = None,
        **settings: Any,
    ) -> Trained:
        """Train with the integers of a private run, in this process and without privacy.

        Args:
            loader: Batches; inputs, then the target. A ``DataLoader`` needs ``drop_last=True``.
            epochs: How often to go through the loader.
            steps: At most so many steps.
            seed: Makes rounding and dropout reproducible.
            settings: As for :meth:`fit`: ``scheduler``, ``evaluate``, ``compare``, ...
        """
        chosen = Settings(epochs=epochs, steps=steps, **settings)
        training = self._begin(loader, chosen)
        engine = Simulated(self.program, training.states, seed)
        history = self._loop(engine, chosen).run(loader, chosen)
        return Trained(history, trained_state(self.model, engine.run("reveal", {}, {}), engine.step))

    def fit(
        self,
        loader: Any,
        epochs: int = 1,
        *,
        steps: int | None = None,
        checkpoint_every: int = 0,
        resume: bool = False,
        directory: str | Path | None = None,
        **settings: Any,
    ) -> History:
        """Train by the parties: those of :meth:`connect`, or else processes on this machine.

        Args:
            loader: Batches; inputs, then the target. A ``DataLoader`` needs ``drop_last=True``. With ``resume`` it has
                to give the batches of an epoch in the same order as before.
            epochs: How often to go through the loader.
            steps: At most so many steps.
            checkpoint_every: Steps between checkpoints at every party; 0 for none.
            resume: Go on with the training of ``directory`` from its last checkpoint that all parties have.
            directory: Where local processes keep keys, logs and checkpoints; by default a temporary folder.
            settings: ``scheduler``, a torch scheduler, stepped after every epoch or with ``schedule_steps=True`` every
                step; ``evaluate``, a loader of rows whose targets stay with the receiver, after every epoch or
                ``evaluate_every`` steps; ``stop``, a function of the :class:`History` so far that is asked after
                every step; ``compare=True`` to train a plaintext copy on the same batches; ``progress=False``.

        Raises :class:`InputError` for a batch that cannot be shared, :class:`SessionError` when a party fails, and
        :class:`TrainingDiverged` where numbers leave their range.
        """
        chosen = Settings(epochs=epochs, steps=steps, **settings)
        if resume and chosen.compare:
            raise ValueError("compare=True needs a training from its start; a resumed one has no plaintext beside it")
        training = self._begin(loader, chosen)
        if self._parties is None:
            self._open(Path(directory) if directory is not None else None)
        assert self._parties is not None
        if resume:
            self._parties.resume()
        elif self._parties.step == 0:
            self._parties.begin(training.states, checkpoint_every)
        return self._loop(self._parties, chosen).run(loader, chosen)

    def reveal(self, to: str = "model-owner") -> dict[str, Tensor]:
        """The trained model's ``state_dict``, which only the model's owner learns."""
        if to not in ("model-owner", "model_owner"):
            raise ValueError(f"the trained model is the model owner's; it is not revealed to '{to}'")
        if self._parties is None:
            raise PrivetError("nothing has been trained yet: call fit first")
        revealed = self._parties.run("reveal", {}, {})
        return trained_state(self.model, revealed, self._parties.step)

    def report(self) -> RunReport | None:
        """What all steps so far did cost, and what each party learned."""
        return None if self._parties is None else self._parties.report()

    @contextmanager
    def connect(
        self, deployment: str | Path, *, node: str | Path | None = None, roles: Sequence[str] | None = None
    ) -> Iterator[Trainer]:
        """Use running parties on other hosts, as ``deployment.toml`` names them; they must have :attr:`program`.

        Args:
            deployment: The file that all participants share.
            node: This client's own settings (certificate and key); by default ``node.toml`` beside the deployment.
            roles: This client's roles, where it is one of several owners: its loader gives only the tensors and rows
                that are theirs. By default all.
        """
        self._roles = None if roles is None else tuple(roles)
        own = Path(node) if node is not None else Path(deployment).parent / "node.toml"
        if not own.is_file():
            raise SessionError(f"{own} is not there: make it with `privet init`, or give node=")
        client = dial(own, self.program, self.family.name, self.security)
        owns = roles is None or "model_owner" in roles
        self._parties = Parties(
            client,
            own.parent / "training.json",
            self.family.uses_up is not None,
            owns_model=owns,
            streams=self.family.streams,
        )
        try:
            yield self
        finally:
            self.close()

    def close(self) -> None:
        """Hang up, and end local processes. Doing so twice is harmless."""
        self._parties = None
        self._opened.close()

    def __enter__(self) -> Trainer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- Inside --------------------------------------------------------------------------------------

    def _captured(self) -> Training:
        if self._training is None:
            raise PrivetError("no batch has been seen yet: give Trainer(..., example=batch), or call prepare(batch)")
        return self._training

    def _begin(self, loader: Any, settings: Settings) -> Training:
        """The captured training, whose rates may be as high as the schedule's."""
        highest = settings.highest_rates(self.optimizer, len(loader))
        if self._training is None:
            first = next(iter(loader), None)
            if first is None:
                raise PrivetError("the loader gives no batch; with drop_last=True it needs as many rows as one has")
            return self.prepare(tuple(first), highest)
        known = self._training.optimiser.highest
        if any(new > old for new, old in zip(highest, known, strict=True)):
            raise PrivetError(
                f"the schedule has learning rates up to {max(highest):g}, the plan was made for {max(known):g}: make "
                "the optimizer with the highest one, or this trainer without an example"
            )
        return self._training

    def _open(self, directory: Path | None) -> None:
        """Start local parties, in a folder that has them already or a new one."""
        chosen = (self.count, self.parameters)
        local = LocalParties(directory, self.family, self.security, self.program, *chosen)
        self._parties = self._opened.enter_context(local)

    def _loop(self, engine: Engine, settings: Settings) -> Loop:
        training = self._captured()
        encoder = Encoder(training, self._limits("train"), self._roles)
        companion = Companion(self.model, self.loss, self.optimizer) if settings.compare else None
        return Loop(training, engine, encoder, self.loss, companion)

    def _limits(self, plan: str) -> dict[str, float]:
        ops = [node["op"] for node in json.loads(self._plan(plan))["nodes"]]
        return {op["name"]: float(op["limit"]) for op in ops if op["kind"] == "input"}

    def _set(self) -> list[tuple[str, str]]:
        return [(name, str(value)) for name, value in self.parameters.items()]

    def _plan(self, name: str) -> str:
        if name not in self._plans:
            training = self._captured()
            graph = training.graphs()[name]
            if training.unsupported():
                problems = self.check()
                lines = [f"- {p['op']} in '{p['layer']}' at {p['source']}: {p['remedy']}" for p in problems]
                raise UnsupportedModel(
                    "\n".join([f"{len(problems)} operations of this training cannot run privately:", *lines]), problems
                )
            precision = json.dumps({**json.loads(self.precision.to_json()), "keep_ring": True}, sort_keys=True)
            states = save_tensors(plain({n: training.states[n] for n in graph.states()}))
            family = (self.family.name, self.security)
            aim = astuple(self._aim)
            plan, _, notes = native().lower(graph.to_json(), states, precision, *family, aim, self.count, self._set())
            self._plans[name] = plan
            self.notes += [n for n in notes if n not in self.notes]
        return self._plans[name]
