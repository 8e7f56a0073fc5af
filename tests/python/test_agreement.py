"""Plans made for rep3 classify as PyTorch does: trained networks, 64 and 32 bits, in the clear.

A protocol gives the plan's integers, so what holds here holds for private runs; with ``one_ulp`` they may differ by a
unit in the last place at each truncation, which ``crates/rep3`` tests against the bound that the plan states.
Data and weights are not part of the project: what is not there is skipped.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import privet
from privet import Precision, models
from privet.native import available

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PRIVET_TEST_DATA") or ROOT.parent / "shared" / "data")
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")


def example(name):
    """A module of the examples, which are no package."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def fashion(build, file):
    """A network that the demo trained, and Fashion-MNIST: both are in its cache once it was run."""
    data = example("fashion_data")
    weights = data.cache() / file
    raw = data.cache() / "FashionMNIST" / "raw"
    if not weights.is_file() or not raw.is_dir():
        pytest.skip(f"no {file} or no Fashion-MNIST in {data.cache()}: run examples/fashion.py")
    model = build()
    model.load_state_dict(load_file(weights))
    return model.eval(), data.fashion_mnist("test")[0][:1024], data.fashion_mnist("train")[0][:512], 128


def resnet20():
    if not DATA.is_dir():
        pytest.skip(f"no data: put trained networks into {DATA} or set PRIVET_TEST_DATA")
    task = example("real_models").resnet20(DATA, 128)
    return task.model, task.images, task.calibration, 32


NETWORKS = {
    "mlp": lambda: fashion(models.mlp, "mlp-fashion-1.safetensors"),
    "lenet": lambda: fashion(models.LeNet, "lenet-fashion-1.safetensors"),
    "resnet20": resnet20,
}


@pytest.fixture(scope="module", params=NETWORKS)
def network(request):
    model, images, calibration, batch = NETWORKS[request.param]()
    with torch.no_grad():
        return model, images, calibration, batch, model(images)


@pytest.mark.parametrize(
    ("precision", "least"),
    [
        (Precision(bits=64, fraction=24), 1.0),
        (Precision(bits=32), 0.995),
        (Precision(bits=32, fraction=11, weight_fraction=13), 0.995),
        (Precision(), 0.999),
    ],
    ids=["64/24", "32", "32/11/13", "chosen"],
)
def test_plan_for_rep3_classifies_alike(network, precision, least):
    model, images, calibration, batch, plain = network
    private = privet.compile(model, images[:batch], "rep3", precision=precision, calibration=calibration)
    scores = private.simulate(images)
    agreement = (scores.argmax(1) == plain.argmax(1)).float().mean().item()
    assert agreement >= least, f"{agreement:.2%}, largest difference {(scores - plain).abs().max().item():.3g}"
