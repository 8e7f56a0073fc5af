"""Federated averaging: masks cancel, what the server and an owner see is uniform, and the average is PyTorch's."""

from __future__ import annotations

import copy
import json
import struct

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import privet
from privet import federated
from privet._processes import binary
from privet.native import available

OWNERS = 3


def program(frac=24, bits=64):
    state = {"op": {"kind": "state", "name": "w"}, "ty": {"shape": [8, 16], "bits": bits, "frac": frac}}
    return json.dumps({"plans": [{"name": "train", "plan": {"nodes": [state]}}]})


def pairs(fixed=None):
    """A seed for each two owners; those of owner 0 stay where ``fixed`` has them."""
    both = [(i, j) for i in range(OWNERS) for j in range(i + 1, OWNERS)]
    return {pair: fixed[pair] if fixed and 0 in pair else federated.seed() for pair in both}


def seeds_of(me, all_pairs):
    return {i + j - me: seed for (i, j), seed in all_pairs.items() if me in (i, j)}


def ring(random, shape=(8, 16)):
    return random.integers(0, 2**64, shape, dtype=np.uint64)


def test_the_average_is_that_of_all_models():
    random = np.random.default_rng()
    models = [random.uniform(-4, 4, (8, 16)) for _ in range(OWNERS)]
    owns, server = [], []
    for model in models:
        owns.append({"w": ring(random)})
        server.append({"w": np.round(model * 2**24).astype(np.int64).astype(np.uint64) - owns[-1]["w"]})
    all_pairs = pairs()
    sent = [federated.masked(own, i, seeds_of(i, all_pairs), 7) for i, own in enumerate(owns)]
    found = federated.average(server, sent, program(), ["w"])["w"]
    torch.testing.assert_close(found, torch.from_numpy(sum(models) / OWNERS), atol=1e-7, rtol=0)
    # another round's masks do not cancel these
    sent[0] = federated.masked(owns[0], 0, seeds_of(0, all_pairs), 8)
    assert (federated.average(server, sent, program(), ["w"])["w"] - found).abs().max() > 1
    # numpy would stretch a single number to a whole tensor
    for wrong in ({}, {"w": sent[0]["w"][:1]}, {"w": sent[0]["w"].astype(np.int64)}):
        with pytest.raises(privet.PrivetError, match="share of state 'w'"):
            federated.average(server, [wrong, *sent[1:]], program(), ["w"])


def test_what_the_server_and_an_owner_see_is_uniform_but_for_its_sum():
    """They hold all of the server's shares, owner 0's shares and seeds; owners 1 and 2 share a seed that they lack."""
    random = np.random.default_rng()
    fixed = pairs()
    others = [{"w": ring(random)}, {"w": ring(random)}]
    runs, bits = 64, []
    known = [seeds_of(i, {pair: seed for pair, seed in fixed.items() if 0 in pair}) for i in (1, 2)]
    for _ in range(runs):
        drawn = pairs(fixed)
        sent = [federated.masked(others[i], i + 1, seeds_of(i + 1, drawn), 3)["w"] for i in range(2)]
        # what they know of the masks is taken off
        seen = [sent[i] - federated._mask(i + 1, known[i], 3, "w", (8, 16)) for i in range(2)]
        np.testing.assert_array_equal(seen[0] + seen[1], others[0]["w"] + others[1]["w"])
        for one, own in zip(seen, others, strict=True):
            assert not np.any(one == own["w"]), "a share is seen"
        bits.append(np.unpackbits(seen[0].view(np.uint8)))
    each = np.mean(bits, axis=0)
    # of 8,192 bits in 64 runs each, one is further from half than 0.43 with a probability of 2^-30
    assert np.abs(each - 0.5).max() < 0.43
    assert abs(np.mean(bits) - 0.5) < 6 * 0.5 / np.sqrt(len(bits) * each.size)


def test_an_owner_without_others_and_foreign_files_are_refused(tmp_path):
    own = {"w": np.zeros((8, 16), dtype=np.uint64)}
    with pytest.raises(privet.PrivetError, match="nobody to hide among"):
        federated.masked(own, 0, {}, 0)
    with pytest.raises(privet.PrivetError, match="no seed shared"):
        federated.masked(own, 0, {1: b"short"}, 0)
    file = tmp_path / "5.checkpoint"
    file.write_bytes(b"something else" * 10)
    with pytest.raises(privet.PrivetError, match="no checkpoint"):
        federated.shares(file, program())
    file.write_bytes(b"privetCP" + struct.pack("<I", 2) + b"{}" + bytes(8 * 127) + bytes(32))
    with pytest.raises(privet.PrivetError, match="1016 bytes of shares"):
        federated.shares(file, program())
    with pytest.raises(privet.PrivetError, match="32 ring bits"):
        federated.shares(file, program(bits=32))


def built() -> bool:
    try:
        return available() and bool(binary())
    except privet.SessionError:
        return False


@pytest.mark.e2e
@pytest.mark.skipif(not built(), reason="not built: make build")
@pytest.mark.parametrize("protocol", ["fss", "semi2k"])
def test_parties_average_as_pytorch_does(protocol, tmp_path):
    random = torch.Generator().manual_seed(5)
    torch.manual_seed(5)
    model = nn.Linear(6, 3)
    loss = nn.CrossEntropyLoss()
    server, sent, plain, all_pairs = [], [], [], pairs()
    for owner in range(OWNERS):
        x = torch.randn(16, 6, generator=random)
        loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), 8)
        local = copy.deepcopy(model)
        optimizer = torch.optim.SGD(local.parameters(), 0.2)
        folder = tmp_path / f"owner{owner}"
        with privet.Trainer(local, loss, optimizer, protocol) as trainer:
            trainer.fit(loader, checkpoint_every=2, directory=folder, progress=False)
            own, servers = (
                federated.shares(federated.latest(folder / p), trainer.program) for p in ("party0", "party1")
            )
            text = trainer.program
        sent.append(federated.masked(own, owner, seeds_of(owner, all_pairs), 0))
        server.append(servers)
        for rows, labels in loader:
            optimizer.zero_grad()
            loss(local(rows), labels).backward()
            optimizer.step()
        plain.append(local.state_dict())
    found = federated.average(server, sent, text, list(model.state_dict()))
    for name, value in found.items():
        expected = sum(state[name].double() for state in plain) / OWNERS
        torch.testing.assert_close(value, expected, atol=1e-5, rtol=0)
