"""A step's graph computes what PyTorch computes: several steps of both, in float64, from the same start."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from privet.evaluate import step
from privet.graph import Graph
from privet.models import LeNet, ResNet20
from privet.training.program import capture_training, trained_state

ROWS = 4


class Residual(nn.Module):
    """Two blocks with a shortcut, one of them strided; slices, pads and concatenation."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, 2, 1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        y = F.relu(self.norm(self.first(x)))
        z = self.second(y) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 1, 1))
        return self.head(torch.cat([z.mean((2, 3)), z[:, :, 0, 1]], 1))


class Attention(nn.Module):
    """Products of values, a softmax inside, and an encoder's layers."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.encoder(x).mean(1)


class Tied(nn.Module):
    """One weight used twice, and one that does nothing."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.b = self.a
        self.c = nn.Linear(6, 5)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.c(torch.tanh(self.b(torch.tanh(self.a(x)))))


def small(*layers, out):
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(out, 5))


ROW, IMAGE, LINE = (6,), (2, 8, 8), (2, 9)
MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 5)), ROW),
    "relu in place": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 5)), ROW),
    "conv, batch norm": (
        lambda: small(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), out=36),
        IMAGE,
    ),
    "batch norm without affine": (lambda: small(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4, affine=False), out=144), IMAGE),
    "batch norm without averages": (
        lambda: small(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.ReLU(), out=144),
        IMAGE,
    ),
    "batch norm of rows": (lambda: nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5)), ROW),
    "residual": (Residual, IMAGE),
    "strided": (lambda: small(nn.Conv2d(2, 4, 3, stride=(2, 3)), nn.ReLU(), nn.Conv2d(4, 3, 2), out=6), IMAGE),
    "padded, dilated, grouped": (
        lambda: small(nn.Conv2d(2, 4, 3, padding=2, dilation=2, groups=2), nn.ReLU(), nn.Conv2d(4, 4, (3, 1), groups=4),
                      out=192),
        IMAGE,
    ),
    "same, even kernel": (lambda: small(nn.Conv2d(2, 3, 4, padding="same"), out=192), IMAGE),
    "overlapping max pool": (lambda: small(nn.Conv2d(2, 3, 3), nn.MaxPool2d(3, 2, 1), nn.ReLU(), out=27), IMAGE),
    "max pool rounding up": (lambda: small(nn.Conv2d(2, 3, 2), nn.MaxPool2d(2, ceil_mode=True), out=48), IMAGE),
    "average pool": (lambda: small(nn.Conv2d(2, 3, 3), nn.AvgPool2d(3, 2, 1, count_include_pad=False), out=27), IMAGE),
    "average pool, divisor": (lambda: small(nn.Conv2d(2, 3, 3), nn.AvgPool2d(2, divisor_override=3), out=27), IMAGE),
    "adaptive average pool": (lambda: small(nn.Conv2d(2, 3, 3), nn.AdaptiveAvgPool2d((3, 2)), out=18), IMAGE),
    "global average pool": (lambda: small(nn.Conv2d(2, 3, 3), nn.AdaptiveAvgPool2d(1), out=3), IMAGE),
    "layer norm, gelu": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU("tanh"), nn.Linear(8, 5)),
        ROW,
    ),
    "layer norm without affine": (
        lambda: small(nn.Conv2d(2, 4, 3), nn.LayerNorm((6, 6), elementwise_affine=False), nn.ReLU(), out=144),
        IMAGE,
    ),
    "exact gelu": (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 5)), ROW),
    "activations": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.Sigmoid(), nn.Linear(8, 8), nn.Tanh(), nn.SiLU(), nn.LeakyReLU(0.1),
                              nn.Linear(8, 8), nn.ReLU6(), nn.Linear(8, 8), nn.Hardtanh(-0.3, 0.4), nn.Linear(8, 8),
                              nn.Hardswish(), nn.Hardsigmoid(), nn.LogSigmoid(), nn.Linear(8, 5)),
        ROW,
    ),
    "conv of lines": (
        lambda: small(nn.Conv1d(2, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv1d(4, 4, 2, dilation=2, groups=2),
                      out=12),
        LINE,
    ),
    "conv of lines, same": (lambda: small(nn.Conv1d(2, 3, 4, padding="same"), nn.BatchNorm1d(3), out=27), LINE),
    "group norm": (lambda: small(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), out=144), IMAGE),
    "group norm of lines": (lambda: small(nn.GroupNorm(1, 2, affine=False), nn.Conv1d(2, 4, 3), out=28), LINE),
    "instance norm": (lambda: small(nn.Conv2d(2, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.ReLU(), out=144), IMAGE),
    "softplus": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, 8), nn.Softplus(2.0, 30.0),
                              nn.Linear(8, 5)),
        ROW,
    ),
    "elu and its like": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.Linear(8, 8), nn.ELU(0.5, inplace=True), nn.Linear(8, 8),
                              nn.CELU(0.7), nn.SELU(), nn.Linear(8, 5)),
        ROW,
    ),
    "softmax inside": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Softmax(1), nn.Linear(8, 5)), ROW),
    "encoder": (Attention, (3, 6)),
    "tied weights": (Tied, ROW),
    "frozen": (lambda: frozen(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))), ROW),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.ReLU(), nn.Linear(8, 8), nn.Dropout(0.5),
                              nn.Linear(8, 5)),
        ROW,
    ),
}  # fmt: skip


