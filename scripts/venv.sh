#!/bin/sh
# Makes the virtual environment that building, tests and the demo use, and prints its folder. It is shared by all
# checkouts and made again only when scripts/requirements.txt changes; one that was left half made is repaired.
# PRIVET_VENV names another folder; PIP_INDEX_URL, PIP_FIND_LINKS and so on work as pip knows them.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
lock="$here/requirements.txt"
venv="${PRIVET_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/privet/venv}"
stamp="$venv/privet-requirements.sha256"

wanted="$(sha256sum <"$lock")"
if [ -x "$venv/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    echo "$venv"
    exit 0
fi

"$here/tools.sh" python
mkdir -p "$(dirname "$venv")"
if command -v flock >/dev/null; then # two checkouts may be built at once
    exec 9>"$venv.lock"
    flock 9
fi
rm -f "$stamp"
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    # Only what is a virtual environment, or nothing, is replaced.
    if [ -e "$venv" ] && [ ! -e "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
        echo "$venv is there and is no virtual environment: move it away, or set PRIVET_VENV" >&2
        exit 1
    fi
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv" >&2
fi
echo "installing the Python packages of scripts/requirements.txt into $venv (PyTorch is large; this happens once)" >&2
if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$lock" >&2; then
    echo "pip could not install them: is the package index reachable? What was fetched is kept; run again to go on" >&2
    exit 1
fi
echo "$wanted" >"$stamp"
echo "$venv"
