"""What is kept of a census (docs/census.json), what got worse since, and the tables of docs/models.md."""

from __future__ import annotations

import datetime
import fcntl
import importlib.metadata
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .judge import DIFFERS, LATE, OK, RAW, REFUSED, Row

DOCS = Path(__file__).parents[2] / "docs"
KEPT, PAGE = DOCS / "census.json", DOCS / "models.md"
BEGIN, END = "<!-- census: scripts/census.py -->\n", "<!-- end of the census -->\n"

MODELS = ("transformers", "torchvision", "timm")
"""Packages whose groups are of models."""

ORDER = (OK, REFUSED, DIFFERS, LATE, RAW)
"""From good to bad."""


@dataclass(frozen=True)
class Kept:
    """A row with the day that it is of."""

    row: Row
    date: str


def kept() -> dict[tuple[str, str], Kept]:
    """The rows that there are, by group and name."""
    if not KEPT.is_file() or not KEPT.stat().st_size:
        return {}
    found = (Kept(Row(**entry["row"]), entry["date"]) for entry in json.loads(KEPT.read_text()))
    return {(k.row.group, k.row.name): k for k in found}


def keep(rows: Iterable[Row]) -> None:
    """Put rows in their places; others may do the same meanwhile."""
    today = datetime.date.today().isoformat()
    new = {(r.group, r.name): Kept(r, today) for r in rows}
    with KEPT.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        KEPT.write_text("[\n" + ",\n".join(json.dumps(asdict(k)) for k in (kept() | new).values()) + "\n]\n")


def worse(rows: Iterable[Row]) -> list[Row]:
    """What a user should never see, and rows that were better when they were kept."""
    known = kept()

    def before(row: Row) -> str:
        at = known.get((row.group, row.name))
        return at.row.status if at else REFUSED

    return [r for r in rows if r.status == RAW or ORDER.index(r.status) > ORDER.index(before(r))]


def summary(rows: Sequence[Row]) -> str:
    """Percentages by group."""
    lines = []
    for group in dict.fromkeys(r.group for r in rows):
        of_group = [r for r in rows if r.group == group]
        good = sum(r.status == OK for r in of_group)
        lines.append(f"{group}: {good} of {len(of_group)} ({100 * good / len(of_group):.1f} %)")
    return "\n".join(lines)


def models(rows: Iterable[Row]) -> str:
    """How many models compile in every way of calling them that is listed."""
    good: dict[tuple[str, str], bool] = {}
    for row in rows:
        package = row.group.split(",")[0]
        if package in MODELS:
            good[package, row.name] = good.get((package, row.name), True) and row.status == OK
    if not good:
        return ""
    count = sum(good.values())
    return f"Of {len(good)} models {count} compile in every way of calling them ({100 * count / len(good):.1f} %)."


def table(known: Sequence[Kept]) -> str:
    """A sentence about models, a line a group, then everything that is not ok with its reason."""
    lines = [models(k.row for k in known), ""]
    lines += ["| group | ok | of | percent | largest difference | seconds | date |", "|---|---|---|---|---|---|---|"]
    for group in dict.fromkeys(k.row.group for k in known):
        of_group = [k for k in known if k.row.group == group]
        good = [k.row for k in of_group if k.row.status == OK]
        gap = max((r.difference for r in good), default=0.0)
        seconds = sum(k.row.seconds for k in of_group)
        share = f"{100 * len(good) / len(of_group):.1f}"
        date = max(k.date for k in of_group)
        lines.append(f"| {group} | {len(good)} | {len(of_group)} | {share} | {gap:.0e} | {seconds:.0f} | {date} |")
    lines += ["", "| not ok | group | why |", "|---|---|---|"]
    for k in known:
        if k.row.status != OK:
            said = k.row.reason if k.row.status == REFUSED else f"{k.row.status}: {k.row.reason}"
            lines.append(f"| {k.row.name} | {k.row.group} | {said.replace('|', '/')[:300]} |")
    return "\n".join(lines) + "\n"


def write(order: Sequence[tuple[str, str]]) -> None:
    """Put what is kept into docs/models.md, in the order of the lists; rows that these no longer have are dropped."""
    known = kept()
    rows = [known[key] for key in order if key in known]
    names = ("torch", "transformers", "torchvision", "timm")
    versions = ", ".join(f"{n} {importlib.metadata.version(n).split('+')[0]}" for n in names)
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}With {versions}.\n\n{table(rows)}{END}{rest.split(END)[1]}")
