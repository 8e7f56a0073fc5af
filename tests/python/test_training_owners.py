"""Training by real processes on the data of several owners, none of whom sees another's."""

from __future__ import annotations

import subprocess
import threading
import time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import privet
from privet._processes import Processes, binary
from privet.native import available


def built() -> bool:
    try:
        return available() and bool(binary())
    except privet.SessionError:
        return False


pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not built(), reason="not built: make build")]

STEPS = 4
PATIENCE_S = 120
OWNERS = {
    "developer": ["model_owner", "receiver"],
    "north": ["data_owner"],
    "south": ["data_owner.2"],
    "registry": ["label_owner"],
}
"""Clients by the roles that each has."""


def rows():
    random = torch.Generator().manual_seed(1)
    x = torch.randn(8 * STEPS, 6, generator=random)
    return x, x[:, :3].argmax(1)


def part_of(client):
    """What a client has of every batch: five rows, three rows, all targets, or nothing."""
    x, y = (t.reshape(STEPS, 8, *t.shape[1:]) for t in rows())
    parts = {"north": [(b[:5],) for b in x], "south": [(b[5:],) for b in x], "registry": [(b,) for b in y]}
    return parts.get(client, [()] * STEPS)


def trainer_of(protocol):
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    example = [t[:8] for t in rows()]
    owners = {"rows": {"data_owner": 5, "data_owner.2": 3}, "target_owner": "label_owner"}
    return privet.Trainer(model, nn.CrossEntropyLoss(), optimizer, protocol, "semi-honest", example=example, **owners)


def deployed(folder, protocol):
    plan = folder.parent / "program.json"
    plan.write_text(trainer_of(protocol).program)
    command = [binary(), "init", "--local", str(folder), "--plan", str(plan), "--protocol", protocol]
    command += ["--security", "semi-honest", "--data-owner", "client:north", "--model-owner", "client:developer"]
    command += ["--receiver", "client:developer", "--role", "data_owner.2=client:south"]
    subprocess.run([*command, "--role", "label_owner=client:registry"], check=True, capture_output=True)
    return Processes(folder, protocol, "semi-honest")


class Client(threading.Thread):
    """Fits with its own part; the model's owner reveals the model to itself."""

    def __init__(self, folder, name, protocol):
        super().__init__(daemon=True)
        self.folder, self.client = folder / name, name
        self.trainer = trainer_of(protocol)  # here, because tracing by several threads at once is not safe
        self.state = self.error = None

    def run(self):
        try:
            node = self.folder / "node.toml"
            with self.trainer.connect(self.folder, node=node, roles=OWNERS[self.client]) as trainer:
                self.history = trainer.fit(part_of(self.client), progress=False)
                if self.client == "developer":
                    self.state = trainer.reveal()
        except Exception as error:
            self.error = error


@pytest.mark.parametrize("protocol", ["fss", "rep3"])
def test_four_owners_train_one_model(protocol, tmp_path):
    folder = tmp_path / "deployment"
    with deployed(folder, protocol) as processes:
        clients = {name: Client(folder, name, protocol) for name in OWNERS}
        processes.start()
        clients["developer"].start()
        began = folder / "developer" / "training.json"
        while not began.exists() and clients["developer"].is_alive():
            time.sleep(0.05)
        for name in ("north", "south", "registry"):
            clients[name].start()
        deadline = time.monotonic() + PATIENCE_S
        while any(c.is_alive() for c in clients.values()) and time.monotonic() < deadline:
            if found := [c.error for c in clients.values() if c.error is not None]:
                raise found[0]
            time.sleep(0.05)
        assert [(name, c.error) for name, c in clients.items() if c.is_alive() or c.error is not None] == []

    whole = trainer_of(protocol).simulate(DataLoader(TensorDataset(*rows()), 8), progress=False)
    assert clients["developer"].history.losses == pytest.approx(whole.history.losses, abs=1e-5)
    assert all(clients[name].history.steps == STEPS for name in OWNERS)
    assert all(not clients[name].history.losses for name in ("north", "south", "registry"))
    for name, value in whole.state_dict.items():
        torch.testing.assert_close(clients["developer"].state[name], value, atol=1e-5, rtol=0)
