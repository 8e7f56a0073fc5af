"""Results of ``privet bench`` as a Markdown table, also put into the README between its two marks.

``bench_table.py FOLDER`` prints; ``bench_table.py FOLDER --write FILE`` replaces what stands between the marks.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
NOTHING = "No results yet: `make bench` writes them."
HEAD = ("workload", "ring / fraction bits", "network", "online", "offline", "sent", "rounds", "keys", "memory")
UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def main() -> None:
    """Print the table, or write it into a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, help="a Markdown file with the two marks")
    options = parser.parse_args()
    text = table(results(options.folder))
    if options.write is None:
        print(text)
        return
    page = options.write.read_text()
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f"{options.write} must have one {BEGIN} and one {END}")
    before, rest = page.split(BEGIN)
    options.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}")


def results(folder: Path) -> list[dict[str, Any]]:
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


def table(found: list[dict[str, Any]]) -> str:
    """A Markdown table of these results."""
    if not found:
        return NOTHING
    rows = [HEAD, *(row(result) for result in found)]
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join([lines[0], "|" + "---|" * len(HEAD), *lines[1:]])


def row(result: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one result; what it does not say stays empty."""

    def time(key: str) -> str:
        value = result.get(key)
        return f"{value['median']:.3g} s" if isinstance(value, dict) else ""

    batch = result.get("batch", 1)
    peak = result.get("peak_rss_mb") or []
    return (
        f"{result['workload']}" + (f", batch {batch}" if batch != 1 else ""),
        f"{result.get('bits', '')} / {result.get('fraction', '')}",
        str(result.get("network", "")),
        time("online_s"),
        time("offline_s"),
        size(result.get("bytes_sent")),
        str(result.get("rounds", "")),
        size(result.get("key_bytes")),
        size(max(peak) * 1e6 if peak else None),
    )


def size(value: float | None) -> str:
    """A number of bytes with a decimal unit."""
    if value is None:
        return ""
    scale, unit = next(((s, u) for s, u in UNITS if value >= s), (1.0, "B"))
    return f"{value / scale:.3g} {unit}"


if __name__ == "__main__":
    main()
