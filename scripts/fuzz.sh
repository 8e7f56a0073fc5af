#!/bin/sh
# Fuzzes every parser: scripts/fuzz.sh [SECONDS for each target] [TARGET...]. Inputs that fail are saved below
# fuzz/artifacts. The flags place coverage counters (stable Rust can); code built so lies apart from the rest.
set -eu
cd "$(dirname "$0")/.."
scripts/tools.sh rust cc
seconds="${1:-10}"
[ $# -gt 0 ] && shift
host="$(rustc -vV | sed -n 's/^host: //p')"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/fuzz"
counters='-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters'
# --target keeps the flags away from build scripts, which could not be linked with them.
RUSTFLAGS="$counters" cargo build --quiet --locked -p privet-fuzz --target "$host"
exec "$CARGO_TARGET_DIR/$host/debug/privet-fuzz" --seconds "$seconds" "$@"
