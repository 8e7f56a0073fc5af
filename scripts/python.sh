#!/bin/sh
# Runs Python with this checkout's package: scripts/python.sh examples/quickstart.py
set -eu
root="$(cd "$(dirname "$0")/.." && pwd)"
venv="$("$root/scripts/venv.sh")"
PYTHONPATH="$root/python${PYTHONPATH:+:$PYTHONPATH}" exec "$venv/bin/python" "$@"
