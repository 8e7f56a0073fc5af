"""The named networks, and the workload files of the benchmark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from privet import models, workloads
from privet.capture import capture
from privet.evaluate import evaluate
from privet.graph import Graph

FILES = Path(__file__).parents[2] / "benches" / "workloads"


NETWORKS = [
    (models.network_a, (1, 28, 28), 10, 118_282),
    (models.network_b, (1, 28, 28), 10, 99_135),
    (models.network_c, (1, 28, 28), 10, 33_542),
    (models.LeNet, (1, 28, 28), 10, 431_080),
    (models.alexnet_cifar, (3, 33, 33), 10, 3_882_058),
    (models.alexnet_tiny, (3, 56, 56), 200, 15_303_176),
    (models.vgg16_cifar, (3, 32, 32), 1000, 37_694_248),
    (models.vgg16_tiny, (3, 64, 64), 200, 23_517_192),
    (models.spin_simple, (1, 28, 28), 10, 118_282),
    (models.spin_lenet, (1, 28, 28), 10, 431_080),
    (models.spin_alexnet, (3, 32, 32), 10, 2_552_874),
    (models.spin_vgg16m, (3, 32, 32), 10, 7_242_442),
    (models.cnn2, (1, 28, 28), 10, 37_610),
    (models.cnn3, (3, 32, 32), 10, 210_442),
    (models.ResNet20, (3, 32, 32), 10, 269_722),
]


def settled(build):
    """The model with weights and statistics as the benchmark draws them, from a seed of its own."""
    random = torch.Generator().manual_seed(7)
    row = next(row for f, row, _, _ in NETWORKS if f is build)
    rows = torch.rand(2, *row, generator=random)
    model = build().eval()
    workloads.draw(model, rows, random)
    return model.eval(), rows


@pytest.mark.parametrize(("build", "row", "classes", "parameters"), NETWORKS)
def test_model_is_as_documented_and_captures_exactly(build, row, classes, parameters):
    model, rows = settled(build)
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert f"{parameters:,}" in build.__doc__
    captured = capture(model, rows)
    (found,) = evaluate(captured.graph, captured.parameters, {next(iter(captured.graph.inputs())): rows})
    with torch.no_grad():
        expected = model.double()(rows.double())
    assert expected.shape == (2, classes)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


TRANSFORMERS = [
    (models.bert_small, (16, 64), (2, 16, 64)),
    (models.gpt2_small, (16, 64), (2, 16, 64)),
    (models.vit_small, (3, 32, 32), (2, 10)),
]


@pytest.mark.parametrize(("build", "row", "shape"), TRANSFORMERS)
def test_small_transformers_capture_exactly(build, row, shape):
    random = torch.Generator().manual_seed(7)
    model, rows = build().eval(), 6 * torch.rand(2, *row, generator=random) - 3
    workloads.draw(model, rows, random)
    assert f"{sum(p.numel() for p in model.parameters()):,}" in build.__doc__
    captured = capture(model, rows)
    (found,) = evaluate(captured.graph, captured.parameters, {next(iter(captured.graph.inputs())): rows})
    with torch.no_grad():
        expected = model.double()(rows.double())
    assert expected.shape == shape
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("build", [models.bert_base, models.gpt2, models.vit_b16])
def test_transformers_have_the_parameters_of_their_papers(build):
    with torch.device("meta"):
        model = build()
    assert f"{sum(p.numel() for p in model.parameters()):,}" in build.__doc__


def test_a_causal_mask_hides_what_comes_later():
    model, random = models.gpt2_small().eval(), torch.Generator().manual_seed(7)
    x = torch.rand(1, 16, 64, generator=random)
    later = torch.cat((x[:, :9], torch.rand(1, 7, 64, generator=random)), 1)
    with torch.no_grad():
        torch.testing.assert_close(model(x)[:, :9], model(later)[:, :9])
        assert not torch.equal(model(x)[:, 9:], model(later)[:, 9:])


def test_every_named_network_is_listed_in_the_documentation():
    page = (FILES.parents[1] / "docs" / "models.md").read_text()
    assert [name for name in models.__all__ if f"`{name}`" not in page] == []


def test_weights_are_not_the_same_twice():
    first, second = models.network_b(), models.network_b()
    assert not torch.equal(next(first.parameters()), next(second.parameters()))


def test_option_a_shortcut_is_a_slice_and_a_pad():
    captured = capture(models.BasicBlock(4, 8, 2), torch.rand(1, 4, 8, 8))
    shortcut = [n.op for n in captured.graph.nodes if n.kind in ("slice", "pad")]
    assert shortcut == [
        {"kind": "slice", "dim": 2, "start": 0, "end": 8, "step": 2},
        {"kind": "slice", "dim": 3, "start": 0, "end": 8, "step": 2},
        {"kind": "pad", "amounts": [[0, 0], [2, 2], [0, 0], [0, 0]]},
    ]


def close(ours: tuple[float, float], theirs: tuple[float, float]) -> bool:
    """Equal but for what another processor's rounding changes."""
    width = theirs[1] - theirs[0]
    return all(abs(a - b) <= 0.02 * width for a, b in zip(ours, theirs, strict=True))


