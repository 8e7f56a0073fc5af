#!/bin/sh
# Checks what the lock file brings in: licences, sources, known vulnerabilities (deny.toml). Installs cargo-deny into the
# cache outside the checkout, once. Where the advisory database cannot be fetched that part is left out and said, unless
# PRIVET_ADVISORIES=required.
set -eu
cd "$(dirname "$0")/.."
version=0.20.2
tools="${PRIVET_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/privet/tools}"
deny="$tools/bin/cargo-deny"

if [ "$("$deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    echo "installing cargo-deny $version into $tools (this happens once)" >&2
    # Without its targets in the cache of builds: they would never be used again.
    CARGO_TARGET_DIR="$(mktemp -d)" && export CARGO_TARGET_DIR
    trap 'rm -rf "$CARGO_TARGET_DIR"' EXIT
    cargo install --quiet --locked --root "$tools" --version "=$version" cargo-deny
fi

"$deny" --log-level error check --hide-inclusion-graph licenses bans sources
if "$deny" --log-level error fetch db 2>/dev/null; then
    "$deny" --log-level error check --hide-inclusion-graph --disable-fetch advisories
elif [ "${PRIVET_ADVISORIES:-}" = required ]; then
    echo "the advisory database cannot be fetched, and PRIVET_ADVISORIES=required" >&2
    exit 1
else
    echo "SKIPPED: known vulnerabilities, because the advisory database cannot be fetched here"
fi
