#!/bin/sh
# Which files name a protocol family outside the families' rooms: scripts/family-names.txt lists them, and no other may. Whoever
# adds a family adds a crate, a room in crates/party/src/session/family and a line in the registry, and names it nowhere else.
#
#   scripts/family-names.sh           fails where the list lacks a file, or has one that names none any more
#   scripts/family-names.sh --write   writes the list
set -eu
cd "$(dirname "$0")/.."
list=scripts/family-names.txt

# As words (fss, fss_table, privet-rep3) and inside names of types (FssError).
words='(^|[^A-Za-z])(fss|FSS|rep3|REP3|semi2k|SEMI2K|heot|HEOT)([^A-Za-z]|$)'
types='Fss|Rep3|Semi2k|Heot'

found="$(git grep -lE "$words|$types" -- \
    crates python scripts fuzz Makefile Cargo.toml pyproject.toml deny.toml \
    ':!crates/fss' ':!crates/rep3' ':!crates/semi2k' ':!crates/heot' \
    ':!crates/party/src/session/family/*/**' ':!crates/party/src/registry.rs' \
    ':!**/tests/**' ':!**/tests.rs' ':!**/benches/**' ':!**/examples/**' \
    ':!scripts/family-names.*' | LC_ALL=C sort)"

if [ "${1:-}" = --write ]; then
    printf '%s\n' "$found" > "$list"
    exit
fi
if ! printf '%s\n' "$found" | diff -u "$list" - >&2; then
    cat >&2 <<'END'
error: a `+` names a protocol family outside the families' rooms: move what only that family needs into its room, or ask its facts
(crates/family/src/facts.rs). A `-` names none any more: take it off scripts/family-names.txt.
END
    exit 1
fi
