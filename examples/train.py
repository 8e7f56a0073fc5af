"""Private training on Fashion-MNIST: a tutorial that runs.

Four steps: an ordinary PyTorch set-up, a trainer around it, training, and the trained model for its owner. With
``--simulate`` the integers of a private run are computed in this process, without parties, keys or privacy: the same
numbers up to the coins of rounding, in less time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from fashion_data import fashion_mnist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import privet
from privet import models
from privet.protocols import PROTOCOLS

NETWORKS = {"cnn2": models.cnn2, "lenet": models.LeNet, "mlp": models.mlp}


def noise(part: str) -> tuple[torch.Tensor, torch.Tensor]:
    """What stands for images and labels where only the costs matter."""
    rows = 6_000 if part == "train" else 1_000
    return torch.rand(rows, 1, 28, 28), torch.randint(0, 10, (rows,))


def main() -> None:
    """Train, compare with PyTorch on the same batches, and test the revealed model in the clear."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("train-out"), help="folder for the loss curves and the model")
    parser.add_argument("--data", choices=["fashion", "random"], default="fashion", help="random: noise, no download")
    parser.add_argument("--model", choices=sorted(NETWORKS), default="cnn2")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, help="at most so many steps; by default a whole epoch")
    parser.add_argument("--test", type=int, default=1024, help="test images for the private evaluation")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="fss")
    parser.add_argument("--security", help="semi-honest or malicious; by default the most that the protocol can")
    parser.add_argument("--simulate", action="store_true", help="integers in this process, without parties")
    parser.add_argument("--compare", action="store_true", help="train a plaintext copy on the same batches")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    # 1. What one would write anyway. The loader's order is seeded, so that a training can be gone on with.
    torch.manual_seed(0)
    model = NETWORKS[options.model]()
    if options.optimizer == "sgd":
        optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    order = torch.Generator().manual_seed(1)
    part_of = fashion_mnist if options.data == "fashion" else noise
    loader = DataLoader(TensorDataset(*part_of("train")), options.batch, shuffle=True, generator=order, drop_last=True)
    images, labels = part_of("test")
    some = DataLoader(TensorDataset(images[: options.test], labels[: options.test]), options.batch)

    # 2. The trainer: nothing else changes.
    example = next(iter(loader))
    trainer = privet.Trainer(
        model, nn.CrossEntropyLoss(), optimizer, options.protocol, options.security, example=example
    )
    if problems := trainer.check():
        raise SystemExit("\n".join(f"{p['op']} at {p['source']}: {p['remedy']}" for p in problems))
    print(trainer.estimate(batches=len(loader)))

    # 3. Training, with an evaluation on test images whose labels stay here.
    started = time.monotonic()
    if options.simulate:
        trained = trainer.simulate(loader, steps=options.steps, evaluate=some, compare=options.compare)
        history, state = trained.history, trained.state_dict
    else:
        with trainer:
            history = trainer.fit(loader, steps=options.steps, evaluate=some, compare=options.compare)
            state = trainer.reveal(to="model-owner")
            print(trainer.report())
    print(f"{time.monotonic() - started:.1f} s\n{history}")

    # 4. The model's owner has an ordinary state_dict.
    model.load_state_dict(state)
    with torch.no_grad():
        right = (model.eval()(images).argmax(1) == labels).double().mean()
    print(f"revealed model, all {len(labels)} test images in the clear: {100 * right:.2f}%")
    torch.save(state, options.out / "model.pt")
    print(f"loss curves: {history.save_html(options.out / 'losses.html')}")


if __name__ == "__main__":
    main()
