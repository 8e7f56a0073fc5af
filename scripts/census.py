"""Which published models, layers and functions compile unmodified: one line each, and percentages.

    scripts/python.sh scripts/census.py [--group PART]... [--match NAME] [--limit SECONDS] [--keep] [--write]

Models have random weights and few layers: what is looked at is whether `privet.compile` takes them, and whether the
integer plan, run in the clear, is near to PyTorch. What is not, has to be refused with a reason and a remedy. Models of
packages that are not installed are skipped: `scripts/requirements-census.txt` has them. docs/census.json keeps what was
found; the exit code is 1 where a row is worse than there, or an error reached the user that is not privet's own.
"""

from __future__ import annotations

import argparse
import re
import sys

from census_parts import page
from census_parts.groups import groups, missing
from census_parts.work import rows


def main() -> int:
    """The census of what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--group", action="append", default=[], help="part of a group's name, all by default")
    parser.add_argument("--match", default="", help="a regular expression that a name has to hold")
    parser.add_argument("--limit", type=float, default=600.0, help="most seconds of one row")
    parser.add_argument("--list", action="store_true", help="only the names")
    parser.add_argument("--keep", action="store_true", help="put what is found into docs/census.json")
    parser.add_argument("--write", action="store_true", help="put what is kept into docs/models.md")
    options = parser.parse_args()
    for package in missing():
        print(f"{package} is not installed: its models are skipped", file=sys.stderr)
    every = [(group, name) for group, named in groups().items() for name in named]
    wanted = [
        (group, name)
        for group, name in every
        if re.search(options.match, name) and (not options.group or any(part in group for part in options.group))
    ]
    if options.list:
        print("\n".join(f"{group}: {name}" for group, name in wanted))
        return 0
    found = []
    for row in rows(wanted, options.limit):
        found.append(row)
        said = f"{row.seconds:6.1f} s  {row.difference:8.1e}  {row.status}"
        print(f"{row.group:32} {row.name:48} {said} {row.reason[:200]}", flush=True)
        if options.keep:
            page.keep([row])
    print("\n" + page.summary(found))
    bad = page.worse(found)
    for row in bad:
        print(f"worse than kept: {row.group}, {row.name}: {row.status} {row.reason}", file=sys.stderr)
    if options.write:
        page.write(every)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
