"""The script that trains privately and by PyTorch side by side."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from privet.native import available
from privet.training.history import History, LossCurve

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def fidelity():
    before = list(sys.path)
    sys.path.insert(0, str(SCRIPTS))
    yield importlib.import_module("fidelity")
    sys.path[:] = before


def rows(part):
    count = 64 if part == "train" else 20
    x = torch.randn(count, 6, generator=torch.Generator().manual_seed(count))
    return x, x[:, :3].argmax(1)


@pytest.fixture
def setting(fidelity):
    def network():
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    return replace(fidelity.SETTINGS["cnn2"], network=network, data=rows, batch=16)


def test_only_what_is_said_differs_between_runs_of_the_yardstick(fidelity, setting):
    first = fidelity.plaintext(setting, 4, torch.float32, None)
    assert fidelity.plaintext(setting, 4, torch.float32, None) == first
    moved = fidelity.plaintext(setting, 4, torch.float32, 0)
    assert moved["losses"] != first["losses"] and moved["losses"] == pytest.approx(first["losses"], abs=1e-5)
    assert fidelity.plaintext(setting, 2, torch.float32, None)["losses"] == first["losses"][:2]
    rates = [group["lr"] for group in setting.optimiser(setting.start())[0].param_groups]
    assert rates == [setting.rate]


@pytest.mark.skipif(not available(), reason="the extension is not built: make build")
def test_integers_and_pytorch_start_alike_and_see_the_same_batches(fidelity, setting, tmp_path, monkeypatch):
    monkeypatch.setitem(fidelity.SETTINGS, "cnn2", setting)
    out = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["fidelity.py", "cnn2", "--simulate", "--evaluate", "20", "--out", str(out)])
    fidelity.main()
    found = json.loads(out.read_text())
    assert found["steps"] == len(found["private"]["losses"]) == 4 and found["data"] == "rows"
    assert found["private"]["losses"] == pytest.approx(found["plaintext"]["losses"], abs=1e-5)
    assert found["loss_difference"]["largest"] < 1e-5
    assert found["private"]["evaluation"]["accuracy"] == pytest.approx(found["private"]["accuracy"])
    longest = max(out.read_text().splitlines(), key=len)
    assert longest.strip().startswith('"losses": [') and len(out.read_text().splitlines()) < 40


def test_losses_before_a_resumption_are_kept(fidelity, tmp_path):
    kept = fidelity.Losses(tmp_path)
    for step, loss in enumerate([3.0, 2.0, 1.5], start=1):
        assert kept.keep(History(steps=step, curve=LossCurve("private", 1, [loss]))) is False
    again = fidelity.Losses(tmp_path)
    again.keep(History(steps=3, curve=LossCurve("private", 3, [1.25])))  # from the checkpoint after step 2
    assert again.kept == [3.0, 2.0, 1.25] and fidelity.Losses(tmp_path).kept == again.kept
    assert fidelity.Losses(None).kept == []
