"""What users read where a model cannot be traced or run: never torch's own advice, always what to do."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privet
from privet.errors import CaptureError
from privet.native import available

ROWS = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Result:
    def __init__(self, value):
        self.value = value


TRACES = {
    "another result": (Function(Result), (ROWS,), "Return tensors, or tuples"),
    "data": (Function(lambda x: x.data * 2), (ROWS,), r"x.detach\(\) instead of x.data"),
    "numpy": (Function(lambda x: torch.from_numpy(x.numpy())), (ROWS,), "torch instead of numpy"),
    "a check of values": (nn.GaussianNLLLoss(), (ROWS, ROWS, ROWS.abs()), "decides by the values"),
    "storage": (nn.CrossMapLRN2d(3), (torch.ones(1, 4, 4, 4),), "LocalResponseNorm"),
    "CTC": (
        Function(lambda x: F.ctc_loss(x, torch.tensor([[1, 2]]), torch.tensor([6]), torch.tensor([2]))),
        (torch.zeros(6, 1, 4),),
        "in the clear",
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_that_fails_says_what_to_do(name):
    model, inputs, remedy = TRACES[name]
    with pytest.raises(CaptureError, match=remedy) as found:
        privet.compile(model, inputs)
    text = str(found.value)
    assert not any(part in text for part in ("http", "file an issue", "_trace.py", "capture.py", "draft_export")), text


def test_the_operation_that_gives_no_number_is_named():
    model = nn.Sequential(nn.ReLU(), Function(torch.log))
    with pytest.raises(CaptureError, match=r"NaN or infinity.*log in 1 .*test_explain.py"):
        privet.compile(model, -ROWS.abs())


CHECKED = {
    "shapes by values": (lambda x: x[x > 0], "depend on secret values"),
    "unique": (torch.unique, "depend on secret values"),
    "a number of the program": (lambda x: x * x[0, 0].item(), "keep it a tensor"),
    "places by values": (lambda x: x.scatter(1, x.argsort(1), x), "constant places"),
    "places so far": (lambda x: x.cummax(1)[1], "use the values"),
    "coins": (lambda x: x + torch.randn(8), "outside"),
    "matrices": (lambda x: torch.linalg.inv(x[:, :3]), "in the clear"),
    "branches": (lambda x: torch.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, (x,)), "torch.where"),
    "complex": (lambda x: torch.view_as_real(torch.fft.fft(x)), "matrix"),
    "a private grid": (
        lambda x: F.grid_sample(x.reshape(1, 1, 4, 6), x.reshape(1, 3, 4, 2), align_corners=False),
        "constant",
    ),
}


@pytest.mark.skipif(not available(), reason="the extension is not built: make build")
@pytest.mark.parametrize("name", CHECKED)
def test_what_cannot_be_private_is_listed_with_a_remedy(name):
    function, remedy = CHECKED[name]
    problems = privet.compile(Function(function), ROWS).check()
    assert problems and remedy in problems[0]["remedy"], problems
    assert "test_explain.py" in problems[0]["source"]


def test_the_place_is_never_in_a_library():
    with pytest.raises(CaptureError, match="could not trace Linear: missing a required argument: 'input'"):
        privet.compile(nn.Linear(8, 2), {"x": ROWS})


@pytest.mark.skipif(not available(), reason="the extension is not built: make build")
def test_what_is_no_tensor_is_refused_as_an_input():
    private = privet.compile(nn.Linear(8, 2), ROWS)
    with pytest.raises(privet.InputError, match="'input' is str; give a tensor, an array, or lists of numbers"):
        private.simulate("rows")
    assert private.simulate(ROWS.tolist()).shape == (3, 2)
