"""Writes ``benches/workloads/NAME.graph.json``: the networks of ``privet bench``, without weights.

Beside some of them goes ``NAME.train.graph.json``, a step of training. Small steps over other layers and losses, which
every family's tests run, go to ``crates/plan/src/suite/steps``.
The files hold shapes and ranges only. The benchmark draws every parameter uniformly from its range, which is how
the ranges were made: weights are uniform with Kaiming's bound, and each BatchNorm gets statistics near those of
its own input, so that activations neither vanish nor grow. Seeds are fixed; this is public benchmark data.

Run ``python -m privet.workloads`` in the repository's root after a change to capture.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from . import models
from .capture import capture
from .graph import Graph
from .training.program import capture_training


@dataclass(frozen=True)
class Workload:
    """A network, the shape of one input row, and the range of its elements."""

    build: Callable[[], nn.Module]
    row: tuple[int, ...]
    low: float
    high: float


# Pixels in [0, 1], or normalised with the mean and deviation of ImageNet.
WORKLOADS = {
    "mlp": Workload(models.mlp, (1, 28, 28), 0.0, 1.0),
    "network-b": Workload(models.network_b, (1, 28, 28), 0.0, 1.0),
    "network-c": Workload(models.network_c, (1, 28, 28), 0.0, 1.0),
    "lenet": Workload(models.LeNet, (1, 28, 28), 0.0, 1.0),
    "alexnet-cifar": Workload(models.alexnet_cifar, (3, 33, 33), -2.2, 2.7),
    "alexnet-tiny": Workload(models.alexnet_tiny, (3, 56, 56), -2.2, 2.7),
    "vgg16-cifar": Workload(models.vgg16_cifar, (3, 32, 32), -2.2, 2.7),
    "vgg16-tiny": Workload(models.vgg16_tiny, (3, 64, 64), -2.2, 2.7),
    "spin-lenet": Workload(models.spin_lenet, (1, 28, 28), 0.0, 1.0),
    "spin-alexnet": Workload(models.spin_alexnet, (3, 32, 32), -2.2, 2.7),
    "spin-vgg16m": Workload(models.spin_vgg16m, (3, 32, 32), -2.2, 2.7),
    "resnet18": Workload(models.resnet18, (3, 224, 224), -2.2, 2.7),
    "resnet50": Workload(models.resnet50, (3, 224, 224), -2.2, 2.7),
    "squeezenet": Workload(models.squeezenet, (3, 224, 224), -2.2, 2.7),
    "vgg16": Workload(models.vgg16, (3, 224, 224), -2.2, 2.7),
    # embeddings, and small ones of the same form for tests
    "bert-base": Workload(models.bert_base, (128, 768), -3.0, 3.0),
    "gpt2": Workload(models.gpt2, (128, 768), -3.0, 3.0),
    "vit-b16": Workload(models.vit_b16, (3, 224, 224), -2.2, 2.7),
    "bert-small": Workload(models.bert_small, (16, 64), -3.0, 3.0),
    "gpt2-small": Workload(models.gpt2_small, (16, 64), -3.0, 3.0),
    "vit-small": Workload(models.vit_small, (3, 32, 32), -2.2, 2.7),
}


@dataclass(frozen=True)
class TrainingWorkload:
    """A step of training: the network of a workload, rows of a batch, momentum."""

    base: Workload
    batch: int
    momentum: float


MNIST = (1, 28, 28)
TRAININGS = {
    "mlp": TrainingWorkload(WORKLOADS["mlp"], 128, 0.0),
    "lenet": TrainingWorkload(WORKLOADS["lenet"], 128, 0.0),
    "spin-lenet": TrainingWorkload(WORKLOADS["spin-lenet"], 128, 0.0),
    "spin-alexnet": TrainingWorkload(WORKLOADS["spin-alexnet"], 128, 0.0),
    "spin-vgg16m": TrainingWorkload(WORKLOADS["spin-vgg16m"], 128, 0.0),
    "cnn2": TrainingWorkload(Workload(models.cnn2, MNIST, 0.0, 1.0), 100, 0.9),
    "cnn3": TrainingWorkload(Workload(models.cnn3, (3, 32, 32), -2.2, 2.7), 100, 0.9),
}
"""Steps with cross entropy and SGD: the batches of Falcon's and Spin's figures, and of Orca's with its momentum."""

CLASSES = 10


@dataclass(frozen=True)
class Step:
    """A small step of training for tests: model, loss, the shape of a row, and whether targets are classes."""

    build: Callable[[], nn.Module]
    loss: nn.Module
    row: tuple[int, ...]
    classes: bool


STEPS = {
    "lines": Step(
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3, padding=1, groups=2), nn.GroupNorm(2, 4), nn.Softplus(), nn.Flatten(), nn.Linear(16, 3)
        ),
        nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 2.0]), label_smoothing=0.1),
        (2, 4),
        True,
    ),
    "curves": Step(
        lambda: nn.Sequential(nn.Conv1d(2, 3, 2, stride=2), nn.ELU(0.7), nn.Flatten(), nn.Linear(6, 3)),
        nn.SmoothL1Loss(beta=0.3),
        (2, 4),
        False,
    ),
}
"""What the networks of the benchmark do not have."""
STEP_ROWS = 3

CALIBRATION_ELEMENTS = 400_000  # of the input: two rows of 3x224x224, capped below
CALIBRATION_ROWS = 64
DIGITS = 3  # of the ranges: more would differ between processors


