#!/bin/sh
# Makes the virtual environment that building, tests and the demo use, once for each version of its package list.
# PRIVET_VENV names another place; PIP_INDEX_URL, PIP_FIND_LINKS and so on work as pip knows them.
set -eu

venv="${PRIVET_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/privet/venv}"
packages='torch>=2.6 torchvision>=0.21 numpy>=1.26 safetensors>=0.4.5 pillow>=10
          pytest>=8 hypothesis>=6.100 ruff>=0.6 mypy>=1.11 maturin>=1.8,<2'
needed='import torch, torchvision, numpy, safetensors, PIL, pytest, hypothesis, mypy, maturin'

if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c "$needed" 2>/dev/null && [ -x "$venv/bin/ruff" ]; then
    echo "$venv"
    exit 0
fi

python="${PYTHON:-python3}"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "privet needs Python 3.10 or newer; set PYTHON to one" >&2
    exit 1
}
if ! "$python" -m venv "$venv" >&2; then
    echo "cannot make a virtual environment: on Debian and Ubuntu, apt-get install python3-venv" >&2
    exit 1
fi
echo "installing Python packages into $venv (PyTorch is large; this happens once)" >&2
# shellcheck disable=SC2086  # a list of requirements
set -f
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages >&2
echo "$venv"
