"""Generation: tokens by parties, by the interpreter and by PyTorch."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor

import privet
from privet.generation import Decoder, decoder_of
from privet.generation.generator import Context, Writer, noise
from privet.generation.steps import TOKEN
from privet.models.decoders import Gpt2, Layout, Llama
from privet.report import RunReport

PROMPT = [3, 14, 15, 9, 2, 6]
LAYOUT = Layout(40, layers=2, width=16, heads=2, keys=2, hidden=32, positions=48)
GROUPED = Layout(40, layers=2, width=16, heads=4, keys=2, hidden=32, positions=48)


def made(kind: str, layers: int = 2) -> Decoder:
    torch.manual_seed(11)
    layout = replace(LAYOUT if kind == "gpt2" else GROUPED, layers=layers)
    model = (Gpt2(layout) if kind == "gpt2" else Llama(layout)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p *= 2.0 if p.dim() > 1 else 1.0  # scores far enough apart
    # scores by the table of tokens would say the last token over and over
    model.scores.weight = torch.nn.Parameter(torch.randn(model.scores.weight.shape))
    return model


def plaintext(model: Decoder, prompt: list[int], count: int) -> list[int]:
    """Greedy tokens by PyTorch, on the whole text each time."""
    text = list(prompt)
    for _ in range(count):
        n = len(text)
        mask = torch.triu(torch.full((1, 1, n, n), -1e9), diagonal=1)
        past = [torch.zeros(1, heads, 0, width) for heads, width in model.kept()]
        places = model.positions(torch.arange(n).reshape(1, -1))
        with torch.no_grad():
            scores, _ = model(torch.tensor([text]), places, mask, past)
        text.append(int(scores.argmax(-1)))
    return text[len(prompt) :]


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def generator(request: pytest.FixtureRequest) -> privet.Generator:
    return privet.Generator(made(request.param), window=16, chunk=4, protocol="rep3", security="semi-honest")


def test_the_interpreter_writes_what_pytorch_writes(generator: privet.Generator) -> None:
    model = generator.decoder
    for prompt in ([7], PROMPT, [*PROMPT, 1, 2, 3]):
        wanted = plaintext(model, prompt, 6)
        assert generator.simulate(prompt, 6) == wanted
        assert len(set(wanted)) > 2, "a text of one token would show little"


def test_parties_write_what_the_interpreter_writes(generator: privet.Generator) -> None:
    wanted = generator.simulate(PROMPT, 4)
    with generator.local() as writer:
        assert writer.write(PROMPT, 4) == wanted
        until = wanted.index(wanted[1]) + 1
        assert writer.write(PROMPT, 4, stop=wanted[1]) == wanted[:until]
        assert writer.write(PROMPT, 3, stop=wanted[0], hide_length=True) == wanted[:1]


def test_keys_and_messages_are_flat_over_tokens() -> None:
    generator = privet.Generator(made("gpt2"), window=16, chunk=4, protocol="fss")
    with generator.local() as writer:
        seen = []
        for count in (2, 4):
            writer.write(PROMPT, count)
            report = writer.engine.report("token")
            seen.append(report.totals)
    # totals are of all runs so far: 2, then 6
    for what in ("bytes_sent", "rounds", "key_bytes"):
        assert seen[1][what] == pytest.approx(3 * seen[0][what], rel=1e-3), what


# --- A long text -------------------------------------------------------------------------------------

LONG = 32
NIGHTLY = bool(os.environ.get("PRIVET_NIGHTLY"))
FAMILIES = {
    "fss": {"protocol": "fss"},
    "rep3-semi-honest": {"protocol": "rep3", "security": "semi-honest"},
    "rep3-malicious": {"protocol": "rep3", "security": "malicious"},
    "semi2k": {"protocol": "semi2k", "parameters": {"helper": "dealer"}},
}
CASES = [(kind, family) for family in FAMILIES for kind in ("gpt2", "llama")]
SOON = {("gpt2", "fss"), ("llama", "rep3-semi-honest"), ("gpt2", "rep3-malicious")}
"""What does not wait for the night."""


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_parties_write_a_long_text(kind: str, family: str) -> None:
    if not NIGHTLY and (kind, family) not in SOON:
        pytest.skip("only with PRIVET_NIGHTLY=1")
    model = made(kind, layers=2 if NIGHTLY else 1)
    generator = privet.Generator(model, window=40, chunk=5, **FAMILIES[family])
    wanted = plaintext(model, PROMPT, LONG)
    assert generator.simulate(PROMPT, LONG) == wanted
    assert len(set(wanted)) > 4
    with generator.local() as writer:
        reports = watched(writer)
        assert writer.write(PROMPT, LONG) == wanted
    assert len(reports) == LONG
    totals = [report.totals for report in reports]
    for what in ("bytes_sent", "rounds", "key_bytes"):
        # totals are of all tokens so far
        spent = [b[what] - a[what] for a, b in pairwise(totals)]
        assert max(spent) == min(spent) == totals[0][what], what
    # the most that a process held so far, after a quarter of the text and at its end
    early, late = (
        {p["place"]: p["peak_rss_bytes"] for p in report.data["parties"] if p.get("peak_rss_bytes")}
        for report in (reports[LONG // 4], reports[-1])
    )
    parties = [place for place in early if place.startswith("party")]
    assert len(parties) >= 2
    for place in parties:
        assert late[place] <= 1.05 * early[place] + 2**20, place


def watched(writer: Writer) -> list[RunReport]:
    """What all tokens so far did cost, after each token."""
    reports: list[RunReport] = []
    run = writer.engine.run

    def spied(plan: str, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        found = run(plan, inputs)
        if plan == TOKEN:
            report = writer.engine.report(plan)
            assert report is not None
            reports.append(report)
        return found

    writer.engine.run = spied
    return reports


def test_a_result_is_the_receivers_and_nothing_else_is_revealed(generator: privet.Generator) -> None:
    plans = {p["name"]: p["plan"] for p in json.loads(generator.program)["plans"]}
    assert [(o["name"], o["to"]) for o in plans["token"]["outputs"]] == [("token", "receiver")]
    assert plans["read"]["outputs"] == []
    owners = {n["op"]["name"]: n["op"]["owner"] for n in plans["token"]["nodes"] if n["op"]["kind"] == "input"}
    assert sorted(owners.values()).count("receiver") == 1
    states = [n["op"] for n in plans["token"]["nodes"] if n["op"]["kind"] == "state"]
    assert {s["owner"] for s in states} == {"data_owner"}
    assert len(states) == len(plans["token"]["updates"]) == len(plans["read"]["updates"]) == 4


def test_what_is_saved_is_the_program_and_a_secret(generator: privet.Generator, tmp_path: Path) -> None:
    generator.save(tmp_path)
    assert (tmp_path / "program.json").read_text() == generator.program
    assert (tmp_path / "weights.safetensors").stat().st_mode & 0o077 == 0


def test_a_window_slides() -> None:
    generator = privet.Generator(made("llama"), window=4, chunk=4, protocol="rep3")
    assert len(generator.simulate(PROMPT, 6)) == 6


def test_top_tokens_alone_are_sampled(generator: privet.Generator) -> None:
    first = privet.Generator(generator.decoder, window=8, chunk=4, protocol="rep3", top=1)
    wanted = plaintext(generator.decoder, [5, 6], 2)
    assert all(first.simulate([5, 6], 2, temperature=5.0) == wanted for _ in range(3))


def test_noise_changes_the_text(generator: privet.Generator) -> None:
    texts = {tuple(generator.simulate([5, 6], 4, temperature=5.0)) for _ in range(6)}
    assert len(texts) > 1


def test_noise_samples_from_a_softmax() -> None:
    scores = torch.tensor([0.0, 1.0, 2.0, -1.0])
    for temperature in (0.5, 2.0):
        draws = [int((scores + noise(4, temperature)[0]).argmax()) for _ in range(4000)]
        counts = Counter(draws)
        wanted = (scores / temperature).softmax(0)
        for i in range(4):
            assert abs(counts[i] / 4000 - float(wanted[i])) < 0.05
    assert bool((noise(5, 0.0) == 0).all())
    assert not torch.equal(noise(5, 1.0), noise(5, 1.0))


def test_a_context_hides_padding_and_what_is_to_come() -> None:
    context = Context(3)
    places, mask = context.take([None, 4])
    assert places.tolist() == [[0, 0]]
    open_ = [[column for column in range(5) if mask[0, 0, row, column] == 0] for row in range(2)]
    assert open_ == [[3], [4]]
    places, mask = context.take([5])
    assert places.tolist() == [[1]]
    assert [column for column in range(4) if mask[0, 0, 0, column] == 0] == [2, 3]


@pytest.mark.parametrize(
    ("prompt", "tokens", "how", "says"),
    [
        ([], 1, {}, "at least one token"),
        ([1], 0, {}, "at least one"),
        ([1, 40], 1, {}, "token at 1"),
        ([1], 1, {"temperature": 6.0}, "temperature"),
        ([1] * 40, 10, {}, "48 places"),
    ],
)
def test_what_cannot_run_is_refused(
    generator: privet.Generator, prompt: list[int], tokens: int, how: dict[str, float], says: str
) -> None:
    with pytest.raises(privet.InputError, match=says):
        generator.simulate(prompt, tokens, **how)


def test_what_is_no_decoder_is_refused() -> None:
    with pytest.raises(privet.UnsupportedModel, match="cannot generate"):
        decoder_of(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_published_models(kind: str) -> None:
    hugging = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(3)
    shared = {"vocab_size": 40, "attn_implementation": "eager", "bos_token_id": 0, "eos_token_id": 0}
    if kind == "gpt2":
        config = hugging.GPT2Config(n_positions=32, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3, **shared)
        model = hugging.GPT2LMHeadModel(config).eval()
    else:
        config = hugging.LlamaConfig(
            hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=32, initializer_range=0.3, **shared,
        )  # fmt: skip
        model = hugging.LlamaForCausalLM(config).eval()
    text = torch.tensor([PROMPT])
    for _ in range(5):
        with torch.no_grad():
            scores: Tensor = model(text).logits[:, -1]
        text = torch.cat([text, scores.argmax(-1, keepdim=True)], 1)
    generator = privet.Generator(model, window=16, chunk=4, protocol="rep3")
    assert generator.simulate(PROMPT, 5) == text[0, len(PROMPT) :].tolist()