def frozen(model):
    model[0].weight.requires_grad_(False)
    return model


WEIGHTS = torch.tensor([0.5, 1.0, 2.0, 1.5, 0.25], dtype=torch.float64)

LOSSES = {
    "cross entropy": nn.CrossEntropyLoss(),
    "cross entropy, sum": nn.CrossEntropyLoss(reduction="sum"),
    "cross entropy, smooth": nn.CrossEntropyLoss(label_smoothing=0.1),
    "cross entropy, function": F.cross_entropy,
    "mse": nn.MSELoss(),
    "mse, sum": nn.MSELoss(reduction="sum"),
    "bce": nn.BCEWithLogitsLoss(),
    "bce, sum": nn.BCEWithLogitsLoss(reduction="sum"),
    "l1": nn.L1Loss(),
    "huber": nn.HuberLoss(delta=0.7),
    "smooth l1": nn.SmoothL1Loss(),
    "smooth l1, sum": nn.SmoothL1Loss(reduction="sum", beta=0.3),
    "smooth l1, no curve": nn.SmoothL1Loss(beta=0.0),
    "cross entropy, weights": nn.CrossEntropyLoss(weight=WEIGHTS),
    "cross entropy, weights, sum": nn.CrossEntropyLoss(weight=WEIGHTS, reduction="sum"),
    "cross entropy, weights, smooth": nn.CrossEntropyLoss(weight=WEIGHTS, label_smoothing=0.1),
    "cross entropy, weights, smooth, sum": nn.CrossEntropyLoss(weight=WEIGHTS, label_smoothing=0.1, reduction="sum"),
    "nll": lambda z, y: F.nll_loss(F.log_softmax(z, 1), y, WEIGHTS),
    "bce, weights": nn.BCEWithLogitsLoss(weight=WEIGHTS, pos_weight=WEIGHTS.flip(0)),
    "own": lambda z, y: ((z - y) ** 2).mean() + 0.1 * z.pow(2).sum(1).mean(),
}

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05),
    "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "dampening": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, dampening=0.4),
}


class Masked(nn.Module):
    """A dropout with coins from outside."""

    def __init__(self, keep):
        super().__init__()
        self.keep, self.coins = keep, None

    def forward(self, x):
        return x * self.coins / self.keep


def with_coins(model):
    """The model with its dropouts replaced, and these."""
    found = []
    for name, module in list(model.named_children()):
        if isinstance(module, nn.Dropout):
            found.append(Masked(1 - module.p))
            setattr(model, name, found[-1])
    return model, found


def batch(loss, row, random):
    x = torch.randn(ROWS, *row, generator=random, dtype=torch.float64)
    if "cross" in loss or loss == "nll":
        return x, torch.randint(0, 5, (ROWS,), generator=random)
    outputs = 6 if row == (3, 6) else 5
    target = torch.rand(ROWS, outputs, generator=random, dtype=torch.float64)
    return x, target.round() if "bce" in loss else target


def encode(training, names, tensors):
    found = {}
    for name, tensor in zip(names, tensors, strict=True):
        classes = training.classes.get(name)
        found[name] = F.one_hot(tensor, classes) if classes else tensor
    return found


def compare(build, row, loss_name, make, *, steps=4, tolerance=1e-9, scheduler=None):
    random = torch.Generator().manual_seed(3)
    torch.manual_seed(5)
    model = build().double()
    loss = LOSSES[loss_name]
    plain, masks = with_coins(copy.deepcopy(model))
    theirs = make([p for p in plain.parameters() if p.requires_grad])
    ours = make([p for p in model.parameters() if p.requires_grad])
    training = capture_training(model, loss, ours, batch(loss_name, row, random))
    assert training.unsupported() == []
    graph = Graph.from_json(training.train.to_json())
    assert graph == training.train
    names = list(graph.inputs())
    schedules = [scheduler(o) for o in (theirs, ours)] if scheduler else []
    states = dict(training.states)
    plain.train()
    for t in range(1, steps + 1):
        given = batch(loss_name, row, random)
        coins = {}
        for (stream, node), masked in zip(sorted(graph.dropouts().items()), masks, strict=True):
            coins[stream] = torch.bernoulli(torch.full(node.shape, 0.5), generator=random).double()
            masked.coins = coins[stream]
        theirs.zero_grad()
        value = loss(plain(given[0]), given[1])
        value.backward()
        publics = training.optimiser.publics(t)
        for key, number in publics.items():
            assert abs(number) <= graph.publics()[key].op["limit"] * (1 + 1e-12)
        outputs, states = step(graph, states, encode(training, names, given), publics, coins)
        torch.testing.assert_close(outputs["loss"], value.detach(), atol=tolerance, rtol=tolerance)
        assert outputs["in_range.values"] == outputs["in_range.parameters"] == 1
        theirs.step()
        for s in schedules:
            s.step()
        assert set(training.states) == set(states)
    found = trained_state(model, states, steps)
    wanted = plain.state_dict()
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(
            found[name], value, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )
    x = batch(loss_name, row, random)[0]
    plain.eval()
    for masked in masks:
        masked.coins = torch.tensor(masked.keep, dtype=torch.float64)
    inputs = dict(zip(training.evaluate.inputs(), [x], strict=True))
    outputs, _ = step(training.evaluate, states, inputs, {})
    torch.testing.assert_close(outputs["output"], plain(x).detach(), atol=tolerance, rtol=tolerance)
    return training


