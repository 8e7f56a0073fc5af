"""Every model tried, with what a run costs on each family and how far it is from PyTorch: a table for docs/models.md.

    scripts/python.sh scripts/gallery.py [--only GROUP] [--match NAME] [--write]

Models are those of `scripts/census_parts` and the smaller ones of `privet.models`, with random weights. What was found
is kept in docs/gallery.json, a row a model with its date, so that a part can be done again; `--write` puts the table of
all rows into docs/models.md. Seconds are estimates on a LAN at the shipped rates, wherever this runs. Differences are
of the integer plan, run in the clear, to PyTorch: the largest, over the largest result or 1, whichever is larger.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import importlib.util
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import torch
from census_parts import networks, pictures, text
from census_parts.judge import flat
from safetensors.torch import save as save_tensors
from torch import nn

import privet
from privet import models
from privet.aim import Aim, network_profile
from privet.native import native
from privet.protocols import PROTOCOLS

DOCS = Path(__file__).parents[1] / "docs"
KEPT, PAGE = DOCS / "gallery.json", DOCS / "models.md"
BEGIN, END = "<!-- gallery: scripts/gallery.py -->\n", "<!-- end of the gallery -->\n"

FAMILIES = [(p.name, s) for p in PROTOCOLS.values() for s in p.withstands]

OWN: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "network_a": (models.network_a, (1, 1, 28, 28)),
    "network_b": (models.network_b, (1, 1, 28, 28)),
    "network_c": (models.network_c, (1, 1, 28, 28)),
    "LeNet": (models.LeNet, (1, 1, 28, 28)),
    "alexnet_cifar": (models.alexnet_cifar, (1, 3, 33, 33)),
    "ResNet20": (models.ResNet20, (1, 3, 32, 32)),
    "bert_small": (models.bert_small, (1, 16, 64)),
    "gpt2_small": (models.gpt2_small, (1, 16, 64)),
    "vit_small": (models.vit_small, (1, 3, 32, 32)),
    "squeezenet": (models.squeezenet, (1, 3, 224, 224)),
    "resnet18": (models.resnet18, (1, 3, 224, 224)),
}
"""Networks of `privet.models` and the shapes that they take."""

Build = Callable[[], tuple[nn.Module, Any]]


def jobs() -> Iterator[tuple[str, str, Build]]:
    """Groups, names and how to make model and inputs; of packages that are installed."""
    for name, (build, shape) in OWN.items():
        yield "privet.models", name, lambda b=build, s=shape: (b(), torch.rand(s))  # type: ignore[misc]
    there = {p: importlib.util.find_spec(p) is not None for p in ("transformers", "torchvision", "timm")}
    if there["transformers"]:
        for name in text.TEXT:
            yield "transformers, ids and mask", name, lambda n=name: text.language(n, "sdpa", True)  # type: ignore[misc]
        for name in pictures.PICTURES:
            yield "transformers, images", name, lambda n=name: pictures.picture(n)  # type: ignore[misc]
    if there["torchvision"]:
        for name in networks.TORCHVISION:
            yield "torchvision", name, lambda n=name: networks.torchvision_model(n)  # type: ignore[misc]
    if there["timm"]:
        for name in networks.TIMM:
            yield "timm", name, lambda n=name: networks.timm_model(n)  # type: ignore[misc]


def cost(captured: privet.Capture, family: tuple[str, str]) -> dict[str, Any]:
    """What a run of a captured model is predicted to cost, or why the family refuses it."""
    try:
        return predicted(captured, family)
    except privet.PrivetError as error:
        lines = str(error).splitlines()
        return {"refused": (lines[1] if len(lines) > 1 else lines[0])[:200]}


def predicted(captured: privet.Capture, family: tuple[str, str]) -> dict[str, Any]:
    """By the estimate on a LAN."""
    graph, tensors = captured.graph.to_json(), save_tensors(captured.parameters)
    bits, aim = privet.Precision().to_json(False), astuple(Aim.of("lan", None))
    plan, _, _ = native().lower(graph, tensors, bits, *family, aim, None, [])
    found = privet.Estimate(json.loads(native().estimate(plan, network_profile("lan"), *family, False, None, []))).total
    names = {"seconds": "seconds", "sent": "wire_bytes", "rounds": "rounds", "keys": "key_bytes"}
    return {ours: found[theirs] for ours, theirs in names.items()}


def tried(group: str, name: str, build: Build) -> dict[str, Any]:
    """A row of the gallery."""
    row: dict[str, Any] = {"group": group, "name": name, "date": datetime.date.today().isoformat()}
    torch.manual_seed(1)
    try:
        model, inputs = build()
        model.eval()
        tensors = [
            t for t in (inputs.values() if isinstance(inputs, dict) else [inputs]) if isinstance(t, torch.Tensor)
        ]
        row["input"] = ", ".join("x".join(map(str, t.shape)) for t in tensors)
        row["parameters"] = sum(p.numel() for p in model.parameters())
        private = privet.compile(model, inputs, *FAMILIES[0][:1], security=FAMILIES[0][1], guard=False)
        problems = private.check()
        if problems:
            row["problem"] = "missing: " + ", ".join(dict.fromkeys(p["op"] for p in problems))
            return row
        with torch.no_grad():
            wanted = next(flat(model(**inputs) if isinstance(inputs, dict) else model(inputs))).double()
        found = next(flat(private.simulate(*tensors))).double()
        row["difference"] = float((found - wanted).abs().max()) / max(1.0, float(wanted.abs().max()))
        owned = private._owned
        assert owned is not None
        row["costs"] = {" ".join(family): cost(owned.captured, family) for family in FAMILIES}
    except Exception as error:  # a model that fails is a row, too
        row["problem"] = f"{type(error).__name__}: {str(error)[:160]}"
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: a table a family and group would be long, so a line has all families."""
    known = list(dict.fromkeys(family for row in rows for family in row.get("costs", {})))
    head = ["model", "input", "difference", *(f"{f}: s / MB / rounds / MB of keys" for f in known), "date"]
    lines = []
    for group in dict.fromkeys(row["group"] for row in rows):
        lines += [f"\n**{group}**\n", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for row in rows:
            if row["group"] != group:
                continue
            cells = [row["name"], row.get("input", "")]
            if "problem" in row:
                cells += [row["problem"].replace("|", "/").replace("\n", " "), *([""] * len(known))]
            else:
                cells += [f"{row['difference']:.0e}", *(short(row["costs"].get(f)) for f in known)]
            lines.append("| " + " | ".join([*cells, row["date"]]) + " |")
    return "\n".join(lines) + "\n"


def short(cost: dict[str, Any] | None) -> str:
    """One cell."""
    if cost is None or "refused" in cost:
        return "" if cost is None else "refused"
    return f"{cost['seconds']:.2g} / {cost['sent'] / 1e6:.3g} / {cost['rounds']:.0f} / {cost['keys'] / 1e6:.3g}"


def kept() -> dict[tuple[str, str], dict[str, Any]]:
    """The rows that there are, by group and name."""
    return (
        {(r["group"], r["name"]): r for r in json.loads(KEPT.read_text())}
        if KEPT.is_file() and KEPT.stat().st_size
        else {}
    )


def good(row: dict[str, Any] | None) -> bool:
    """Whether a row has figures."""
    return row is not None and "problem" not in row


def keep(row: dict[str, Any]) -> None:
    """Put a row in its place; others may do the same meanwhile."""
    with KEPT.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = kept() | {(row["group"], row["name"]): row}
        KEPT.write_text(json.dumps(list(rows.values()), indent=1) + "\n")


def main() -> None:
    """Try what is asked for, keep it, and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="part of a group's name")
    parser.add_argument("--match", default="", help="part of a model's name")
    parser.add_argument("--missing", action="store_true", help="only what is not kept yet")
    parser.add_argument("--write", action="store_true", help="put the table into docs/models.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["PRIVET_PROFILE"] = os.devnull  # the shipped rates, so that rows of several machines compare
    order = []
    for group, name, build in jobs():
        order.append((group, name))
        if (
            options.only not in group
            or options.match not in name
            or (options.missing and good(kept().get((group, name))))
        ):
            continue
        row = tried(group, name, build)
        said = row.get("problem") or f"{row['difference']:.1e}"
        print(f"{group:28} {name:28} {said}", flush=True)
        keep(row)
    known = kept()
    rows = [known[key] for key in [*order, *(k for k in known if k not in order)] if key in known]
    if options.write and rows:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(before + BEGIN + table(rows) + END + rest.split(END)[1])


if __name__ == "__main__":
    sys.exit(main())
