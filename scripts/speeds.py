"""What runs of larger models take on this machine: seconds, bytes, rounds, keys, and where they go.

    scripts/python.sh scripts/speeds.py NAME... [--family PROTOCOL/SECURITY...] [--runs 5] [--write FOLDER]
    scripts/python.sh scripts/speeds.py --table benches/results-intel-avx512/models

All parties are processes of this machine over TLS on loopback, so they share its cores. Weights are random, but for
`minilm` where its package is installed; figures do not depend on them. Seconds online are from shared inputs to shared
outputs, of the slowest party, with all verification; a run is done once without counting. Processor time is that of
all parties together, which tells more where the machine was not alone. `--write` keeps a file a model and family.
`--table` puts what such a folder holds into docs/models.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import privet
from privet import models
from privet.generation.steps import READ, TOKEN
from privet.models.decoders import Gpt2, Layout
from privet.protocols import PROTOCOLS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- speeds: scripts/speeds.py -->\n", "<!-- end of the speeds -->\n"
NAMED = 6
"""Operations and layers that a result names, the dearest first."""

Inputs = Tensor | Mapping[str, Tensor]


def minilm() -> tuple[nn.Module, Inputs]:
    """MiniLM-L6 on 32 tokens with their mask, to a sentence's vector: with its own weights where they are installed."""
    sys.path.insert(0, str(ROOT / "examples"))
    import sentences

    try:
        model, tokenizer = sentences.packaged()
        given = tokenizer(sentences.texts(1), padding="max_length", truncation=True, max_length=32, return_tensors="pt")
        return model, {name: given[name] for name in ("input_ids", "attention_mask")}
    except ImportError:
        from transformers import BertConfig, BertModel

        sizes = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
        model = sentences.Encoder(BertModel(BertConfig(**sizes)))
        mask = torch.ones(1, 32, dtype=torch.int64)
        mask[0, 20:] = 0
        return model, {"input_ids": torch.randint(0, 30522, (1, 32)), "attention_mask": mask}


def levit() -> tuple[nn.Module, Inputs]:
    """LeViT-256 of timm at 224."""
    import timm

    model = timm.create_model("levit_256", pretrained=False)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            nn.init.ones_(module.weight)  # timm's zeros would leave nothing of what its blocks compute
    return model, torch.rand(1, 3, 224, 224)


def levit_block() -> tuple[nn.Module, Inputs]:
    """Its first attention: 4 heads over 196 places of 256 channels, with the projection behind them."""
    model, _ = levit()
    stages: Any = model.stages
    return stages[0].blocks[0].attn, torch.randn(1, 196, 256)


MODELS: dict[str, tuple[str, Callable[[], tuple[nn.Module, Inputs]]]] = {
    "minilm": ("MiniLM-L6, 32 tokens", minilm),
    "vit-b16": ("ViT-B/16 at 224", lambda: (models.vit_b16(), torch.rand(1, 3, 224, 224))),
    "levit-256": ("LeViT-256 at 224", levit),
    "embedding": (
        "128 tokens of 30,522 words, width 384",
        lambda: (nn.Embedding(30522, 384), torch.randint(0, 30522, (1, 128))),
    ),
}
"""What is said of a model, and how to make it with its input."""

PARTS = {"levit-block": ("LeViT-256, first attention", levit_block)}
"""The same of parts, which the kept table has not."""

GPT2 = "gpt2"
ABOUT_GPT2 = "GPT-2, 12 layers of 768, the next token of 50,257 after 64"

Family = tuple[str, str]
FAMILIES: list[Family] = [(p.name, s) for p in PROTOCOLS.values() for s in p.withstands]
AT_ONCE = [(p.name, s) for p in PROTOCOLS.values() for s in p.withstands if p.uses_up is None or p.has_dealer({})]
"""Of these, those whose parties prepare nothing among themselves, which may take hours."""


def processor_seconds() -> float:
    """Of all processes that this one has started, so far."""
    ticks = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            if int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


Report = Callable[[], dict[str, Any]]
"""Do a run, and give its report."""

Outputs = list[Any]
"""What the last run gave, where a model gives tensors."""


@contextmanager
def prepared(private: privet.PrivateModel, inputs: Inputs, runs: int, given: Outputs | None = None) -> Iterator[Report]:
    """Parties with the keys of all runs, so that dealing is not under way in one. ``given`` takes what a run gives."""
    with privet.local(private) as session:
        session.prepare(runs * private.interface.batch)

        def run() -> dict[str, Any]:
            outputs = session.run(inputs)
            if given is not None:
                given[:] = [outputs]
            assert session.report is not None
            return session.report.data

        yield run


