"""Training by real processes over mutual TLS: both families, the trained model, and going on after all ended."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import privet
from privet._processes import binary
from privet.native import available


def built() -> bool:
    try:
        return available() and bool(binary())
    except privet.SessionError:
        return False


pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not built(), reason="not built: make build")]

FAMILIES = [("fss", "semi-honest"), ("rep3", "semi-honest"), ("rep3", "malicious")]


def rows(count=24, seed=1):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=random)
    return TensorDataset(x, x[:, :3].argmax(1))


def trainer_of(protocol, security, **more):
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    return privet.Trainer(model, nn.CrossEntropyLoss(), optimizer, protocol, security, **more)


@pytest.mark.parametrize(("protocol", "security"), FAMILIES)
def test_parties_train_as_pytorch_does(protocol, security):
    loader = DataLoader(rows(), 8)
    with trainer_of(protocol, security) as trainer:
        history = trainer.fit(loader, compare=True, evaluate=loader, evaluate_every=2, progress=False)
        state = trainer.reveal(to="model-owner")
        report = trainer.report()
    assert history.steps == 3 and max(history.differences()) < 1e-4
    assert [e.step for e in history.evaluations] == [2, 3]
    for ours, theirs in zip(history.evaluations, history.plaintext_evaluations, strict=True):
        assert ours.loss == pytest.approx(theirs.loss, abs=1e-4)
    simulated = trainer_of(protocol, security).simulate(loader, progress=False)
    for name, value in simulated.state_dict.items():
        torch.testing.assert_close(state[name], value, atol=1e-5, rtol=0)
    assert report is not None and report.totals["bytes_sent"] > 0
    learned = report.learned()
    assert any("loss" in " ".join(what) for what in learned.values())
    assert all(not what for place, what in learned.items() if place.startswith(("party", "dealer")))


@pytest.mark.parametrize(("protocol", "security"), FAMILIES[:2])
def test_training_goes_on_after_all_processes_ended(protocol, security, tmp_path):
    loader, folder = DataLoader(rows(32), 8), tmp_path / "deployment"
    with trainer_of(protocol, security) as trainer:
        trainer.fit(loader, steps=3, checkpoint_every=2, directory=folder, progress=False)
    training = json.loads((folder / "training.json").read_text())["training"]
    with trainer_of(protocol, security, example=next(iter(loader))) as trainer:
        history = trainer.fit(loader, epochs=2, checkpoint_every=2, directory=folder, resume=True, progress=False)
        state = trainer.reveal()
    assert json.loads((folder / "training.json").read_text())["training"] == training
    assert history.curve.first == 3 and history.steps == 8 and len(history.losses) == 6
    whole = trainer_of(protocol, security).simulate(loader, epochs=2, progress=False)
    assert history.losses == pytest.approx(whole.history.losses[2:], abs=1e-4)
    for name, value in whole.state_dict.items():
        torch.testing.assert_close(state[name], value, atol=1e-4, rtol=0)


def test_what_an_early_stop_leaves_of_a_stream_is_used(tmp_path):
    loader, folder = DataLoader(rows(64), 8), tmp_path / "deployment"
    with trainer_of("fss", "semi-honest") as trainer:
        first = trainer.fit(loader, stop=lambda h: h.steps == 3, directory=folder, progress=False)
        assert first.stopped and first.steps == 3
        early = trainer.reveal()
        second = trainer.fit(loader, evaluate=loader, progress=False)
        assert trainer._parties.keys_left() == 0 and list(folder.rglob("*.keys")) == []
        state, report = trainer.reveal(), trainer.report()
    assert second.steps == 8 and [(e.step, e.rows) for e in second.evaluations] == [(8, 64)]
    assert report.totals["offline_s"] > 0
    assert not torch.equal(early["0.weight"], state["0.weight"])
    whole = trainer_of("fss", "semi-honest").simulate(loader, progress=False)
    assert [*first.losses, *second.losses] == pytest.approx(whole.history.losses, abs=1e-5)
    for name, value in whole.state_dict.items():
        torch.testing.assert_close(state[name], value, atol=1e-5, rtol=0)


def test_nothing_to_go_on_with_is_said(tmp_path):
    with (
        trainer_of("rep3", "semi-honest") as trainer,
        pytest.raises(privet.SessionError, match="names no training to go on with"),
    ):
        trainer.fit(DataLoader(rows(8), 8), directory=tmp_path / "new", resume=True, progress=False)


def test_a_bad_batch_is_named_before_anything_is_shared():
    data = rows(16)
    data.tensors[0][9, 2] = float("nan")
    loader = DataLoader(data, 8)
    with (
        trainer_of("rep3", "semi-honest") as trainer,
        pytest.raises(privet.InputError, match=r"'input' of batch 1, index \[1, 2\]"),
    ):
        trainer.fit(loader, progress=False)
