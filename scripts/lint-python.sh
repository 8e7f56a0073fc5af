#!/bin/sh
# Formatting, lint and types of the Python side.
set -eu
cd "$(dirname "$0")/.."
venv="$(scripts/venv.sh)"
"$venv/bin/ruff" format --check python tests/python examples scripts vectors
"$venv/bin/ruff" check python tests/python examples scripts
"$venv/bin/mypy"
