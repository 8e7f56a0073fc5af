"""Trained networks on real images. The data is not part of the project: PRIVET_TEST_DATA names its folder."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch

import privet
from privet.native import available

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PRIVET_TEST_DATA") or ROOT.parent / "shared" / "data")

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no data: put trained networks into {DATA} or set PRIVET_TEST_DATA"
)


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("real_models", ROOT / "examples" / "real_models.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["real_models"] = module
    spec.loader.exec_module(module)
    return module


CASES = {"resnet20": (64, 0.85), "squeezenet": (8, 0.3)}
"""Images and the least plaintext accuracy: less would mean wrong preparation of the images."""


@pytest.fixture(scope="module", params=CASES)
def task(request, example):
    count, accuracy = CASES[request.param]
    build, _, batch = example.TASKS[request.param]
    task = build(DATA, count)
    with torch.no_grad():
        plain = task.model(task.images)
    assert (plain.argmax(1) == task.labels).float().mean() >= accuracy
    return task, plain, batch


def test_captured_network_classifies_alike(task):
    task, plain, batch = task
    captured = privet.capture(task.model, task.images[:batch], calibration=task.calibration[:2])
    assert captured.graph.unsupported() == []
    inputs = {next(iter(captured.graph.inputs())): task.images[:batch]}
    (scores,) = privet.evaluate.evaluate(captured.graph, captured.parameters, inputs)
    assert torch.equal(scores.argmax(1), plain[:batch].argmax(1))


@pytest.mark.skipif(not available(), reason="the extension is not built: make build")
def test_integer_plan_classifies_alike(task):
    task, plain, batch = task
    private = privet.compile(task.model, task.images[:batch], calibration=task.calibration[:32])
    scores = private.simulate(task.images[: 2 * batch])
    agreement = (scores.argmax(1) == plain[: 2 * batch].argmax(1)).float().mean()
    assert agreement == 1.0
