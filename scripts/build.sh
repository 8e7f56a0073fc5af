#!/bin/sh
# Builds the binary (target/release/privet) and the Python extension (python/privet/_native.abi3.so).
set -eu
cd "$(dirname "$0")/.."
scripts/tools.sh rust cc python
built="${CARGO_TARGET_DIR:-target}/release"

cargo build --release --locked -p privet-party -p privet-py
# Elsewhere when CARGO_TARGET_DIR says so; scripts and documents name the place in the checkout. A new file under
# the old name, because a running process may still use the old one.
place() {
    [ "$1" -ef "$2" ] && return
    mkdir -p "$(dirname "$2")"
    cp "$1" "$2.new"
    mv -f "$2.new" "$2"
}
place "$built/privet" target/release/privet
place "$built/libprivet_native.so" python/privet/_native.abi3.so
scripts/venv.sh >/dev/null
echo "built target/release/privet and python/privet/_native.abi3.so"
