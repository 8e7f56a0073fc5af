#!/bin/sh
# Checks that the tools named as arguments are there (rust, cc, python), and says how to get those that are not.
set -eu

missing=0
say() {
    echo "missing: $1" >&2
    missing=1
}

need_rust() {
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
    if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
        say "Rust $wanted or newer: install it with rustup"
        return
    fi
    found=$(rustc --version | cut -d' ' -f2)
    oldest=$(printf '%s\n%s\n' "$wanted" "${found%%-*}" | sort -V | head -n1)
    [ "$oldest" = "$wanted" ] || say "Rust $wanted or newer (rustc is $found): rustup update stable"
}

need_cc() {
    command -v "${CC:-cc}" >/dev/null || say "a C compiler (for the TLS library): apt-get install build-essential"
}

need_python() {
    python="${PYTHON:-python3}"
    if ! command -v "$python" >/dev/null; then
        say "Python 3.10 or newer: apt-get install python3 python3-venv"
    elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
        say "Python 3.10 or newer ($python is $("$python" -V 2>&1)): set PYTHON to one"
    elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        say "Python's venv module: apt-get install python3-venv"
    fi
}

for tool; do
    "need_$tool"
done
exit $missing
