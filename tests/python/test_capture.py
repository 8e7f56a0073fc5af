"""What capture refuses, what it reports, and what it records."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from privet.capture import capture
from privet.errors import CaptureError


class Unusual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.Mish())

    def forward(self, x):
        x = self.body(x)
        y = torch.i0(x)
        return F.softplus(torch.digamma(x * y))


def test_unsupported_operations_are_listed_with_their_lines():
    captured = capture(Unusual(), torch.randn(2, 4))
    report = {n.op["name"]: (n.layer, n.source) for n in captured.graph.unsupported()}
    first = Unusual.forward.__code__.co_firstlineno
    last = f"test_capture.py:{first + 3} in forward: return F.softplus(torch.digamma(x * y))"
    assert report == {
        "aten.i0.default": ("", f"test_capture.py:{first + 2} in forward: y = torch.i0(x)"),
        "aten.digamma.default": ("", last),
    }
    captured.graph.to_json()  # still a graph, for the planner's own report


class Refused(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (
            lambda x: F.dropout(x, 0.5, training=True),
            "aten.native_dropout.default (dropout that stays active in evaluation mode)",
        ),
        (
            lambda x: x.cummax(1)[1],
            "aten.cummax.default (indices of maxima so far)",
        ),
        (lambda x: x + torch.rand(8), "aten.rand.default"),
        (
            lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
            "aten.scaled_dot_product_attention.default (dropout)",
        ),
        (lambda x: x.sort(1)[0].lgamma(), "aten.lgamma.default"),
        (lambda x: x + torch.full((8,), -math.inf), "a constant of -inf, or near it, that reaches 'the result'"),
        (lambda x: (x + torch.tensor([-1e9] * 8)).relu(), None),
        (lambda x: x[x > 0], "aten.index.Tensor (as many elements as a private mask keeps)"),
        (lambda x: x.nonzero(), "aten.nonzero.default"),
    ],
)
def test_variants_without_counterpart(function, name):
    captured = capture(Refused(function), torch.randn(2, 3, 8, 8))
    found = [n.op["name"] for n in captured.graph.unsupported()]
    if name is None:
        assert found == []
    else:
        assert found[0] == name


class Branches(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def test_control_flow_on_values_is_explained():
    with pytest.raises(CaptureError, match=r"(?s)test_capture.py:\d+ in forward: if x.sum\(\) > 0.*nobody may see"):
        capture(Branches(), torch.randn(2, 3))


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        (nn.ReLU(), torch.zeros(2, 3, dtype=torch.complex64), "input 0 is complex"),
        (Refused(torch.log), torch.zeros(2, 3), "the model itself gives 'output' with NaN or infinity"),
        (nn.ReLU(), torch.tensor(1.0), "dimension 0 must be the batch"),
        (nn.ReLU(), torch.zeros(0, 3), "dimension 0 must be the batch"),
        (nn.ReLU(), (), "no example inputs"),
        (nn.ReLU(), ("x",), "input 0 is str"),
        (nn.Bilinear(3, 3, 2), (torch.zeros(2, 3), torch.zeros(3, 3)), "input 1 has 3 rows, input 0 has 2"),
        (nn.Linear(3, 2), torch.zeros(2, 4), "could not trace Linear"),
        (Refused(lambda x: (x, "label")), torch.zeros(2, 4), r"returns str \(output.1\)"),
    ],
)
def test_refused_inputs_and_results(model, inputs, message):
    with pytest.raises(CaptureError, match=message):
        capture(model, inputs)


def test_a_weight_is_never_a_result():
    class Leaky(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x, self.w * 2

    with pytest.raises(CaptureError, match=r"'output\.1' does not depend on an input"):
        capture(Leaky(), torch.zeros(2, 2))


def test_capture_leaves_the_model_alone():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout())
    model[2].eval()
    before = copy.deepcopy(model.state_dict())
    capture(model, torch.randn(2, 1, 5, 5))
    assert [m.training for m in model.modules()] == [True, True, True, False]
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_ranges_come_from_the_calibration_rows():
    rows = torch.linspace(-3, 5, 7).reshape(7, 1)  # not a multiple of the batch
    captured = capture(nn.ReLU(), torch.zeros(2, 1), calibration=rows)
    assert [n.range for n in captured.graph.nodes] == [(-3.0, 5.0), (0.0, 5.0)]
    assert captured.graph.batch == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.tensor([[float("nan")]]), "'input' holds NaN"),
        (torch.tensor([[float("inf")]]), "'input' holds NaN or infinity"),
        (torch.zeros(3, 2), r"rows of 'input' have shape \[2\], the example's \[1\]"),
        ((torch.zeros(3, 1), torch.zeros(3, 1)), "2 calibration tensors for a model of 1 inputs"),
    ],
)
def test_refused_calibration(rows, message):
    with pytest.raises(CaptureError, match=message):
        capture(nn.ReLU(), torch.zeros(2, 1), calibration=rows)


def test_half_precision_weights_are_stored_as_float32():
    captured = capture(nn.Linear(3, 2).half().float(), torch.randn(1, 3))
    assert {t.dtype for t in captured.parameters.values()} == {torch.float32}
