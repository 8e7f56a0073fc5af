"""Plans of several lengths and batches: which one runs, what fills it up, and what comes back."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import privet
from privet._processes import binary
from privet.native import available

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")

IDS = torch.arange(2 * 8).reshape(2, 8) % 11
MASK = torch.tensor([[1] * 8, [1] * 5 + [0] * 3])


class Tagger(nn.Module):
    """A score for every token, and one for the text, of the tokens that the mask leaves."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.place = nn.Parameter(0.1 * torch.randn(8, 6))
        self.tag, self.text = nn.Linear(6, 3), nn.Linear(6, 2)

    def forward(self, ids, mask):
        x = torch.tanh(self.table(ids) + self.place[: ids.shape[1]]) * mask[:, :, None]
        return {"tags": self.tag(x), "text": self.text(x.sum(1) / mask.sum(1, keepdim=True))}


@pytest.fixture(scope="module")
def tagger():
    torch.manual_seed(4)
    return Tagger().eval()


@pytest.fixture(scope="module")
def ladder(tagger):
    pad = {"ids": 0, "mask": 0}
    return privet.Ladder(tagger, (IDS, MASK), lengths=[8, 4], batches=[1, 3], pad=pad, protocol="rep3",
                         security="semi-honest")  # fmt: skip


def request(rows, length):
    random = torch.Generator().manual_seed(rows * 10 + length)
    ids = torch.randint(0, 11, (rows, length), generator=random)
    return ids, torch.ones(rows, length, dtype=torch.int64)


def close(found, model, given):
    with torch.no_grad():
        wanted = model(*given)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, atol=2e-3, rtol=0)


@pytest.mark.parametrize(("rows", "length"), [(1, 4), (2, 3), (3, 8), (4, 6), (7, 1)])
def test_any_rows_and_lengths(ladder, tagger, rows, length):
    given = request(rows, length)
    close(ladder.simulate(*given), tagger, given)


def test_the_rung_is_the_next_one(ladder):
    assert (ladder.lengths, ladder.batches) == ([4, 8], [1, 3])
    assert [ladder.rung(n) for n in (1, 4, 5, 8)] == [4, 4, 8, 8]
    assert [ladder.split(n) for n in (1, 2, 3, 4, 5, 7)] == [[1], [3], [3], [3, 1], [3, 3], [3, 3, 1]]
    assert ladder.estimate(4, 1).total["wire_bytes"] < ladder.estimate().total["wire_bytes"]
    assert ladder.check() == []


def test_weights_of_all_plans_are_kept_once(ladder):
    names = {p["name"]: {n["op"]["name"] for n in p["plan"]["nodes"] if n["op"]["kind"] == "weight"}
             for p in json.loads(ladder.program)["plans"]}  # fmt: skip
    assert sorted(names) == ["length4.rows1", "length4.rows3", "length8.rows1", "length8.rows3"]
    everywhere = set.intersection(*names.values())
    assert {"tag.weight", "text.bias"} <= everywhere
    # places differ with the length
    assert any(n.startswith("length4.rows1.") for n in names["length4.rows1"])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (request(1, 9), "a length of 9; the plans take up to 8"),
        (request(1, 4)[:1], "1 inputs given, the model takes 2: ids, mask"),
        ((request(1, 4)[0], request(1, 5)[1]), "one length, in dimension 1"),
        (({"ids": IDS},), "1 inputs given"),
        ((IDS[:0], MASK[:0]), "at least one row"),
        ((IDS + 11, MASK), "is not from 0 to 10"),
    ],
)
def test_requests_that_cannot_run(ladder, given, says):
    with pytest.raises(privet.InputError, match=says):
        ladder.simulate(*given)


def test_nothing_is_filled_up_unless_somebody_says_with_what(tagger):
    bare = privet.Ladder(tagger, {"ids": IDS, "mask": MASK}, lengths=[4, 8], protocol="rep3")
    assert bare.batches == [2]
    assert bare.simulate({"ids": IDS[:, :4], "mask": MASK[:, :4]})["tags"].shape == (2, 4, 3)
    with pytest.raises(privet.InputError, match=r"the plans take 4, 8: give one of these, or say by `pad`"):
        bare.simulate(IDS[:, :3], MASK[:, :3])


def test_examples_that_are_too_short(tagger):
    with pytest.raises(privet.CaptureError, match="extent 16 in dimension 1"):
        privet.Ladder(tagger, (IDS, MASK), lengths=[8, 16])
    with pytest.raises(ValueError, match="'other' has a length"):
        privet.Ladder(tagger, (IDS, MASK), lengths=[8], pad={"other": 0})
    with pytest.raises(ValueError, match="at least 1"):
        privet.Ladder(tagger, (IDS, MASK), lengths=[0, 8])


def test_one_plan_refuses_another_length_with_the_remedy(tagger):
    private = privet.compile(tagger, (IDS, MASK), "rep3")
    with pytest.raises(privet.InputError, match=r"privet\.Ladder makes plans for several lengths"):
        private.simulate(IDS[:, :4], MASK[:, :4])


def runnable():
    try:
        return bool(binary())
    except privet.SessionError:
        return False


@pytest.mark.e2e
@pytest.mark.skipif(not runnable(), reason="the binary is not built: make build")
@pytest.mark.parametrize("protocol", ["fss", "rep3"])
def test_parties_serve_all_lengths(tagger, tmp_path, protocol):
    made = privet.Ladder(tagger, (IDS, MASK), lengths=[4, 8], batches=[1, 2], pad={"ids": 0, "mask": 0},
                         protocol=protocol)  # fmt: skip
    made.save(tmp_path / "saved")
    known = privet.Ladder.load(tmp_path / "saved")
    assert known.program == made.program
    with pytest.raises(privet.PrivetError, match="only the model's owner"):
        known.simulate(*request(1, 4))
    with made.local(tmp_path / "run") as session:
        session.prepare(2, 4)
        for rows, length in ((2, 3), (3, 7)):
            given = request(rows, length)
            close(session.run(*given), tagger, given)
        assert sorted(session.reports) == ["length8.rows1", "length8.rows2"]
        with known.connect(tmp_path / "run" / "client" / "node.toml") as other:
            given = request(1, 4)
            close(other.run(*given), tagger, given)
            assert list(other.reports) == ["length4.rows1"]
