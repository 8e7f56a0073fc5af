"""Trains a network privately and by PyTorch from the same start on the same batches, and writes down how they part.

    scripts/python.sh scripts/fidelity.py cnn2                      # one epoch of MNIST by parties, fss
    scripts/python.sh scripts/fidelity.py cnn2 --protocol rep3 --security malicious --steps 50
    scripts/python.sh scripts/fidelity.py cnn2 --plaintext          # the yardstick: PyTorch against PyTorch

The yardstick tells what a difference means: PyTorch in float64, and in float32 from weights that differ by 1e-7, are
trainings that nobody would call less correct than PyTorch in float32, and they part from it as well.
docs/numerics.md has the results, which ``scripts/fidelity_plots.py`` draws.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from image_data import cache, cifar10, mnist
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import privet
from privet import models
from privet.protocols import PROTOCOLS, choose

RESULTS = Path(__file__).parents[1] / "benches" / "results"
PERTURBED = 4
CHECKPOINT_EVERY = 20
PERTURBATION = 1e-7


def cnn3_norm() -> nn.Sequential:
    """CNN3 with BatchNorm behind every convolution."""
    layers: list[nn.Module] = []
    for layer in models.cnn3():
        layers.append(layer)
        if isinstance(layer, nn.Conv2d):
            layers.append(nn.BatchNorm2d(layer.out_channels))
    return nn.Sequential(*layers)


@dataclass(frozen=True)
class Setting:
    """What is trained and how; the same for parties and PyTorch."""

    network: Callable[[], nn.Module]
    data: Callable[[str], tuple[Tensor, Tensor]]
    batch: int
    rate: float
    momentum: float = 0.9
    steps: int | None = None
    """At most so many; by default an epoch."""
    begun: int = 0
    """Steps of plaintext training, at batch 128, behind the weights that training starts from."""

    def start(self) -> nn.Module:
        """The network to start from: PyTorch's initialisation, or a checkpoint that is made once and kept."""
        torch.manual_seed(0)
        model = self.network()
        if self.begun:
            kept = cache() / f"{self.network.__name__}-{self.begun}-steps.safetensors"
            if not kept.is_file():
                save_file(begin(model, self.data("train"), self.begun), kept)
            model.load_state_dict(load_file(kept))
        return model

    def loader(self) -> DataLoader[Any]:
        """Batches in the same order whenever it is gone through, because it is made anew each time."""
        order = torch.Generator().manual_seed(1)
        data: Dataset[Any] = TensorDataset(*self.data("train"))
        return DataLoader(data, self.batch, shuffle=True, generator=order, drop_last=True)

    def tests(self, count: int | None = None) -> DataLoader[Any]:
        """Test images in batches."""
        images, labels = self.data("test")
        return DataLoader(TensorDataset(images[:count], labels[:count]), self.batch)

    def optimiser(self, model: nn.Module) -> tuple[torch.optim.Optimizer, Any]:
        """SGD with momentum whose rate falls to 0 in a straight line, step by step."""
        total = self.steps or len(self.loader())
        optimizer = torch.optim.SGD(model.parameters(), self.rate, self.momentum)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / total))


SETTINGS = {
    "cnn2": Setting(models.cnn2, mnist, batch=128, rate=0.05),
    "lenet": Setting(models.LeNet, mnist, batch=128, rate=0.05),
    "resnet20": Setting(models.ResNet20, cifar10, batch=16, rate=0.05, steps=100, begun=300),
    "cnn3-norm": Setting(cnn3_norm, cifar10, batch=16, rate=0.05, steps=100),
    "spin-lenet": Setting(models.spin_lenet, mnist, batch=128, rate=0.05),
    "spin-alexnet": Setting(models.spin_alexnet, cifar10, batch=128, rate=0.01, steps=50, begun=100),
    "spin-vgg16m": Setting(models.spin_vgg16m, cifar10, batch=128, rate=0.01, steps=50, begun=100),
}