def uniform(shape: torch.Size | tuple[int, ...], low: float, high: float, random: torch.Generator) -> Tensor:
    """Independent uniform elements."""
    return torch.empty(shape).uniform_(low, high, generator=random)


def draw(model: nn.Module, rows: Tensor, random: torch.Generator) -> None:
    """Fill weights and biases, then BatchNorm statistics during one pass over ``rows``."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            bound = math.sqrt(6.0 / module.weight[0].numel())
            module.weight.data = uniform(module.weight.shape, -bound, bound, random)
            if module.bias is not None:
                module.bias.data = uniform(module.bias.shape, -0.05, 0.05, random)
        elif isinstance(module, nn.LayerNorm):
            module.weight.data = uniform(module.weight.shape, 0.8, 1.2, random)
            module.bias.data = uniform(module.bias.shape, -0.1, 0.1, random)
        elif isinstance(module, models.Vit):
            for free in (module.token, module.positions):
                free.data = uniform(free.shape, -0.1, 0.1, random)

    def settle(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        assert isinstance(norm, nn.BatchNorm2d) and norm.running_mean is not None and norm.running_var is not None
        variance = float(inputs[0].var())
        deviation = math.sqrt(variance)
        norm.running_mean = uniform(norm.running_mean.shape, -0.1 * deviation, 0.1 * deviation, random)
        norm.running_var = uniform(norm.running_var.shape, 0.8 * variance, 1.2 * variance, random)
        norm.weight.data = uniform(norm.weight.shape, 0.8, 1.2, random)
        norm.bias.data = uniform(norm.bias.shape, -0.1, 0.1, random)

    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    hooks = [norm.register_forward_pre_hook(settle) for norm in norms]
    if norms:
        with torch.no_grad():
            model.eval()(rows)
    for hook in hooks:
        hook.remove()


def round_outward(low: float, high: float) -> tuple[float, float]:
    """A range of a few digits that holds the given one."""

    def at(value: float, towards: Callable[[float], int]) -> float:
        if value == 0:
            return 0.0
        place = DIGITS - 1 - math.floor(math.log10(abs(value)))
        return float(f"{towards(value * 10.0**place)}e{-place}")

    return at(low, math.floor), at(high, math.ceil)


def generate(name: str) -> Graph:
    """The graph of a workload for one row, with ranges and without source lines."""
    work = WORKLOADS[name]
    random = torch.Generator().manual_seed(20250101)
    count = min(CALIBRATION_ROWS, CALIBRATION_ELEMENTS // math.prod(work.row))
    rows = uniform((count, *work.row), work.low, work.high, random)
    model = work.build()
    draw(model, rows, random)
    graph = capture(model, rows[:1], name=name, calibration=rows).graph
    for node in graph.nodes:
        node.source = ""  # lines of torchvision would change with its version
        if node.range is not None:
            node.range = round_outward(*node.range)
    return graph


def generate_training(name: str) -> Graph:
    """The graph of a step, with the ranges of states and inputs and without source lines."""
    work = TRAININGS[name]
    random = torch.Generator().manual_seed(20250101)
    rows = uniform((work.batch, *work.base.row), work.base.low, work.base.high, random)
    model = work.base.build()
    draw(model, rows, random)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=work.momentum)
    labels = torch.randint(0, CLASSES, (work.batch,), generator=random)
    training = capture_training(model, nn.CrossEntropyLoss(), optimizer, (rows, labels), name=name)
    for node in training.train.nodes:
        node.source = ""
        if node.kind == "state":
            values = training.states[node.op["name"]]
            node.range = round_outward(float(values.min()), float(values.max()))
        elif node.kind == "input":
            own = (work.base.low, work.base.high)
            node.range = (0.0, 1.0) if node.op["name"] in training.classes else round_outward(*own)
    return training.train


def generate_step(name: str) -> Graph:
    """The graph of a small step, with the ranges of states and inputs and without source lines."""
    work = STEPS[name]
    random = torch.Generator().manual_seed(20250101)
    torch.manual_seed(20250101)
    model = work.build()
    rows = uniform((STEP_ROWS, *work.row), -1.0, 1.0, random)
    classes = torch.randint(0, 3, (STEP_ROWS,), generator=random)
    targets = classes if work.classes else uniform((STEP_ROWS, 3), -1.0, 1.0, random)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    training = capture_training(model, work.loss, optimizer, (rows, targets), name=name)
    for node in training.train.nodes:
        node.source = ""
        if node.kind == "state":
            values = training.states[node.op["name"]]
            node.range = round_outward(float(values.min()), float(values.max()))
        elif node.kind == "input":
            node.range = (0.0 if node.op["name"] in training.classes else -1.0, 1.0)
    return training.train


def main() -> None:
    """Write all or the named files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--out", type=Path, default=Path("benches/workloads"), help="folder to write to")
    parser.add_argument(
        "--steps", type=Path, default=Path("crates/plan/src/suite/steps"), help="folder for small steps"
    )
    options = parser.parse_args()
    known = {**WORKLOADS, **TRAININGS, **STEPS}
    unknown = set(options.names) - set(known)
    if unknown:
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    made: list[tuple[Path, Callable[[str], Graph]]] = []
    for name in options.names or dict.fromkeys([*WORKLOADS, *TRAININGS, *STEPS]):
        made += [(options.out / f"{name}.graph.json", generate)] * (name in WORKLOADS)
        made += [(options.out / f"{name}.train.graph.json", generate_training)] * (name in TRAININGS)
        made += [(options.steps / f"{name}.graph.json", generate_step)] * (name in STEPS)
    for path, make in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make(path.name.split(".")[0]).to_json() + "\n")
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