@contextmanager
def writing(generator: privet.Generator, runs: int) -> Iterator[Report]:
    """The same of tokens; a report of theirs is of all so far."""
    with generator.local() as writer:
        before: dict[str, Any] | None = None
        engine: Any = writer.engine
        engine._guard(lambda: engine._client.prepare(runs, 0, TOKEN, False))
        engine._left[TOKEN] = runs

        def run() -> dict[str, Any]:
            nonlocal before
            writer.write([11], 1)
            found = engine.report(TOKEN)
            assert found is not None
            now, last = found.data, before
            before = now
            return now if last is None else difference(now, last)

        yield run


def difference(now: dict[str, Any], last: dict[str, Any]) -> dict[str, Any]:
    """The run by which a report of several has grown."""
    one = json.loads(json.dumps(now))
    for key, value in last["totals"].items():
        one["totals"][key] -= value
    for layer, old in zip(one["layers"], last["layers"], strict=True):
        for key in ("seconds", "bytes_sent", "rounds", "key_bytes"):
            layer[key] -= old[key]
    return one


def dearest(seconds: Mapping[str, float]) -> dict[str, float]:
    """The largest few, rounded to a tenth of a millisecond."""
    first = sorted(seconds.items(), key=lambda item: -item[1])[:NAMED]
    return {name: round(value, 4) for name, value in first}


def predicted(estimate: privet.Estimate) -> dict[str, Any]:
    """Seconds on this machine by the estimate, and how they are made up by operations."""
    operations: dict[str, float] = {}
    for node in estimate.data["nodes"]:
        operations[node["op"]] = operations.get(node["op"], 0.0) + node["seconds"]
    return {
        "seconds": round(estimate.total["seconds"], 4),
        "operations": dearest(operations),
        "products": estimate.total["macs"],
        "comparisons": estimate.total["comparisons"],
        "memory_bytes": estimate.total["memory_bytes"],
    }


