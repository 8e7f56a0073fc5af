"""Fashion-MNIST: torchvision's download, or the Debian package where only that can be reached."""

from __future__ import annotations

import gzip
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

PACKAGE = "dataset-fashion-mnist"
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 60_000),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 10_000),
}
TIMEOUT_S = 15


def cache() -> Path:
    """Where data and trained weights are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "privet" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def fashion_mnist(part: str) -> tuple[Tensor, Tensor]:
    """Images ``[n, 1, 28, 28]`` in [0, 1] and labels ``[n]`` of ``train`` or ``test``."""
    return digits(find(), part)


def digits(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Images and labels of a folder with MNIST's four files, or with those of a set of its form."""
    images, labels, count = FILES[part]
    pixels = read_idx(folder / images, (count, 28, 28))
    classes = read_idx(folder / labels, (count,))
    return torch.from_numpy(pixels).float().div(255).unsqueeze(1), torch.from_numpy(classes).long()


def find() -> Path:
    """A folder with all files, fetched if there is none yet."""
    names = [name for images, labels, _ in FILES.values() for name in (images, labels)]
    return fetched("Fashion-MNIST", cache() / "FashionMNIST" / "raw", names, (from_torchvision, from_debian))


def fetched(what: str, target: Path, names: Sequence[str], sources: Sequence[Callable[[Path], None]]) -> Path:
    """``target``, with all of ``names`` in it from the first source that has them."""
    if all((target / n).is_file() for n in names):
        return target
    failures = []
    for fetch in sources:
        try:
            fetch(target)
        except Exception as error:  # whatever a source does wrong, the next one may do right
            failures.append(f"{fetch.__name__}: {error}")
            continue
        if all((target / n).is_file() for n in names):
            return target
    raise SystemExit(
        f"{what} could not be fetched:\n  " + "\n  ".join(failures) + f"\nPut {', '.join(names)} into {target}."
    )


def from_torchvision(target: Path) -> None:
    """Download with torchvision, which checks the files' digests."""
    from torchvision.datasets import FashionMNIST

    old = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_S)
    try:
        FashionMNIST(str(target.parents[1]), download=True)
    finally:
        socket.setdefaulttimeout(old)


def from_debian(target: Path) -> None:
    """Fetch the package with apt, which checks its signature, and unpack it without root."""
    print(f"torchvision's servers cannot be reached; fetching the Debian package {PACKAGE} (31 MB)", file=sys.stderr)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        run(["apt-get", "download", PACKAGE], scratch)
        (package,) = Path(scratch).glob("*.deb")
        run(["dpkg", "-x", package.name, "unpacked"], scratch)
        for packed in Path(scratch, "unpacked").rglob("*ubyte*.gz"):
            (target / packed.name.removesuffix(".gz")).write_bytes(gzip.decompress(packed.read_bytes()))


def run(command: list[str], folder: str) -> None:
    """Run a command; its error output is the error."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """An IDX file of bytes with exactly this shape."""
    content = path.read_bytes()
    head = 4 + 4 * len(shape)
    expected = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)
    if content[:head] != expected or len(content) != head + int(np.prod(shape)):
        raise SystemExit(f"{path} is not the expected file; delete it and run again")
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape).copy()


if __name__ == "__main__":
    print(find())
