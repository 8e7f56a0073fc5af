#!/bin/sh
# Builds the binary (target/release/privet) and the Python extension (python/privet/_native*.so).
set -eu
cd "$(dirname "$0")/.."

command -v cargo >/dev/null || {
    echo "cargo is not there: install Rust from https://rustup.rs" >&2
    exit 1
}
cargo build --release --locked -p privet-party -p privet-py
# Renamed, not overwritten: a running Python may have the old one mapped.
cp target/release/libprivet_native.so python/privet/_native.part
mv python/privet/_native.part python/privet/_native.abi3.so
echo "built target/release/privet and the extension of python/privet"
