"""The model owner's part of the demo: train a network for an epoch in plaintext, compile it, save it.

This is a process of its own: the demo itself never loads the weights.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from fashion_data import cache, fashion_mnist
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

import privet
from privet.models import LeNet, mlp
from privet.progress import progress

BATCH = 128
CALIBRATION = 512


NETWORKS: dict[str, Callable[[], nn.Module]] = {"lenet": LeNet, "mlp": mlp}


def trained(name: str, epochs: int) -> nn.Module:
    """The network after so many epochs; kept in the cache for the next time."""
    path = cache() / f"{name}-fashion-{epochs}.safetensors"
    torch.manual_seed(1)
    model = NETWORKS[name]()
    if path.is_file():
        model.load_state_dict(load_file(path))
        return model.eval()
    images, labels = fashion_mnist("train")
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps = epochs * (len(images) // BATCH)
    show = progress(f"training {name} in plaintext", "steps")
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps)
    step = 0
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for i in range(len(images) // BATCH):
            rows = order[i * BATCH : (i + 1) * BATCH]
            optimiser.zero_grad()
            F.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimiser.step()
            schedule.step()
            step += 1
            show(step, steps)
    save_file(model.state_dict(), path)
    return model.eval()


def main() -> None:
    """Train, compile and save; keep plaintext scores of the test images for the comparison at the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the private model")
    parser.add_argument("--images", type=int, required=True, help="test images of the demo")
    parser.add_argument("--batch", type=int, required=True, help="rows of one private run")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--model", choices=sorted(NETWORKS), default="lenet", help="network")
    parser.add_argument("--protocol", default="fss", help="protocol to compile for")
    parser.add_argument("--security", help="what it has to withstand")
    options = parser.parse_args()
    model = trained(options.model, options.epochs)
    typical, _ = fashion_mnist("train")
    family = {"protocol": options.protocol, "security": options.security}
    rows, calibration = typical[: options.batch], typical[:CALIBRATION]
    private = privet.compile(model, rows, calibration=calibration, name=options.model, **family)
    for note in private.notes:
        print(f"  {note}")
    private.save(options.out)
    images, _ = fashion_mnist("test")
    with torch.no_grad():
        scores = model(images[: options.images])
        accuracy = (model(images).argmax(1) == fashion_mnist("test")[1]).float().mean().item()
    (options.out / "plaintext.json").write_text(json.dumps({"accuracy": accuracy, "scores": scores.tolist()}))
    print(f"model owner: {options.model} has {accuracy:.1%} on all 10,000 test images in plaintext")


if __name__ == "__main__":
    main()
