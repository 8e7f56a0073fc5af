"""The compiled extension and real processes: compile, compare, run. Skipped where they are not built."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import privet
from privet import models
from privet._processes import binary
from privet.native import available

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")


def has_binary() -> bool:
    try:
        binary()
    except privet.SessionError:
        return False
    return True


@pytest.fixture(scope="module")
def lenet():
    torch.manual_seed(5)
    model = models.LeNet().eval()
    private = privet.compile(model, torch.rand(2, 1, 28, 28), calibration=torch.rand(16, 1, 28, 28), name="lenet")
    return model, private


def test_the_plan_is_close_to_the_model(lenet):
    model, private = lenet
    images = torch.rand(3, 1, 28, 28)
    comparison = private.compare(images)
    assert comparison.max_abs < 0.01
    assert comparison.layers
    with torch.no_grad():
        torch.testing.assert_close(private.simulate(images), model(images), atol=0.01, rtol=0)


def test_more_fraction_bits_are_closer(lenet):
    model, _ = lenet
    images = torch.rand(2, 1, 28, 28)
    errors = [
        privet.compile(model, images, precision=privet.Precision(bits=64, fraction=f)).compare(images).max_abs
        for f in (10, 20)
    ]
    assert errors[1] < errors[0] / 50


def test_estimate_grows_with_batch_and_delay(lenet):
    _, private = lenet
    lan, wan = (private.estimate(network=n).total for n in ("lan", "wan"))
    assert lan["wire_bytes"] == wan["wire_bytes"] and lan["seconds"] < wan["seconds"]
    # not key bytes: with more rows fewer comparisons are by trees
    assert private.estimate(batch=8).total["wire_bytes"] > 3 * lan["wire_bytes"]


def test_networks_and_caps_are_those_of_the_compiled_part(lenet):
    model, private = lenet
    images = torch.rand(2, 1, 28, 28)
    keys = private.estimate().total["key_bytes"]
    assert privet.compile(model, images, max_key_bytes=keys * 2).estimate().total["key_bytes"] <= keys * 2
    with pytest.raises(ValueError, match=r"at least \d+ bytes of keys, more than max_key_bytes = 1;"):
        privet.compile(model, images, max_key_bytes=1)
    for network in ("moon", "rtt=1", {"rtt": "soon", "bandwidth": 1}):
        with pytest.raises(ValueError, match="is not a network; say lan, wan"):
            privet.compile(model, images, network=network)
    plans = [privet.compile(model, images, calibration=images, network=n).plan for n in ("wan", "wan")]
    assert plans[0] == plans[1]
    near, far = (privet.compile(model, images, network=n).estimate().total["rounds"] for n in ("lan", "wan"))
    assert far <= near


def test_the_report_names_operations_and_remedies():
    class Bessel(nn.Module):
        def forward(self, x):
            return torch.i0(x)

    private = privet.compile(nn.Sequential(nn.Linear(3, 3), Bessel()), torch.rand(1, 3))
    (problem,) = private.check()
    assert "i0" in problem["op"] and problem["layer"] == "1" and problem["remedy"]
    with pytest.raises(privet.UnsupportedModel, match="i0"):
        _ = private.plan


def test_precision_that_cannot_hold_the_values_is_refused(lenet):
    model, _ = lenet
    with pytest.raises(privet.PrecisionError):
        privet.compile(model, torch.rand(1, 1, 28, 28), precision=privet.Precision(bits=8, fraction=6))


@pytest.mark.skipif(not has_binary(), reason="the privet binary is not built: make build")
def test_private_run_over_processes(lenet):
    model, private = lenet
    images = torch.rand(3, 1, 28, 28)
    with privet.local(private) as session:
        scores = session.run(images)
        report = session.report
    with torch.no_grad():
        torch.testing.assert_close(scores, model(images), atol=0.01, rtol=0)
    assert report.data["transport"] == "TLS"
    assert report.totals["bytes_sent"] > 0 and report.totals["key_bytes"] > 0


def test_what_a_deployment_sets_reaches_the_compiler():
    model, rows = nn.Sequential(nn.Linear(6, 3), nn.Softmax(1)), torch.randn(2, 6)

    def kinds(parameters):
        private = privet.compile(model, rows, protocol="semi2k", parameters=parameters)
        assert private.estimate().total["key_bytes"] > 0
        return {node["op"]["kind"] for node in json.loads(private.plan)["nodes"]}

    assert "exponential" in kinds({"helper": "dealer"}) and "exponential" not in kinds(None)
    with pytest.raises(ValueError, match="no parameter `helper` that can be `nobody`"):
        kinds({"helper": "nobody"})