@pytest.mark.parametrize("name", MODELS)
def test_every_model(name):
    build, row = MODELS[name]
    compare(build, row, "mse" if name == "encoder" else "cross entropy", OPTIMISERS["momentum"])


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss(loss):
    compare(*MODELS["mlp"], loss, OPTIMISERS["sgd"])


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser(name):
    compare(*MODELS["mlp"], "cross entropy", OPTIMISERS[name])


TANH = (lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 5)), ROW)
ADAMS = {
    "adam": lambda p: torch.optim.Adam(p, 0.01, eps=1e-12),
    "adam with decay": lambda p: torch.optim.Adam(p, 0.01, betas=(0.8, 0.95), eps=1e-12, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, eps=1e-12, weight_decay=0.1),
}


@pytest.mark.parametrize("name", ADAMS)
def test_adam_differs_only_by_where_eps_stands(name):
    # eps is 2^-24 under the root, of gradients that are 16 times the real ones and rarely below 0.001.
    compare(*TANH, "bce, sum", ADAMS[name], tolerance=1e-7)


def test_adam_at_usual_eps_makes_nearly_the_same_steps():
    compare(*TANH, "cross entropy", lambda p: torch.optim.Adam(p, 0.01), tolerance=1e-4)


SCHEDULES = {
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.1),
    "multi step": lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 3], 0.5),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
    "linear": lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.25, 1.0, 3),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_torchs_own(name):
    compare(*MODELS["mlp"], "cross entropy", OPTIMISERS["momentum"], steps=6, scheduler=SCHEDULES[name])


def test_groups_have_their_own_settings():
    def make(parameters):
        biases = [p for p in parameters if p.dim() == 1]
        weights = [p for p in parameters if p.dim() > 1]
        groups = [{"params": weights, "weight_decay": 0.1}, {"params": biases, "lr": 0.2, "momentum": 0.5}]
        return torch.optim.SGD(groups, 0.05)

    training = compare(*MODELS["mlp"], "cross entropy", make)
    assert sorted(training.train.publics()) == ["rate", "rate.1"]
    assert sum("momentum_buffer" in n for n in training.states) == 3


def test_training_goes_on_from_what_the_optimiser_remembers():
    model = MODELS["mlp"][0]().double()
    optimizer = OPTIMISERS["dampening"](model.parameters())
    x, y = batch("cross", ROW, torch.Generator().manual_seed(1))
    for _ in range(2):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    training = capture_training(model, F.cross_entropy, optimizer, (x, y))
    plain = copy.deepcopy(model.state_dict())
    _, states = step(training.train, training.states, encode(training, ["input", "target"], (x, y)),
                     training.optimiser.publics(1))  # fmt: skip
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    for name, value in model.state_dict().items():
        assert not torch.equal(value, plain[name])
        torch.testing.assert_close(states[name], value, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("build", [LeNet, ResNet20])
def test_networks(build):
    row = (1, 28, 28) if build is LeNet else (3, 32, 32)
    compare_classes(build, row)


def compare_classes(build, row):
    torch.manual_seed(2)
    model = build().double()
    plain = copy.deepcopy(model)
    optimizer, theirs = (torch.optim.SGD(m.parameters(), 0.01, momentum=0.9) for m in (model, plain))
    x, y = torch.rand(2, *row, dtype=torch.float64), torch.tensor([3, 9])
    training = capture_training(model, nn.CrossEntropyLoss(), optimizer, (x, y), reveal_loss=False)
    assert [o.name for o in training.train.outputs] == ["in_range.values", "in_range.parameters"]
    assert not any("log_softmax" in str(n.op) for n in training.train.nodes)
    outputs, states = step(training.train, training.states, encode(training, list(training.train.inputs()), (x, y)),
                           training.optimiser.publics(1))  # fmt: skip
    F.cross_entropy(plain.train()(x), y).backward()
    theirs.step()
    for name, value in trained_state(model, states, 1).items():
        torch.testing.assert_close(value, plain.state_dict()[name], atol=1e-9, rtol=1e-9)
    assert outputs["in_range.values"] == 1
