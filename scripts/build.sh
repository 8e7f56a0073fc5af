#!/bin/sh
# Builds the binary (target/release/privet) and the Python extension (python/privet/_native*.so).
set -eu
cd "$(dirname "$0")/.."

command -v cargo >/dev/null || {
    echo "cargo is not there: install Rust from https://rustup.rs" >&2
    exit 1
}
cargo build --release --locked -p privet-party
venv="$(scripts/venv.sh)"
VIRTUAL_ENV="$venv" "$venv/bin/maturin" develop --release --locked --skip-install --quiet
echo "built target/release/privet and the extension of python/privet"