def begin(model: nn.Module, data: tuple[Tensor, Tensor], steps: int) -> dict[str, Tensor]:
    """The state of a model after some steps of plain training."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=1e-4)
    order = torch.Generator().manual_seed(2)
    loader = DataLoader(TensorDataset(*data), 128, shuffle=True, generator=order, drop_last=True)
    done = 0
    while done < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            torch.autograd.backward(nn.functional.cross_entropy(model(images), labels))
            optimizer.step()
            done += 1
            if done == steps:
                break
    return model.state_dict()


def plaintext(
    setting: Setting, total: int, dtype: torch.dtype, perturbation: int | None, size: float = PERTURBATION
) -> dict[str, Any]:
    """PyTorch alone: losses and test accuracy; from weights moved by about ``size`` with a seed ``perturbation``."""
    model = setting.start().to(dtype)
    if perturbation is not None:
        noise = torch.Generator().manual_seed(perturbation)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(size * torch.randn(p.shape, generator=noise).to(dtype))
    optimizer, scheduler = setting.optimiser(model)
    losses: list[float] = []
    for (images, labels), _ in zip(setting.loader(), range(total), strict=False):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(dtype)), labels)
        torch.autograd.backward(loss)
        optimizer.step()
        scheduler.step()
        losses.append(float(loss.detach()))
    return {"losses": rounded(losses), "accuracy": accuracy(setting, model, dtype)}


def accuracy(setting: Setting, model: nn.Module, dtype: torch.dtype = torch.float32) -> float:
    """The share of test images that a model in the clear classifies rightly."""
    model.eval()
    with torch.no_grad():
        right = [(model(images.to(dtype)).argmax(1) == labels).double() for images, labels in setting.tests()]
    return float(torch.cat(right).mean())


def yardstick(setting: Setting, total: int, size: float) -> dict[str, Any]:
    """How far trainings by PyTorch part that differ by rounding alone."""
    runs = {"float32": plaintext(setting, total, torch.float32, None)}
    runs["float64"] = plaintext(setting, total, torch.float64, None)
    for seed in range(PERTURBED):
        runs[f"perturbed {seed}"] = plaintext(setting, total, torch.float32, seed, size)
        print({name: f"{100 * run['accuracy']:.2f}%" for name, run in runs.items()}, flush=True)
    scores = [run["accuracy"] for run in runs.values()]
    return {
        "runs": runs,
        "deviation": statistics.stdev(scores),
        "largest_difference": max(abs(s - scores[0]) for s in scores),
    }


def privately(setting: Setting, total: int, options: argparse.Namespace) -> dict[str, Any]:
    """A training by parties, or by the interpreter's integers: losses and test accuracy."""
    model, loader = setting.start(), setting.loader()
    optimizer, scheduler = setting.optimiser(model)
    example = next(iter(setting.loader()))
    trainer = privet.Trainer(
        model, nn.CrossEntropyLoss(), optimizer, options.protocol, options.security, example=example
    )
    settings = {"scheduler": scheduler, "schedule_steps": True, "steps": total}
    settings["evaluate"] = setting.tests(options.evaluate) if options.evaluate else None
    losses = Losses(options.directory)
    started = time.monotonic()
    found: dict[str, Any] = {}
    if options.simulate:
        trained = trainer.simulate(loader, stop=losses.keep, **settings)
        history, state = trained.history, trained.state_dict
    else:
        if losses.kept:
            settings["resume"] = True
        with trainer:
            keep = {"directory": options.directory, "checkpoint_every": CHECKPOINT_EVERY if options.directory else 0}
            history = trainer.fit(loader, stop=losses.keep, **keep, **settings)
            state = trainer.reveal()
            report = trainer.report()
            assert report is not None
            found["totals"] = {key: report.totals[key] for key in ("online_s", "bytes_sent", "rounds", "key_bytes")}
    found["seconds"] = round(time.monotonic() - started, 1)
    model.load_state_dict(state)
    found["private"] = {"losses": rounded(losses.kept), "accuracy": accuracy(setting, model)}
    if history.evaluations:
        last = history.evaluations[-1]
        found["private"]["evaluation"] = {"rows": last.rows, "loss": last.loss, "accuracy": last.accuracy}
    found["plaintext"] = plaintext(setting, total, torch.float32, None)
    differences = [abs(a - b) for a, b in zip(losses.kept, found["plaintext"]["losses"], strict=True)]
    found["loss_difference"] = {"mean": statistics.mean(differences), "largest": max(differences)}
    return found


