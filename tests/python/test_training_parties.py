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
    """Counts keys and adds the input to the one state at every step. Of a stream only two are there in advance."""

    def __init__(self):
        self.keys = {}
        self.broken = False
        self.calls = []
        self.state, self.saved = None, {}

    def prepare(self, runs, checks, plan, stream):
        self.calls.append(("prepare", plan, runs, "stream" if stream else "at once"))
        self.keys[plan] = self.keys.get(plan, 0) + runs

    def status(self):
        def party(more):
            left = self.keys.get("train", 0)
            stream = {"to_come": max(0, left - 2)} if left else None
            return {"plans": {"train": {"runs_left": left + more if left else None, "stream": stream}}}

        return json.dumps([party(1), party(0)])

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
        if self.broken:
            raise privet.SessionError("no further keys come from the dealer")
        self.keys[plan] -= 1
        if self.keys[plan] < 0:
            raise privet.SessionError("no keys are left")
        given = load(inputs)
        if plan == "train":
            self.state = self.state + publics["rate"] * given["x"]
        return save({"w": self.state})

    def report(self, plan):
        return None

    def close(self):
        self.calls.append(("close",))


@pytest.fixture
def record(tmp_path):
    return tmp_path / "training.json"


def asked(client):
    return [c[1:] for c in client.calls if c[0] == "prepare"]


def train(parties, steps):
    for _ in range(steps):
        found = parties.run("train", {"x": torch.ones(2)}, {"rate": 0.5})
    return found


def test_one_stream_of_keys_serves_all_steps(record):
    client = Client()
    parties = Parties(client, record, prepares=True)
    parties.begin({"w": torch.zeros(2)}, 5)
    assert parties.keys_left() == 0
    parties.expect("train", 5)
    assert torch.equal(train(parties, 2)["w"], torch.full((2,), 1.0))
    assert parties.step == 2 and parties.keys_left() == 2
    parties.expect("evaluate", 3)
    for _ in range(3):
        parties.run("evaluate", {"x": torch.ones(2)}, {})
    train(parties, 3)
    parties.run("reveal", {"x": torch.ones(2)}, {})
    assert asked(client) == [("train", 5, "stream"), ("evaluate", 3, "stream"), ("reveal", 1, "at once")]
    assert parties.step == 5 and parties.keys_left() == 0 and parties.report() is None


def test_what_is_left_of_a_stream_serves_the_next_fit(record):
    client = Client()
    parties = Parties(client, record, prepares=True)
    parties.begin({"w": torch.zeros(2)}, 0)
    parties.expect("train", 6)
    train(parties, 2)  # stopped early
    parties.expect("train", 8)
    train(parties, 8)
    assert asked(client) == [("train", 6, "stream"), ("train", 4, "stream")]
    train(parties, 1)  # nobody said that it would follow
    assert asked(client)[2:] == [("train", 1, "at once")]


def test_after_an_error_keys_are_asked_for_anew(record):
    client = Client()
    parties = Parties(client, record, prepares=True)
    parties.begin({"w": torch.zeros(2)}, 0)
    parties.expect("train", 6)
    train(parties, 2)
    client.broken = True
    with pytest.raises(privet.SessionError, match="no further keys"):
        train(parties, 1)
    client.broken = False
    train(parties, 4)
    assert parties.step == 6 and asked(client) == [("train", 6, "stream"), ("train", 4, "stream")]


def test_nothing_is_dealt_without_a_dealer(record):
    client = Client()
    client.keys = {"train": 10}
    parties = Parties(client, record, prepares=False)
    parties.begin({"w": torch.zeros(2)}, 0)
    parties.run("train", {"x": torch.ones(2)}, {"rate": 1.0})
    assert parties.keys_left() is None and not any(c[0] == "prepare" for c in client.calls)


def test_a_training_is_recorded_and_gone_on_with(record):
    client = Client()
    Parties(client, record, prepares=True).begin({"w": torch.zeros(2)}, 5)
    assert json.loads(record.read_text()) == {"training": "ab" * 16}
    parties = Parties(client, record, prepares=True)
    parties.resume()
    assert parties.step == 4 and client.calls[-1] == ("resume", "ab" * 16)


@pytest.mark.parametrize("content", [None, "", "{}", "[1"])
def test_a_record_that_is_none_is_refused(record, content):
    if content is not None:
        record.write_text(content)
    with pytest.raises(privet.SessionError, match=re.escape("training.json names no training")):
        Parties(Client(), record, prepares=True).resume()


def test_who_does_not_own_the_model_joins_and_has_nothing_dealt(record):
    client = Client()
    client.keys, client.state = {"train": 1}, torch.zeros(2)
    parties = Parties(client, record, prepares=True, owns_model=False)
    parties.begin({}, 5)
    assert parties.step == 7 and not record.exists()
    parties.run("train", {"x": torch.ones(2)}, {"rate": 1.0})
    parties.resume()
    assert [c[0] for c in client.calls] == ["join", "join"]
