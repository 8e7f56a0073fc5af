#!/bin/sh
# The tests of everything that has unsafe code in its kernels, under AddressSanitizer: every path that the machine has,
# the portable ones among them. The sanitizer's runtime comes with stable Rust; only its flag is called unstable.
# scripts/sanitize.sh [CRATE...]
set -eu
cd "$(dirname "$0")/.."
scripts/tools.sh rust cc
[ $# -gt 0 ] || set -- privet-ring privet-prg privet-kernels privet-ot privet-he
host="$(rustc -vV | sed -n 's/^host: //p')"
case "$host" in
x86_64-*-linux-gnu) ;;
*)
    echo "SKIPPED: the sanitizer's paths are those of x86-64 Linux, this is $host"
    exit 0
    ;;
esac
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
packages=
for crate; do
    packages="$packages -p $crate"
done
# --target keeps the flag away from build scripts. What a test leaks on purpose (threads that end with the process) is no
# finding.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0
# shellcheck disable=SC2086
cargo test --locked --target "$host" $packages --lib --tests