class Losses:
    """Losses of all steps, also of those before a training was gone on with."""

    def __init__(self, folder: Path | None) -> None:
        self.file = folder / "losses.json" if folder is not None else None
        self.kept: list[float] = json.loads(self.file.read_text()) if self.file and self.file.is_file() else []

    def keep(self, history: privet.History) -> bool:
        """Called after every step; never stops a training."""
        self.kept[history.steps - 1 :] = [history.losses[-1]]
        if self.file is not None:
            self.file.write_text(json.dumps(self.kept))
        return False


def rounded(losses: list[float]) -> list[float]:
    """Nine digits, which tell all numbers of float32 apart."""
    return [float(f"{loss:.9g}") for loss in losses]


def main() -> None:
    """Train and write one JSON file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("setting", choices=sorted(SETTINGS))
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="fss")
    parser.add_argument("--security", help="semi-honest or malicious; by default the most that the protocol can")
    parser.add_argument("--steps", type=int, help="at most so many; the rate falls to 0 over all of the setting's")
    parser.add_argument("--batch", type=int, help="other than the setting's")
    parser.add_argument("--simulate", action="store_true", help="integers in this process, without parties")
    parser.add_argument("--plaintext", action="store_true", help="PyTorch alone, several times: the yardstick")
    parser.add_argument("--perturbation", type=float, default=PERTURBATION, help="of weights, for the yardstick")
    parser.add_argument("--evaluate", type=int, default=0, help="classify so many test images by the parties as well")
    parser.add_argument(
        "--directory", type=Path, help="keep the parties there; the same command again goes on from there"
    )
    parser.add_argument("--out", type=Path, help="the file; by default in benches/results, named by what is done")
    options = parser.parse_args()
    setting = SETTINGS[options.setting]
    if options.batch:
        setting = replace(setting, batch=options.batch)
    family, security = choose(options.protocol, options.security)
    total = min(options.steps or len(setting.loader()), setting.steps or len(setting.loader()))
    what = "plaintext" if options.plaintext else f"{family.name}-{security}{'-simulated' if options.simulate else ''}"
    out = options.out or RESULTS / f"fidelity-{options.setting}-{what}.json"

    found: dict[str, Any] = {
        "setting": options.setting,
        "data": setting.data.__name__,
        "batch": setting.batch,
        "steps": total,
        "rate": setting.rate,
        "momentum": setting.momentum,
        "schedule": "linear to 0",
        "begun": setting.begun,
    }
    if options.plaintext:
        found |= {"perturbation": options.perturbation} | yardstick(setting, total, options.perturbation)
    else:
        how = {"protocol": family.name, "security": security, "simulated": options.simulate}
        found |= how | privately(setting, total, options)
    out.write_text(lines(found) + "\n")
    print(f"{summary(found)}\n{out}")


def lines(found: dict[str, Any]) -> str:
    """JSON with every list of losses on one line."""
    text = json.dumps(found, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda m: re.sub(r"\s+", "", m[0]), text)


def summary(found: dict[str, Any]) -> str:
    """Accuracies and differences in a few words."""
    if "runs" in found:
        return f"largest difference {100 * found['largest_difference']:.2f} points of test accuracy"
    private, torchs = found["private"]["accuracy"], found["plaintext"]["accuracy"]
    apart = found["loss_difference"]
    return (
        f"{found['steps']} steps in {found['seconds']:.0f} s: test accuracy {100 * private:.2f}% private, "
        f"{100 * torchs:.2f}% PyTorch; losses differ by {apart['mean']:.2g} on average, {apart['largest']:.2g} at most"
    )


if __name__ == "__main__":
    main()
