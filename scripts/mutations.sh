#!/usr/bin/env bash
# Makes every known mistake of a crate on purpose, one at a time, and fails where its tests find none.
#
#   scripts/mutations.sh [CRATE [MUTATION...]]    CRATE: ot, he, fss, rep3, semi2k or heot, all if left out; all mutations of its list if none is named
#
# The contract of a crate: a feature `mutations`; the list `mutations!` in src/mutation.rs, one name in quotes a line
# (crates/mutation); the environment variable PRIVET_MUTATION chooses. Prints for each which test found it.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    status=0
    for crate in ot he fss rep3 semi2k heot; do
        "$0" "$crate" || status=1
    done
    exit $status
fi
crate=$1
shift
list="crates/$crate/src/mutation.rs"
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    mapfile -t names < <(sed -n '/^privet_mutation::mutations! {/,/^}/s/^ *"\([a-z0-9-]*\)",$/\1/p' "$list")
fi
[ ${#names[@]} -gt 0 ] || { echo "no mutation is listed in $list" >&2; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test -p "privet-$crate" --features mutations --no-run 2>&1 | tee "$log" >&2
# What says why comes first; faults take long, and recorded bytes find any change.
late='/(faults|wire)-[0-9a-f]*$'
all=$(sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$log" | sed "s|^[^/]|$PWD/&|")
mapfile -t tests < <(grep -vE "$late" <<<"$all"; grep -E "$late" <<<"$all")

cd "crates/$crate"
unset PRIVET_MUTATION
for test in "${tests[@]}"; do
    "$test" >"$log" 2>&1 || { tail -40 "$log" >&2; echo "$test fails without a mutation" >&2; exit 1; }
done

survived=0
for name in "${names[@]}"; do
    by=''
    for test in "${tests[@]}"; do
        status=0
        PRIVET_MUTATION=$name RUST_BACKTRACE=0 timeout 300 "$test" >"$log" 2>&1 || status=$?
        if [ "$status" -ne 0 ]; then
            by=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | paste -sd' ')
            binary=$(basename "$test")
            by="${binary%-*}: ${by:-ended with status $status}"
            break
        fi
    done
    if [ -n "$by" ]; then
        printf '%-30s caught by %s\n' "$name" "$by"
    else
        printf '%-30s NOT CAUGHT\n' "$name"
        survived=$((survived + 1))
    fi
done
[ "$survived" -eq 0 ] || { echo "$survived of ${#names[@]} mutations survive the tests" >&2; exit 1; }
echo "all ${#names[@]} mutations are caught"
