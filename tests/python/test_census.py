"""scripts/census.py: what counts as worse, its tables, and rows that end their process."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from privet.native import available

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module", autouse=True)
def scripts():
    sys.path.insert(0, str(SCRIPTS))
    yield
    sys.path.remove(str(SCRIPTS))


@pytest.fixture
def page(tmp_path, monkeypatch):
    from census_parts import page

    monkeypatch.setattr(page, "KEPT", tmp_path / "census.json")
    return page


def row(name, status, reason="", difference=0.0):
    from census_parts.judge import Row

    return Row("torch.nn", name, status, reason, difference, 1.5)


def test_only_what_got_worse_is_named(page):
    page.keep([row("a", "ok"), row("b", "refused", "why"), row("c", "differs")])
    now = [row("a", "refused"), row("b", "ok"), row("c", "differs"), row("new", "refused"), row("d", "RAW")]
    assert [r.name for r in page.worse(now)] == ["a", "d"]
    page.keep([row("a", "refused")])
    assert [r.name for r in page.worse(now)] == ["d"], "what is kept is replaced"


def test_the_table_counts_and_gives_reasons(page):
    page.keep(
        [row("a", "ok", difference=2e-3), row("b", "refused", "no | rule"), row("c", "no end", "longer than 9 s")]
    )
    table = page.table(list(page.kept().values()))
    assert "| torch.nn | 1 | 3 | 33.3 | 2e-03 | 4 |" in table
    assert "| b | torch.nn | no / rule |" in table and "| c | torch.nn | no end: longer than 9 s |" in table


def test_a_model_counts_where_every_way_of_calling_it_is_ok(page):
    ways = [
        ("transformers, ids", "bert", "ok"),
        ("transformers, ids, eager", "bert", "refused"),
        ("timm", "bert", "ok"),
    ]
    rows = [replace(row(name, status), group=group) for group, name, status in ways]
    assert page.models([*rows, row("Linear", "refused")]).startswith("Of 2 models 1 compile in every way")


def test_rows_are_judged_beside_pytorch():
    from census_parts.cases import function, layer
    from census_parts.judge import judge

    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    assert judge("g", "n", layer(lambda: torch.nn.Linear(4, 2), x)).status == "ok"
    assert judge("g", "n", function(lambda x: (x, x.argsort(1)), x)).status == "ok"
    refused = judge("g", "n", function(torch.i0, x))
    assert refused.status == "refused" and "aten.i0.default" in refused.reason

    def build():
        raise KeyError("raw")

    assert judge("g", "n", build).status == "RAW"


def test_a_plan_that_is_far_off_differs(monkeypatch):
    from census_parts import judge
    from census_parts.cases import layer

    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    monkeypatch.setattr(judge, "WORST", -1.0)
    row = judge.judge("g", "n", layer(lambda: torch.nn.Linear(4, 2), x))
    assert row.status == "differs" and row.reason.startswith("by ")


def test_a_row_that_takes_too_long_ends_alone():
    from census_parts.work import rows

    keys = [("torch.nn", "Linear"), ("torch.nn", "Identity(alone)")]
    first, second = rows(keys, 0.01), rows(keys[1:], 120)
    assert {r.status for r in first} == {"no end"}
    assert [(r.name, r.status) for r in second] == [("Identity(alone)", "ok")]


def test_every_list_has_its_rows():
    from census_parts.groups import groups

    known = groups()
    assert len(known["torch.nn"]) >= 192 and len(known["torch functions"]) >= 309
