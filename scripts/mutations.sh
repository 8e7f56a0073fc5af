#!/usr/bin/env bash
# Makes every known mistake of a crate on purpose, one at a time, and fails where its tests find none.
#
#   scripts/mutations.sh [CRATE [MUTATION...]]    CRATE: ot, he, fss, rep3, semi2k or heot, all if left out; all mutations of its list if none is named
#
# The contract of a crate: a feature `mutations`; the list `mutations!` in src/mutation.rs, one name in quotes a line
# (crates/mutation); the environment variable PRIVET_MUTATION chooses. Prints for each which test found it, and which programs were
# ended by the clock; that alone does not count as found.
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
cargo test --locked -p "privet-$crate" --features mutations --lib --tests --no-run 2>&1 | tee "$log" >&2
mapfile -t tests < <(sed -n 's/^ *Executable .*(\(.*\))$/\1/p' "$log" | sed "s|^[^/]|$PWD/&|")
[ ${#tests[@]} -gt 0 ] || { echo "no test program was built" >&2; exit 1; }

# One failed test is enough, where the harness knows how to stop there (Rust 1.90); the option is called unstable.
options=()
if grep -q -- --fail-fast <<<"$(RUSTC_BOOTSTRAP=1 "${tests[0]}" --help)"; then
    options=(-Z unstable-options --fail-fast)
fi

cd "crates/$crate"
# As where cargo runs them: tests find the repository by it.
export CARGO_MANIFEST_DIR=$PWD
export RUST_BACKTRACE=0 RUSTC_BOOTSTRAP=1 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 # failures here are wanted
unset PRIVET_MUTATION
# Without a mistake all pass. How long they take says in which order they are asked, and when one hangs.
declare -A takes
for test in "${tests[@]}"; do
    began=${EPOCHREALTIME//[!0-9]/}
    "$test" "${options[@]}" >"$log" 2>&1 || { tail -40 "$log" >&2; echo "$test fails without a mutation" >&2; exit 1; }
    takes[$test]=$(((${EPOCHREALTIME//[!0-9]/} - began) / 1000))
done
# Quick ones first. What says why comes before what does not: faults take long, and recorded bytes find any change.
late='/(faults|wire)-[0-9a-f]*$'
mapfile -t tests < <(for test in "${tests[@]}"; do
    [[ $test =~ $late ]] && after=1 || after=0
    printf '%d %d %s\n' $after "${takes[$test]}" "$test"
done | sort -n -k 1,1 -k 2,2 | cut -d ' ' -f 3-)

survived=0
for name in "${names[@]}"; do
    by='' hung=''
    for test in "${tests[@]}"; do
        program=$(basename "$test")
        program=${program%-*}
        status=0
        limit=$((60 + takes[$test] / 50)) # seconds: twenty times as long, and a minute
        PRIVET_MUTATION=$name timeout $limit "$test" "${options[@]}" >"$log" 2>&1 || status=$?
        [ "$status" -ne 0 ] || continue
        by=$(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | paste -sd' ')
        # What hangs has not said that anything is wrong: another program has to.
        if [ "$status" -eq 124 ] && [ -z "$by" ]; then
            hung+=" $program"
            continue
        fi
        by="$program: ${by:-ended with status $status}"
        break
    done
    if [ -n "$by" ]; then
        printf '%-30s caught by %s%s\n' "$name" "$by" "${hung:+ (ended by the clock:$hung)}"
    else
        printf '%-30s NOT CAUGHT%s\n' "$name" "${hung:+, ended by the clock in$hung}"
        survived=$((survived + 1))
    fi
done
[ "$survived" -eq 0 ] || { echo "$survived of ${#names[@]} mutations survive the tests" >&2; exit 1; }
echo "all ${#names[@]} mutations are caught"
