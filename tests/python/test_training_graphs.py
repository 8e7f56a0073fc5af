"""What a step's graph looks like, and what is refused at capture."""

from __future__ import annotations

import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privet
from privet.errors import CaptureError, UnsupportedOptimiser
from privet.native import available
from privet.training.program import capture_training


def kinds(graph):
    return [n.kind for n in graph.nodes]


def test_a_comparison_is_made_once_for_value_and_gradient():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 3), nn.ReLU6())
    data = (torch.rand(2, 1, 8, 8), torch.tensor([0, 2]))
    training = capture_training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), data)
    assert kinds(training.train).count("positive") == 3
    assert kinds(training.train).count("max_pool2d_grad") == 1
    assert "positive" not in kinds(training.evaluate)


@pytest.mark.parametrize(("activation", "derivative"), [(nn.SiLU(), "silu_grad"), (nn.GELU(), "gelu_grad")])
def test_smooth_activations_have_derivatives_of_their_own(activation, derivative):
    model = nn.Sequential(nn.Linear(4, 3), activation)
    data = (torch.rand(2, 4), torch.rand(2, 3))
    training = capture_training(model, nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1), data)
    functions = [n.op["function"] for n in training.train.nodes if n.kind == "smooth"]
    assert sorted(functions) == sorted([derivative.removesuffix("_grad"), derivative])


def test_the_gradient_of_cross_entropy_is_a_difference():
    model = nn.Linear(4, 3)
    data = (torch.rand(2, 4), torch.tensor([0, 2]))
    training = capture_training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), data,
                                reveal_loss=False)  # fmt: skip
    graph = training.train
    softmax = next(i for i, n in enumerate(graph.nodes) if n.kind == "smooth")
    (difference,) = (i for i, n in enumerate(graph.nodes) if n.kind == "sub" and n.inputs[0] == softmax)
    assert graph.nodes[graph.nodes[difference].inputs[1]].op == {"kind": "input", "name": "target"}
    assert graph.nodes[difference + 1].op == {"kind": "mul_scalar", "value": 8.0}  # the loss scale over two rows


def test_revealing_gives_what_was_trained_to_the_models_owner():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    data = (torch.rand(2, 4), torch.tensor([0, 2]))
    optimizer = torch.optim.Adam(model[0].parameters(), 0.1)
    training = capture_training(model, nn.CrossEntropyLoss(), optimizer, data)
    revealed = {o.name: o.to for o in training.reveal.outputs}
    assert revealed == dict.fromkeys(["0.weight", "0.bias", "1.running_mean", "1.running_var"], "model_owner")
    assert training.reveal.outputs[0].node < len(training.reveal.nodes)
    assert not any(n.startswith("optimizer.") for n in revealed)
    assert training.train.states()["optimizer.0.bias.exp_avg_sq"].op["frac"] == 48


# --- What is refused ---------------------------------------------------------------------------------


def test_everything_unsupported_is_listed_at_once_with_source_and_layer():
    class Several(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 3)
            self.activation = nn.GELU()

        def forward(self, x):
            y = torch.i0(self.linear(x))
            return self.activation(y).lgamma()

    model = Several()
    data = (torch.rand(2, 4), torch.tensor([0, 2]))
    training = capture_training(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), data)
    found = {n.op["name"].split(" ")[0]: n for n in training.unsupported()}
    assert {"aten.i0.default", "aten.lgamma.default"} <= found.keys()
    assert found["aten.i0.default"].source.startswith("test_training_graphs.py")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: torch.optim.SGD(p, 0.1, maximize=True), "maximize"),
        (lambda p: torch.optim.Adam(p, 0.1, amsgrad=True), "amsgrad"),
        (lambda p: torch.optim.RMSprop(p, 0.1), "RMSprop"),
        (lambda p: torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1), "model.parameters()"),
    ],
)
def test_optimisers_without_a_counterpart_are_named(make, message):
    model = nn.Linear(4, 3)
    with pytest.raises(UnsupportedOptimiser, match=re.escape(message)):
        capture_training(model, F.cross_entropy, make(model.parameters()), (torch.rand(2, 4), torch.tensor([0, 2])))


@pytest.mark.parametrize(
    ("loss", "data", "message"),
    [
        (F.cross_entropy, (torch.rand(2, 4),), "target last"),
        (F.cross_entropy, (torch.rand(2, 4), [0, 2]), "tensor 1 of the batch is list"),
        (F.cross_entropy, (torch.rand(2, 4), torch.tensor([0])), "dimension 0"),
        (F.cross_entropy, (torch.ones(2, 4).long(), torch.tensor([0, 2])), "real numbers"),
        (nn.CrossEntropyLoss(reduction="none"), (torch.rand(2, 4), torch.tensor([0, 2])), "one number"),
        (lambda z, y: y.sum(), (torch.rand(2, 4), torch.rand(2, 3)), "does not depend on any parameter"),
    ],
)
def test_batches_and_losses_that_cannot_be(loss, data, message):
    model = nn.Linear(4, 3)
    with pytest.raises(CaptureError, match=re.escape(message)):
        capture_training(model, loss, torch.optim.SGD(model.parameters(), 0.1), data)


def test_what_does_not_train_says_so_with_a_remedy():
    model = nn.Sequential(nn.Conv3d(1, 2, 3), nn.Flatten(), nn.Linear(16, 3), nn.Softplus(threshold=1.0))
    data = (torch.rand(2, 1, 4, 4, 4), torch.tensor([0, 2]))
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1), example=data)
    problems = {p["op"]: p["remedy"] for p in trainer.check()}
    assert {n.split(" (")[-1] for n in problems} == {"convolution of volumes)", "a threshold below 10)"}
    if available():
        assert "Conv1d and Conv2d are trained" in problems["aten.convolution_backward.default (convolution of volumes)"]
        assert "docs/training.md" in problems["aten.softplus_backward.default (a threshold below 10)"]


def test_the_model_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Dropout())
    model[1].eval()
    before = copy.deepcopy(model.state_dict())
    capture_training(model, F.cross_entropy, torch.optim.SGD(model.parameters(), 0.1),
                     (torch.rand(2, 4), torch.tensor([0, 2])))  # fmt: skip
    assert [m.training for m in model] == [True, False, True]
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