def measured(run: Report, runs: int) -> dict[str, Any]:
    """Medians of several runs after one that does not count."""
    run()
    online, wall, reports = [], [], []
    busy = processor_seconds()
    for _ in range(runs):
        began = time.monotonic()
        reports.append(run())
        wall.append(time.monotonic() - began)
        online.append(reports[-1]["totals"]["online_s"])
    busy = (processor_seconds() - busy) / runs
    typical = reports[sorted(range(runs), key=online.__getitem__)[runs // 2]]
    layers: dict[str, float] = {}
    for layer in typical["layers"]:
        name = f"{layer['layer'] or '-'}: {layer.get('ops', '')}"
        layers[name] = layers.get(name, 0.0) + layer["seconds"]
    totals = typical["totals"]
    found = {
        "runs": runs,
        "online_s": spread(online),
        "wall_s": spread(wall),
        "processor_s": round(busy, 3),
        "bytes_sent": totals["bytes_sent"],
        "rounds": totals["rounds"],
        "key_bytes": totals["key_bytes"],
        "layers": dearest(layers),
        "peak_rss_bytes": max(p.get("peak_rss_bytes") or 0 for p in typical["parties"] if "party" in p["place"]),
    }
    return found | ({"verification": typical["verification"]} if typical.get("verification") else {})


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compiled(name: str, family: Family, kept: Path | None) -> tuple[nn.Module, privet.PrivateModel, Inputs]:
    """A model, and for a family, with its input; from the folder of models where it is there, and else put there."""
    protocol, security = family
    model, inputs = (MODELS | PARTS)[name][1]()
    model.eval()
    folder = None if kept is None else kept / f"{name}-{protocol}-{security}"
    if folder is not None and (folder / "plan.json").is_file():
        return model, privet.load(folder), inputs
    private = privet.compile(model, inputs, protocol, security=security, guard=False)
    if folder is not None:
        private.save(folder)
    return model, private, inputs


def tried(name: str, family: Family, runs: int, kept: Path | None) -> dict[str, Any]:
    """A model compiled for a family, and run."""
    protocol, security = family
    torch.manual_seed(1)
    head = {
        "model": name,
        "about": ABOUT_GPT2 if name == GPT2 else (MODELS | PARTS)[name][0],
        "protocol": protocol,
        "security": security,
        "date": datetime.date.today().isoformat(),
        "cores": os.cpu_count(),
    }
    if name == GPT2:
        layout = Layout(50257, layers=12, width=768, heads=12, keys=12, hidden=3072, positions=1024)
        generator = privet.Generator(Gpt2(layout), window=64, chunk=1, protocol=protocol, security=security)
        del generator.plans[READ]  # a token costs the same after any prompt, and its plan has weights of its own
        expected = predicted(generator.estimate(network="local", local=True))
        with torch.no_grad(), writing(generator, runs + 1) as run:
            return head | {"load_before": os.getloadavg()[0]} | measured(run, runs) | {"predicted": expected}
    model, private, inputs = compiled(name, family, kept)
    expected = predicted(private.estimate(network="local", local=True))
    given: Outputs = []
    with torch.no_grad(), prepared(private, inputs, runs + 1, given) as run:
        found = head | {"load_before": os.getloadavg()[0]} | measured(run, runs) | {"predicted": expected}
        return found | {"error": error(model, inputs, given[0])}


def error(model: nn.Module, inputs: Inputs, outputs: Any) -> dict[str, float] | None:
    """How far outputs are from PyTorch's, where both are one tensor; and the spread of PyTorch's."""
    expected = model(**inputs) if isinstance(inputs, Mapping) else model(inputs)
    if not isinstance(expected, Tensor) or not isinstance(outputs, Tensor):
        return None
    apart = outputs.double() - expected.double()
    return {
        "mean_square": float(apart.square().mean()),
        "largest": float(apart.abs().max()),
        "spread": float(expected.double().std()),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, and a list of where the time goes."""
    head = [
        "model",
        "family",
        "online, s",
        "least",
        "processor, s",
        "sent, MB",
        "rounds",
        "keys, MB",
        "memory, GB",
        "load",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        online = row["online_s"]
        cells = [
            row["about"],
            f"{row['protocol']}, {row['security']}",
            f"{online['median']:.3g}",
            f"{online['min']:.3g}",
        ]
        cells += [f"{row['processor_s']:.3g}", megabytes(row["bytes_sent"]), f"{row['rounds']:,}"]
        cells += [megabytes(row["key_bytes"]), f"{row['peak_rss_bytes'] / 1e9:.2g}", f"{row['load_before']:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("\nWhere the estimate sees the time, in seconds:\n")
    for row in rows:
        parts = ", ".join(f"{op} {s:.2g}" for op, s in row["predicted"]["operations"].items())
        named = f"- {row['model']}, {row['protocol']}, {row['security']}: {row['predicted']['seconds']:.2g} ({parts})"
        lines.append(named)
    return "\n".join(lines) + "\n"


def megabytes(count: float) -> str:
    """Three digits, or all before the point."""
    return f"{count / 1e6:,.0f}" if count >= 1e9 else f"{count / 1e6:.3g}"


def write_table(folder: Path) -> None:
    """Put the table of all results of a folder into the page."""
    order = [*MODELS, *PARTS, GPT2]
    rows = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    rows.sort(key=lambda r: (order.index(r["model"]), FAMILIES.index((r["protocol"], r["security"]))))
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + table(rows) + END + rest.split(END)[1])


def main() -> None:
    """Run what is named, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*MODELS, *PARTS, GPT2])}")
    known, usual = (["/".join(family) for family in families] for families in (FAMILIES, AT_ONCE))
    parser.add_argument("--family", nargs="+", default=usual, choices=known, help=f"default: {' '.join(usual)}")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--write", type=Path, help="a folder for results")
    parser.add_argument("--models", type=Path, help="a folder for compiled models, which are not compiled again")
    parser.add_argument("--compile", action="store_true", help="only put models there")
    parser.add_argument("--table", type=Path, help="a folder of results that docs/models.md shall show")
    options = parser.parse_args()
    unknown = set(options.names) - {*MODELS, *PARTS, GPT2}
    if unknown or not (options.names or options.table):
        parser.error(f"no model {', '.join(sorted(unknown))}" if unknown else "name a model, or give --table")
    if options.compile and options.models is None:
        parser.error("--compile needs --models")
    warnings.simplefilter("ignore")
    for name in options.names:
        for text in options.family:
            protocol, security = text.split("/")
            if options.compile:
                if name != GPT2:
                    compiled(name, (protocol, security), options.models)
                continue
            row = tried(name, (protocol, security), options.runs, options.models)
            print(json.dumps(row), flush=True)
            if options.write is not None:
                options.write.mkdir(parents=True, exist_ok=True)
                path = options.write / f"{name}-{protocol}-{security}.json"
                path.write_text(json.dumps(row, indent=1) + "\n")
    if options.table is not None:
        write_table(options.table)


if __name__ == "__main__":
    main()
