"""Generation: the data's owner gives a prompt, the receiver gets one token after the other, nobody sees either."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from .._processes import Processes
from ..aim import Aim, Network, network_profile
from ..errors import InputError
from ..model import DEFAULT_PROTOCOL, write_secret
from ..native import native
from ..precision import Precision
from ..protocols import choose
from ..report import Estimate
from ..training.parties import Guard
from .decoder import decoder_of
from .engines import Engine, Parties, Simulated
from .steps import MASKED, NOISE, READ, SCORES, TOKEN, Plan, empty, encoded, plan_of

HOTTEST = 5.0
"""Highest temperature: the largest noise times this is within what the plan takes."""


class Generator:
    """A language model as two plans: one reads a chunk of a prompt, one takes a token and gives the next one.

    Args:
        model: A causal model of ``transformers`` (GPT-2, Llama, Qwen, Mistral and the like, with eager attention), or a
            :class:`Decoder`.
        window: Tokens whose keys and values are kept. Later ones push the earliest out.
        chunk: Tokens of the prompt that are read in one run.
        protocol, security, network, parties, parameters: As for :func:`privet.compile`.
        top: Only the so many most likely tokens are sampled from; ``None`` for all.
        precision: 64 ring bits and 24 fraction bits where not given, as in training: values stay below 2^14.

    Raises what :func:`privet.compile` raises.
    """

    def __init__(
        self,
        model: nn.Module,
        window: int,
        *,
        chunk: int = 8,
        protocol: str = DEFAULT_PROTOCOL,
        security: str | None = None,
        top: int | None = None,
        precision: Precision | None = None,
        network: Network = "lan",
        parties: int | None = None,
        parameters: Mapping[str, str | int] | None = None,
    ) -> None:
        self.decoder = decoder_of(model).eval()
        if window < 1 or chunk < 1:
            raise ValueError(f"a window of {window} tokens read by {chunk}; both are at least 1")
        if top is not None and not 1 <= top <= self.decoder.vocabulary:
            raise ValueError(f"the {top} most likely of {self.decoder.vocabulary} tokens")
        self.window, self.chunk = window, chunk
        self.family, self.security = choose(protocol, security)
        self.count, self.parameters = parties, dict(parameters or {})
        self._chosen = (parties, [(k, str(v)) for k, v in self.parameters.items()])
        aim, family = Aim.of(network, None), (self.family.name, self.security)
        numbers = precision or Precision(bits=64, fraction=24)
        self.plans: dict[str, Plan] = {
            name: plan_of(self.decoder, name, (window, count), top, numbers, family, aim, self._chosen)
            for name, count in ((TOKEN, 1), (READ, chunk))
        }

    def __repr__(self) -> str:
        """Sizes; never weights."""
        return f"Generator(window={self.window}, chunk={self.chunk}, protocol={self.family.name!r})"

    @property
    def program(self) -> str:
        """Both plans as JSON; public."""
        plans = [{"name": name, "plan": json.loads(plan.text)} for name, plan in self.plans.items()]
        return json.dumps({"version": 1, "name": "generation", "plans": plans}, separators=(",", ":"))

    @property
    def weights(self) -> bytes:
        """The folded weights of both plans (safetensors): the model owner's secret."""
        return save_tensors({n: t for plan in self.plans.values() for n, t in load_tensors(plan.weights).items()})

    def estimate(self, plan: str = TOKEN, network: Network = "lan", *, local: bool = False) -> Estimate:
        """Predicted cost of one run of ``"token"`` or ``"read"``. It is the same for every token."""
        text, profile = self.plans[plan].text, network_profile(network)
        family = (self.family.name, self.security)
        return Estimate(json.loads(native().estimate(text, profile, *family, local, *self._chosen)))

    def simulate(self, prompt: Sequence[int], tokens: int, **how: Any) -> list[int]:
        """The tokens of a private run, by the integer interpreter in the clear; arguments as :meth:`Writer.write`."""
        return Writer(self, Simulated(self.program, self.weights)).write(prompt, tokens, **how)

    @contextmanager
    def local(self, directory: str | Path | None = None) -> Iterator[Writer]:
        """The parties as processes on this machine; this process owns model and prompt, and is the receiver."""
        with tempfile.TemporaryDirectory(prefix="privet-") as scratch:
            program = Path(scratch, "program.json")
            program.write_text(self.program)
            folder = Path(directory) if directory is not None else Path(scratch, "session")
            family = (self.family.name, self.security)
            with Processes(folder, *family, self.count, self.parameters) as processes:
                processes.initialise(program, None)
                processes.start()
                with self.connect(processes.client_file, processes.while_alive) as writer:
                    yield writer

    @contextmanager
    def connect(self, node: str | Path, guard: Guard = lambda action: action()) -> Iterator[Writer]:
        """Running parties that serve :attr:`program`, as the client that a node file describes.

        This client has to be data's owner and receiver. Weights are shared where it is the model's owner too. Raises
        :class:`SessionError`.
        """
        family = (self.family.name, self.security)
        client = guard(lambda: native().Client.connect(str(node), self.program, self.weights, *family))
        try:
            yield Writer(self, Parties(client, self.family.streams, guard))
        finally:
            client.close()

    def save(self, directory: str | Path) -> None:
        """Write ``program.json``, which is public, and ``weights.safetensors``, the model owner's secret."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.json").write_text(self.program)
        write_secret(folder / "weights.safetensors", self.weights)


class Writer:
    """A generation with running parties, or in the clear."""

    def __init__(self, generator: Generator, engine: Engine) -> None:
        self.generator, self.engine = generator, engine

    def write(
        self,
        prompt: Sequence[int],
        tokens: int,
        *,
        temperature: float = 0.0,
        stop: int | None = None,
        hide_length: bool = False,
    ) -> list[int]:
        """Up to ``tokens`` tokens after ``prompt``; a ``stop`` token is the last one.

        Args:
            prompt: At least one token.
            tokens: Most tokens that are written.
            temperature: 0 takes the most likely token. Else the receiver adds Gumbel noise times this to the scores,
                which samples from their softmax.
            stop: The token that ends the text.
            hide_length: Go on to ``tokens`` runs after ``stop``, so that the parties do not learn the text's length.

        The parties learn the number of runs, so the length of prompt and text in chunks and tokens; no token.
        """
        made = self.generator
        checked(prompt, tokens, temperature, made)
        reads = -(-(len(prompt) - 1) // made.chunk)
        runs = {READ: reads, TOKEN: tokens}
        self.engine.begin(empty(made.decoder, made.window), {name: n for name, n in runs.items() if n})
        context = Context(made.window)
        padded = [None] * (reads * made.chunk - (len(prompt) - 1)) + list(prompt[:-1])
        for first in range(0, len(padded), made.chunk):
            self._run(READ, context, padded[first : first + made.chunk], [])
        written: list[int] = []
        last, ended = prompt[-1], False
        for _ in range(tokens):
            found = self._run(TOKEN, context, [last], [noise(made.decoder.vocabulary, temperature)])
            last = int(found[SCORES].reshape(()).item())
            if not ended:
                written.append(last)
            ended = ended or last == stop
            if ended and not hide_length:
                break
        return written

    def _run(
        self, name: str, context: Context, tokens: Sequence[int | None], extra: Sequence[Tensor]
    ) -> dict[str, Tensor]:
        plan = self.generator.plans[name]
        places, mask = context.take(tokens)
        ids = torch.tensor([[0 if token is None else token for token in tokens]])
        given = [ids, mask, *extra, *self.generator.decoder.positions(places)]
        return self.engine.run(name, encoded(plan, given))


class Context:
    """What the owner of a prompt knows of it: which kept places hold a token, and how many there were."""

    def __init__(self, window: int) -> None:
        self.holds = [False] * window
        self.seen = 0

    def take(self, tokens: Sequence[int | None]) -> tuple[Tensor, Tensor]:
        """Places ``[1, n]`` and mask ``[1, 1, n, window + n]`` of new tokens; ``None`` is padding before the first."""
        real = [token is not None for token in tokens]
        held = [*self.holds, *real]
        mask = torch.full((1, 1, len(tokens), len(held)), MASKED)
        places = []
        for row, is_token in enumerate(real):
            own = len(self.holds) + row
            for column in range(own):
                if held[column] and is_token:
                    mask[0, 0, row, column] = 0.0
            # padding reads itself, since a softmax of nothing is none
            mask[0, 0, row, own] = 0.0
            places.append(self.seen)
            self.seen += is_token
        self.holds = held[len(tokens) :]
        return torch.tensor([places]), mask


def checked(prompt: Sequence[int], tokens: int, temperature: float, made: Generator) -> None:
    """Refuse what no run can be made of."""
    if not prompt or tokens < 1:
        raise InputError("give a prompt of at least one token, and ask for at least one")
    for place, token in enumerate(prompt):
        if not 0 <= int(token) < made.decoder.vocabulary:
            raise InputError(
                f"the token at {place} of the prompt is none of the {made.decoder.vocabulary} that there are"
            )
    if not 0.0 <= temperature <= HOTTEST:
        raise InputError(f"a temperature of {temperature:g}; it is 0 to {HOTTEST:g}")
    longest = made.decoder.longest
    if longest is not None and len(prompt) + tokens - 1 > longest:
        raise InputError(f"{len(prompt)} tokens and {tokens} more; the model knows {longest} places")


def noise(vocabulary: int, temperature: float) -> Tensor:
    """Gumbel noise times a temperature, ``[1, vocabulary]``, from the system's randomness; 0 at temperature 0."""
    if temperature == 0.0:
        return torch.zeros(1, vocabulary)
    words = torch.frombuffer(bytearray(os.urandom(8 * vocabulary)), dtype=torch.int64)
    # 53 bits, and half a unit, so that neither 0 nor 1 is among them
    uniform = ((words & (2**53 - 1)).double() + 0.5) * 2.0**-53
    return (-(-uniform.log()).log() * temperature).clamp(-4 * NOISE, 4 * NOISE).reshape(1, -1)


def generate(
    model: nn.Module,
    prompt: Sequence[int],
    tokens: int,
    *,
    temperature: float = 0.0,
    stop: int | None = None,
    hide_length: bool = False,
    **settings: Any,
) -> list[int]:
    """Tokens after a prompt, by parties as processes on this machine: :class:`Generator` and :meth:`Writer.write`.

    ``settings`` are those of :class:`Generator`; the window holds prompt and text where none is given.
    """
    settings.setdefault("window", 8 * math.ceil((len(prompt) + tokens) / 8))
    with Generator(model, **settings).local() as writer:
        return writer.write(prompt, tokens, temperature=temperature, stop=stop, hide_length=hide_length)
