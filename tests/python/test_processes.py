"""Child processes: found, started, watched and ended, over a small program in place of the binary."""

from __future__ import annotations

import os
import time

import pytest

from privet._processes import Processes, binary, last_lines
from privet.errors import SessionError

PROGRAM = """#!/bin/sh
case "$1" in
  init) {init} ;;
  dealer) {dealer} ;;
  party) exec sleep 60 ;;
esac
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    def make(init="true", dealer="exec sleep 60"):
        path = tmp_path / "privet"
        path.write_text(PROGRAM.format(init=init, dealer=dealer))
        path.chmod(0o755)
        monkeypatch.setenv("PRIVET_BINARY", str(path))
        return tmp_path

    return make


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_processes_end_with_the_block(program):
    with Processes(program()) as processes:
        processes.start()
        pids = [child.pid for child in processes._children.values()]
        assert len(pids) == 3 and all(alive(p) for p in pids)
        processes.check()
    assert not any(alive(p) for p in pids)


def test_three_parties_need_no_dealer(program):
    folder = program(init='echo "$@" > "$3.arguments"')
    with Processes(folder / "session", "rep3") as processes:
        processes.initialise(folder / "plan.json", folder / "weights.safetensors")
        processes.folder.mkdir()
        processes.start()
        assert list(processes._children) == ["party0", "party1", "party2"]
    arguments = (folder / "session.arguments").read_text().split()
    assert arguments[arguments.index("--protocol") + 1] == "rep3"
    assert arguments[arguments.index("--security") + 1] == "malicious"


def test_processes_end_when_the_block_fails(program):
    with pytest.raises(RuntimeError, match="user"), Processes(program()) as processes:
        processes.start()
        pids = [child.pid for child in processes._children.values()]
        raise RuntimeError("user's own error")
    assert not any(alive(p) for p in pids)


def test_a_dealer_that_fails_is_quoted(program):
    folder = program(dealer="echo 'port 7700 is in use'; exit 3")
    with Processes(folder) as processes:
        processes.start()
        with pytest.raises(SessionError, match="dealer ended with status 3: port 7700 is in use"):
            processes.while_alive(lambda: time.sleep(30))


def test_an_action_that_fails_keeps_its_error(program):
    def fail():
        raise KeyError("inside")

    with Processes(program()) as processes:
        processes.start()
        with pytest.raises(KeyError, match="inside"):
            processes.while_alive(fail)
        assert processes.while_alive(lambda: 5) == 5


def test_init_that_fails_is_quoted(program):
    folder = program(init="echo 'no space left' >&2; exit 1")
    with Processes(folder) as processes, pytest.raises(SessionError, match="`privet init` failed: no space left"):
        processes.initialise(folder / "plan.json", folder / "weights.safetensors")


def test_the_model_owner_is_told_where_the_weights_are(program):
    folder = program(init='echo "$@" > "$3.arguments"')
    with Processes(folder / "session") as processes:
        processes.initialise(folder / "plan.json", folder / "weights.safetensors")
    arguments = (folder / "session.arguments").read_text().split()
    assert arguments[arguments.index("--weights") + 1] == str(folder / "weights.safetensors")
    assert "--model-owner" not in arguments, "`privet init` knows which party the protocol gives them to"


def test_without_weights_the_client_owns_the_model(program):
    folder = program(init='echo "$@" > "$3.arguments"')
    with Processes(folder / "session") as processes:
        processes.initialise(folder / "plan.json", None)
    arguments = (folder / "session.arguments").read_text().split()
    assert "--weights" not in arguments
    assert arguments[arguments.index("--model-owner") + 1] == "client:client"


def test_a_missing_binary_is_explained(monkeypatch, tmp_path):
    monkeypatch.setenv("PRIVET_BINARY", str(tmp_path / "none"))
    with pytest.raises(SessionError, match="make build"):
        binary()


def test_last_lines():
    assert last_lines("a\nb\nc\n", 2) == "b\nc"
    assert last_lines("") == "it said nothing"