def test_every_workload_has_its_file_and_no_other():
    assert {p.name for p in FILES.iterdir() if p.suffix == ".json"} == {
        *(f"{name}.graph.json" for name in workloads.WORKLOADS),
        *(f"{name}.train.graph.json" for name in workloads.TRAININGS),
    }


LARGE = ("bert-base", "gpt2", "vit-b16")
"""Half a minute each; small ones have the same layers."""


@pytest.mark.parametrize("name", workloads.WORKLOADS)
def test_workload_file_is_current(name):
    if name in LARGE and "PRIVET_NIGHTLY" not in os.environ:
        pytest.skip("85 million parameters: only with PRIVET_NIGHTLY")
    path = FILES / f"{name}.graph.json"
    assert path.stat().st_size < 150_000
    kept = Graph.from_json(path.read_text())
    made = workloads.generate(name)
    for node, fresh in zip(kept.nodes, made.nodes, strict=True):
        assert node.range is not None and fresh.range is not None
        assert node.range[0] <= node.range[1]
        assert close(node.range, fresh.range), f"{node.layer} {node.kind}: {node.range} {fresh.range}"
        node.range = fresh.range = None
    assert kept == made, "run: python -m privet.workloads"


@pytest.mark.parametrize("name", workloads.TRAININGS)
def test_step_file_is_current(name):
    path = FILES / f"{name}.train.graph.json"
    assert path.stat().st_size < 150_000
    kept, made = Graph.from_json(path.read_text()), workloads.generate_training(name)
    for node, fresh in zip(kept.nodes, made.nodes, strict=True):
        assert (node.range is None) == (fresh.range is None) == (node.kind not in ("input", "state"))
        assert node.range is None or close(node.range, fresh.range)
        node.range = fresh.range = None
    assert kept == made, "run: python -m privet.workloads"


@pytest.mark.parametrize("name", workloads.STEPS)
def test_small_step_is_current(name):
    path = Path(__file__).parents[2] / "crates" / "plan" / "src" / "suite" / "steps" / f"{name}.graph.json"
    kept, made = Graph.from_json(path.read_text()), workloads.generate_step(name)
    for node, fresh in zip(kept.nodes, made.nodes, strict=True):
        assert (node.range is None) == (fresh.range is None) == (node.kind not in ("input", "state"))
        assert node.range is None or close(node.range, fresh.range)
        node.range = fresh.range = None
    assert kept == made, "run: python -m privet.workloads"


@pytest.mark.parametrize(
    ("given", "expected"),
    [((0.12345, 0.98765), (0.123, 0.988)), ((-1234.5, 0.0), (-1240.0, 0.0)), ((-0.5, -0.00123456), (-0.5, -0.00123))],
)
def test_ranges_are_rounded_outward(given, expected):
    assert workloads.round_outward(*given) == expected
