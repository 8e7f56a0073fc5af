#!/bin/sh
# Fuzzes every parser: scripts/fuzz.sh [SECONDS for each target] [TARGET...]. Inputs that fail are saved below
# fuzz/artifacts. Our crates are compiled with coverage counters (scripts/fuzz-rustc.sh), apart from those of the tests.
set -eu
cd "$(dirname "$0")/.."
scripts/tools.sh rust cc
seconds="${1:-10}"
[ $# -gt 0 ] && shift
RUSTC_WORKSPACE_WRAPPER="$PWD/scripts/fuzz-rustc.sh" cargo build --quiet --locked -p privet-fuzz
exec "${CARGO_TARGET_DIR:-target}/debug/privet-fuzz" --seconds "$seconds" "$@"
