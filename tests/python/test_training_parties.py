"""What a training asks of its client: keys ahead, the record, joining; over a stand-in for the parties."""

from __future__ import annotations

import json
import re

import pytest
import torch
from safetensors.torch import load, save

import privet
from privet.training.parties import Parties


class Client:
    """Counts keys and adds the input to the one state at every step."""

    def __init__(self):
        self.keys = {}
        self.calls = []
        self.state, self.saved = None, {}

    def prepare(self, runs, checks, plan):
        self.calls.append(("prepare", plan, runs))
        self.keys[plan] = self.keys.get(plan, 0) + runs

    def begin_training(self, states, checkpoint_every):
        self.calls.append(("begin", checkpoint_every))
        self.state = load(states)["w"]
        return "ab" * 16

    def resume(self, training):
        self.calls.append(("resume", training))
        return 4

    def join_training(self):
        self.calls.append(("join",))
        return "cd" * 16, 7

    def step(self, plan, inputs, publics):
        self.keys[plan] -= 1
        if self.keys[plan] < 0:
            raise privet.SessionError("no keys are left")
        given = load(inputs)
        if plan == "train":
            self.state = self.state + publics["rate"] * given["x"]
        return save({"w": self.state}), "{}"

    def report(self, plan):
        return None

    def close(self):
        self.calls.append(("close",))


@pytest.fixture
def record(tmp_path):
    return tmp_path / "training.json"


def test_keys_are_dealt_ahead_and_used_once(record):
    client = Client()
    parties = Parties(client, record, dealer=True)
    parties.ahead = 3
    parties.begin({"w": torch.zeros(2)}, 5)
    assert parties.keys_left() == 0
    for i in range(4):
        found = parties.run("train", {"x": torch.ones(2)}, {"rate": 0.5})
        assert parties.step == i + 1
    assert torch.equal(found["w"], torch.full((2,), 2.0))
    assert parties.keys_left() == 2
    parties.run("evaluate", {"x": torch.ones(2)}, {})
    assert [c for c in client.calls if c[0] == "prepare"] == [
        ("prepare", "train", 3),
        ("prepare", "train", 3),
        ("prepare", "evaluate", 1),
    ]
    assert parties.step == 4 and parties.report() is None


def test_no_keys_are_dealt_beyond_the_last_step(record):
    client = Client()
    parties = Parties(client, record, dealer=True)
    parties.ahead, parties.last = 3, 4
    parties.begin({"w": torch.zeros(2)}, 0)
    for _ in range(4):
        parties.run("train", {"x": torch.ones(2)}, {"rate": 0.5})
    assert [c[2] for c in client.calls if c[0] == "prepare"] == [3, 1]
    parties.run("train", {"x": torch.ones(2)}, {"rate": 0.5})
    assert client.calls[-1] == ("prepare", "train", 1)


def test_nothing_is_dealt_without_a_dealer(record):
    client = Client()
    client.keys = {"train": 10}
    parties = Parties(client, record, dealer=False)
    parties.begin({"w": torch.zeros(2)}, 0)
    parties.run("train", {"x": torch.ones(2)}, {"rate": 1.0})
    assert parties.keys_left() is None and not any(c[0] == "prepare" for c in client.calls)


def test_a_training_is_recorded_and_gone_on_with(record):
    client = Client()
    Parties(client, record, dealer=True).begin({"w": torch.zeros(2)}, 5)
    assert json.loads(record.read_text()) == {"training": "ab" * 16}
    parties = Parties(client, record, dealer=True)
    parties.resume()
    assert parties.step == 4 and client.calls[-1] == ("resume", "ab" * 16)


@pytest.mark.parametrize("content", [None, "", "{}", "[1"])
def test_a_record_that_is_none_is_refused(record, content):
    if content is not None:
        record.write_text(content)
    with pytest.raises(privet.SessionError, match=re.escape("training.json names no training")):
        Parties(Client(), record, dealer=True).resume()


def test_who_does_not_own_the_model_joins_and_has_nothing_dealt(record):
    client = Client()
    client.keys, client.state = {"train": 1}, torch.zeros(2)
    parties = Parties(client, record, dealer=True, owns_model=False)
    parties.begin({}, 5)
    assert parties.step == 7 and not record.exists()
    parties.run("train", {"x": torch.ones(2)}, {"rate": 1.0})
    parties.resume()
    assert [c[0] for c in client.calls] == ["join", "join"]
