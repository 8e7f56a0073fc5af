#!/bin/sh
# Builds a wheel with the extension and the binary into target/wheels.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh
# Only for the wheel: a binary that stays there would be found before newer ones in target/release.
trap 'rm -rf python/privet/bin' EXIT
mkdir -p python/privet/bin
cp target/release/privet python/privet/bin/privet
venv="$(scripts/venv.sh)"
VIRTUAL_ENV="$venv" "$venv/bin/maturin" build --release --locked --out target/wheels
