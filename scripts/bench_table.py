"""Results of ``privet bench`` as Markdown tables, also put into documents between marks.

``bench_table.py FOLDER`` prints; ``bench_table.py FOLDER --write FILE`` replaces what stands between the marks of each
table that the file has and the folder has results for: ``<!-- bench-fss: begin -->`` and
``<!-- bench-fss: end -->``, likewise ``bench-rep3``, ``bench-alone`` and ``bench-falcon``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Result = dict[str, Any]

NOTHING = "No results yet: `make bench` writes them."
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))

FALCON = {
    "network-a": (0.012, 0.31),
    "network-b": (0.049, 0.52),
    "network-c": (0.51, 3.37),
    "lenet": (0.74, 5.69),
    "alexnet-cifar": (1.35, 8.85),
    "vgg16-cifar": (13.51, 90.1),
    "alexnet-tiny": (19.21, 130.0),
    "vgg16-tiny": (52.56, 395.7),
}
"""Published bytes a party and sample, MB: semi-honest, malicious (Wagh et al., PoPETs 2021; 32 bits, batch 128)."""


def main() -> None:
    """Print the tables, or write them into a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, help="a Markdown file with the marks of at least one table")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), help="only these")
    options = parser.parse_args()
    found = results(options.folder)
    tables = {name: make(found) for name, make in TABLES.items() if name in options.tables}
    if options.write is None:
        print("\n\n".join(f"{name}:\n\n{text}" for name, text in tables.items()))
        return
    page = options.write.read_text()
    written = replaced(page, tables)
    if written is None:
        sys.exit(f"{options.write} must have one pair of marks of at least one table of {', '.join(TABLES)}")
    options.write.write_text(written)


def replaced(page: str, tables: dict[str, str]) -> str | None:
    """The page with its tables, those without results as they were.

    ``None`` where it has none, or half a pair of marks, or one twice.
    """
    any_found = False
    for name, text in tables.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        counts = (page.count(begin), page.count(end))
        if counts == (0, 0):
            continue
        if counts != (1, 1):
            return None
        any_found = True
        if text != NOTHING:
            before, rest = page.split(begin)
            page = f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"
    return page if any_found else None


def results(folder: Path) -> list[Result]:
    """Every result in the folder, in the order of names; other JSON files are left out."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            sys.exit(f"{path} is not JSON: {error}")
        if isinstance(content, dict) and "workload" in content:
            found.append(content)
    return found


def markdown(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    if not rows:
        return NOTHING
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def fss_table(found: list[Result]) -> str:
    """Costs of ``fss``."""
    head = ("workload", "ring / fraction bits", "network", "online", "offline", "sent", "rounds", "keys", "memory")
    rows = [
        (
            workload(r),
            bits(r),
            str(r.get("network", "")),
            seconds(r, "online_s"),
            seconds(r, "offline_s"),
            size(r.get("bytes_sent")),
            str(r.get("rounds", "")),
            size(r.get("key_bytes")),
            memory(r),
        )
        for r in found
        if r.get("protocol") == "fss"
    ]
    return markdown(head, rows)


def rep3_table(found: list[Result]) -> str:
    """Costs of ``rep3``, against both kinds of parties."""
    head = (
        "workload",
        "against",
        "ring / fraction bits",
        "network",
        "online",
        "sent",
        "of it proofs",
        "rounds",
        "memory",
    )
    rows = [
        (
            workload(r),
            against(r),
            bits(r),
            str(r.get("network", "")),
            seconds(r, "online_s"),
            size(r.get("bytes_sent")),
            size((r.get("verification") or {}).get("bytes_sent")),
            str(r.get("rounds", "")),
            memory(r),
        )
        for r in found
        if r.get("protocol") == "rep3"
    ]
    return markdown(head, rows)


def alone_table(found: list[Result]) -> str:
    """Costs where the parties prepare among themselves: ``semi2k`` and ``heot``."""
    head = (
        "workload",
        "protocol, parties",
        "ring / fraction bits",
        "network",
        "online",
        "sent",
        "rounds",
        "prepare, processor time of a party",
        "sent",
        "rounds",
        "record",
        "session",
        "memory",
    )
    rows = [
        (
            workload(r),
            f"{r['protocol']}, {r.get('parties', 2)}",
            bits(r),
            str(r.get("network", "")),
            seconds(r, "online_s"),
            size(r.get("bytes_sent")),
            str(r.get("rounds", "")),
            f"{max(before['cpu_s']):.3g} s",
            size(before["sent_bytes"]),
            str(before["rounds"]),
            size(r.get("key_bytes")),
            f"{r['setup_s']:.2g} s" if r.get("setup_s", 0) > 1e-3 else "",
            memory(r),
        )
        for r in found
        if r.get("protocol") in ("semi2k", "heot") and (before := r.get("preparation"))
    ]
    return markdown(head, rows)


def falcon_table(found: list[Result]) -> str:
    """Bytes a party and sample of ``rep3`` beside Falcon's published ones, where measured as there."""
    head = ("network", "semi-honest", "Falcon", "malicious", "Falcon")
    ours = {
        (r["workload"], against(r)): r["bytes_sent"] / r["batch"] / 1e6
        for r in found
        if r.get("protocol") == "rep3" and r.get("bits") == 32 and r.get("batch") == 128
    }

    def cell(name: str, security: str) -> str:
        value = ours.get((name, security))
        return "" if value is None else f"{value:.3g} MB"

    rows = [
        (name, cell(name, "semi-honest"), f"{semi_honest:g} MB", cell(name, "malicious"), f"{malicious:g} MB")
        for name, (semi_honest, malicious) in FALCON.items()
        if any(workload == name for workload, _ in ours)
    ]
    return markdown(head, rows)


TABLES: dict[str, Callable[[list[Result]], str]] = {
    "bench-fss": fss_table,
    "bench-rep3": rep3_table,
    "bench-alone": alone_table,
    "bench-falcon": falcon_table,
}


def workload(result: Result) -> str:
    """Its name, whether it is a step of training, the batch where there is one, and what is not the default."""
    batch = result.get("batch", 1)
    parts = [
        result["workload"],
        "a step of training" if result.get("train") else "",
        f"batch {batch}" if batch != 1 else "",
        "`one_ulp`" if result.get("rounding") == "one_ulp" else "",
        f"weights of {result['model_owner']}" if result.get("model_owner") else "",
    ]
    return ", ".join(part for part in parts if part)


def against(result: Result) -> str:
    """``semi-honest`` or ``malicious``; with the transport where it is not TLS."""
    security = str(result.get("security", ""))
    return security.removesuffix(", TLS")


def bits(result: Result) -> str:
    """Ring and fraction bits."""
    return f"{result.get('bits', '')} / {result.get('fraction', '')}"


def seconds(result: Result, key: str) -> str:
    """A median; nothing where the result does not say."""
    value = result.get(key)
    return f"{value['median']:.3g} s" if isinstance(value, dict) else ""


def memory(result: Result) -> str:
    """Of the process that took most."""
    peak = result.get("peak_rss_mb") or []
    return size(max(peak) * 1e6 if peak else None)


def size(value: float | None) -> str:
    """A number of bytes with a decimal unit."""
    if value is None:
        return ""
    scale, unit = next(((s, u) for s, u in UNITS if value >= s), (1.0, "B"))
    return f"{value / scale:.3g} {unit}"


if __name__ == "__main__":
    main()
