#!/bin/sh
# Every fault that a family's tests must find: scripts/mutations.sh [fss|rep3]
#
# A family's list is the array MUTATIONS in crates/FAMILY/src/mutation.rs. Its tests run once for each name, with the feature
# `mutations` on and PRIVET_MUTATION set to it, until the first test binary fails. Says what was caught and which binary
# caught it; fails if anything was not, and if the tests fail without a mutation.
set -eu
cd "$(dirname "$0")/.."

caught_by() { # crate log
    sed -n 's/^error: test failed, to rerun pass `-p '"$1"' \(.*\)`$/\1/p' "$2" | head -n 1
}

family() {
    crate=privet-$1
    list=crates/$1/src/mutation.rs
    if [ ! -f "$list" ]; then
        echo "$1: there is no $list" >&2
        return 1
    fi
    names=$(sed -n '/const MUTATIONS/,/^\];/s/^ *"\([a-z0-9-]*\)",.*$/\1/p' "$list")
    [ -n "$names" ] || { echo "$1: no names in $list" >&2; return 1; }
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    cargo test -q -p "$crate" --features mutations --no-run >"$log" 2>&1 || { cat "$log"; return 1; }
    if ! cargo test -q -p "$crate" --features mutations >"$log" 2>&1; then
        cat "$log"
        echo "$1: the tests fail without a mutation" >&2
        return 1
    fi
    missed=0
    for name in $names; do
        if PRIVET_MUTATION=$name timeout 900 cargo test -q -p "$crate" --features mutations >"$log" 2>&1; then
            echo "$1 $name: NOT CAUGHT"
            missed=1
        else
            by=$(caught_by "$crate" "$log")
            # neither a typing error in the list nor a build that fails counts
            if [ -z "$by" ]; then
                cat "$log"
                echo "$1 $name: the tests did not run" >&2
                return 1
            fi
            echo "$1 $name: caught ($by)"
        fi
    done
    return $missed
}

status=0
for which in ${1:-fss rep3}; do
    family "$which" || status=1
done
exit $status
