"""Federated learning of three owners, two ways, beside PyTorch's FedAvg on the same rows.

*Averaged*: each owner trains with the server, the two of them as the parties; nobody sees a single owner's model
(:mod:`privet.federated`). *Together* (``--together``): one training over all owners' rows by protocol ``semi2k`` with
a party at every owner, of which all but one may collude.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from pathlib import Path

import torch
from fashion_data import fashion_mnist
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

import privet
from privet import federated, models

RATE = 0.05


def step_of(model: nn.Module) -> torch.optim.SGD:
    """The optimiser of one owner's round."""
    return torch.optim.SGD(model.parameters(), RATE)


def batches(rows: Dataset[tuple[Tensor, ...]], size: int) -> DataLoader[tuple[Tensor, ...]]:
    """In a fixed order, so that both trainings see the same."""
    return DataLoader(rows, size, drop_last=True)


def in_clear(model: nn.Module, loader: DataLoader[tuple[Tensor, ...]]) -> dict[str, Tensor]:
    """An owner's round in PyTorch."""
    local = copy.deepcopy(model)
    optimizer = step_of(local)
    for rows, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(local(rows), labels).backward()
        optimizer.step()
    return local.state_dict()


def averaged(
    model: nn.Module, loaders: list[DataLoader[tuple[Tensor, ...]]], protocol: str, round: int
) -> dict[str, Tensor]:
    """A round in which each owner trains with the server: party 0 is the owner, party 1 the server."""
    n = len(loaders)
    pairs = {(i, j): federated.seed() for i in range(n) for j in range(i + 1, n)}
    names, server, sent, program = list(model.state_dict()), [], [], ""
    for owner, loader in enumerate(loaders):
        local = copy.deepcopy(model)
        with (
            tempfile.TemporaryDirectory(prefix="federated-") as scratch,
            privet.Trainer(local, nn.CrossEntropyLoss(), step_of(local), protocol) as trainer,
        ):
            folder = Path(scratch, "parties")
            trainer.fit(loader, checkpoint_every=len(loader), directory=folder, progress=False)
            program = trainer.program
            parts = [federated.shares(federated.latest(folder / party), program) for party in ("party0", "party1")]
        own, servers = ({name: part[name] for name in names} for part in parts)
        seeds = {i + j - owner: seed for (i, j), seed in pairs.items() if owner in (i, j)}
        sent.append(federated.masked(own, owner, seeds, round))
        server.append(servers)
    return federated.average(server, sent, program, names)


def accuracy(model: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Percent of a test set."""
    with torch.no_grad():
        return 100 * (model(images).argmax(1) == labels).double().mean().item()


def main() -> None:
    """Train both ways, and say how well the models do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--owners", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2048, help="of each owner")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--protocol", choices=["fss", "semi2k"], default="fss", help="of an owner and the server")
    parser.add_argument("--together", action="store_true", help="one training of semi2k over all rows as well")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = models.mlp()
    images, labels = fashion_mnist("train")
    every = TensorDataset(images, labels)
    parts = [range(i * options.rows, (i + 1) * options.rows) for i in range(options.owners)]
    loaders = [batches(Subset(every, part), options.batch) for part in parts]
    test = fashion_mnist("test")

    private, plain = copy.deepcopy(model), copy.deepcopy(model)
    for round in range(options.rounds):
        private.load_state_dict(averaged(private, loaders, options.protocol, round))
        states = [in_clear(plain, loader) for loader in loaders]
        plain.load_state_dict({name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]})
        scores = [accuracy(m, *test) for m in (private, plain)]
        print(f"round {round + 1}: {scores[0]:.2f} % private, {scores[1]:.2f} % by PyTorch's FedAvg")

    if options.together:
        # a batch has as many rows of every owner
        mixed = [i for rows in zip(*parts, strict=True) for i in rows]
        loader = batches(Subset(every, mixed), options.batch * options.owners)
        together = copy.deepcopy(model)
        trainer = privet.Trainer(together, nn.CrossEntropyLoss(), step_of(together), "semi2k", parties=options.owners)
        with trainer:
            trainer.fit(loader, epochs=options.rounds, progress=False)
            together.load_state_dict(trainer.reveal())
        print(f"together: {accuracy(together, *test):.2f} %")


if __name__ == "__main__":
    main()
