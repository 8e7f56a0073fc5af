"""The guard: a row that leaves the range of calibration inside a model is an error that names it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import privet
from privet import models

ROWS = 3


class Gate(nn.Module):
    """One direction that calibration never takes is amplified."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = nn.Linear(12, 64), nn.Linear(64, 4)
        with torch.no_grad():
            self.first.weight[:, 0] *= 2.0**14

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def rows(count: int = ROWS) -> torch.Tensor:
    x = torch.randn(count, 12, generator=torch.Generator().manual_seed(2)).clamp(-3, 3)
    x[:, 0] = 0
    return x


def crafted(row: int) -> torch.Tensor:
    x = rows()
    x[row, 0] = 3.0
    return x


@pytest.fixture(scope="module")
def guarded() -> privet.PrivateModel:
    return privet.compile(Gate(), rows(), calibration=rows(256), guard=True, protocol="rep3")


def test_rows_like_the_calibrations_pass(guarded: privet.PrivateModel) -> None:
    assert guarded.guard == "guard"
    assert any("no value leaves its range unseen" in note for note in guarded.notes)
    x = rows(30)
    torch.testing.assert_close(guarded.simulate(x), Gate()(x), atol=1e-2, rtol=1e-2)
    assert guarded.compare(x).beyond == []


@pytest.mark.parametrize("row", range(ROWS))
def test_a_row_out_of_range_is_named(guarded: privet.PrivateModel, row: int) -> None:
    with pytest.raises(privet.OutOfRange, match=f"row {row} left") as caught:
        guarded.simulate(crafted(row))
    assert caught.value.rows == [row]


def test_rows_are_counted_over_runs(guarded: privet.PrivateModel) -> None:
    x = torch.cat([rows(), crafted(1), crafted(0)[:1]])
    with pytest.raises(privet.OutOfRange) as caught:
        guarded.simulate(x)
    assert caught.value.rows == [4, 6]


def test_compare_names_the_layer(guarded: privet.PrivateModel) -> None:
    (first, factor), *_ = guarded.compare(crafted(2)).beyond
    assert first == "first"
    assert factor > 100


def test_without_a_guard_nothing_is_added() -> None:
    private = privet.compile(Gate(), rows(), calibration=rows(256), guard=False)
    assert private.guard is None
    assert private.notes[-1].startswith("guard: off, as asked; ") and "wrong result unseen" in private.notes[-1]
    assert "guard" not in private.plan


def test_notes_say_so_where_a_guard_would_cost_too_much() -> None:
    private = privet.compile(models.LeNet(), torch.rand(1, 1, 28, 28))
    (said,) = [note for note in private.notes if note.startswith("guard:")]
    assert private.guard is None and said.startswith("guard: off, since it would cost"), said
    assert "wrong result unseen" in said and "guard=True" in said


@pytest.mark.parametrize("protocol", ["fss", "rep3", "semi2k"])
def test_parties_say_so(protocol: str) -> None:
    parameters = {"helper": "dealer"} if protocol == "semi2k" else None
    private = privet.compile(
        Gate(), rows(), calibration=rows(256), guard=True, protocol=protocol, parameters=parameters
    )
    with privet.local(private) as session:
        torch.testing.assert_close(session.run(rows()), Gate()(rows()), atol=1e-2, rtol=1e-2)
        with pytest.raises(privet.OutOfRange) as caught:
            session.run(crafted(1))
        assert caught.value.rows == [1]
        learned = session.report.learned() if session.report else {}
        assert sum("guard" in what for all_ in learned.values() for what in all_) == 1
