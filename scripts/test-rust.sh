#!/usr/bin/env bash
# The tests of the Rust crates: those of `cargo test`, but several programs at a time, because many wait for sockets and clocks.
#
#   scripts/test-rust.sh [-p CRATE...]    which crates, as `cargo test` takes them; all but the Python extension if none is named
#
# Each program's output is kept apart. A line says how a program ended and after how long; what failed is shown whole, at the end.
# The last line counts all tests.
# TEST_JOBS: how many at a time (processors and one more, at most 8). TEST_LOGS: a folder that keeps all outputs.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null
# The family of tests/clear, which no release build takes: what tests build has it, so that nothing is built twice.
[ $# -gt 0 ] || set -- --workspace --exclude privet-py --features privet-party/clear
processors=$(nproc)
at_once=${TEST_JOBS:-$((processors < 8 ? processors + 1 : 8))}
scratch=$(mktemp -d)
set -m # every program in a process group of its own, to be ended with all it started
ends() {
    for group in $(jobs -p); do
        kill -- "-$group" 2>/dev/null || true
    done
    rm -rf "$scratch"
}
trap ends EXIT
logs=${TEST_LOGS:-$scratch}
mkdir -p "$logs"
failures=$scratch/failures
: >"$failures"

# What cargo would run, a line each: the crate's folder, the program, its name here.
programs() {
    cargo test --locked --lib --bins --tests --no-run --message-format json-render-diagnostics "$@" |
        sed -nE 's|.*"manifest_path":"([^"]*)/([^"/]*)/Cargo.toml".*"name":"([^"]*)".*"profile":\{[^}]*"test":true[^}]*\}.*"executable":"([^"]+)".*|\1/\2\t\4\t\2/\3|p'
}

# Programs of these names take longest and go first, so that none is left alone at the end; the rest keeps its order.
slowest='all view joint functions secrecy'
slowest_first() {
    awk -F '\t' -v slowest="$slowest" '
        BEGIN { n = split(slowest, names, " "); for (i in names) rank[names[i]] = i }
        { name = $3; sub(/.*\//, "", name); print (name in rank ? rank[name] : n + 1) "\t" $0 }' | sort -s -n -k 1,1 | cut -f 2-
}

# What the closing lines in outputs say together: of one program a line, of documentation a line a crate.
counted() {
    sed -nE 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored;.*/\1 \2 \3/p' "$@" |
        awk '{ passed += $1; failed += $2; ignored += $3 }
            END { printf "%d passed, %d failed, %d skipped\n", passed, failed, ignored }'
}

# One program or command, with its output in a file of its own. It ends with its status, its time and its processors' time.
run() {
    local name=$1 status=0 log times result wall user system
    log=$logs/${name//[\/ ]/-}.log
    times=$scratch/${name//[\/ ]/-}.times
    shift
    local TIMEFORMAT='%0R %0U %0S'
    { time "$@" >"$log" 2>&1 || status=$?; } 2>"$times"
    result="ok, $(counted "$log" | cut -d ' ' -f 1)"
    echo "$log" >>"$scratch/logs"
    if [ "$status" -ne 0 ]; then
        result="FAILED, status $status"
        printf '%s\t%s\t%s\n' "$name" "$status" "$log" >>"$failures"
    fi
    read -r wall user system <"$times"
    printf '%4d s, %4d s of processor  %-26s %s\n' "$wall" $((user + system)) "$name" "$result"
}

# As cargo runs it.
program() (
    cd "$1"
    CARGO_MANIFEST_DIR=$1 exec "$2"
)

beside() {
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do
        wait -n || true
    done
    run "$@" &
}

programs "$@" | slowest_first >"$scratch/programs"
[ -s "$scratch/programs" ] || { echo "no test program was built" >&2; exit 1; }
while IFS=$'\t' read -r folder path name; do
    beside "$name" program "$folder" "$path"
done <"$scratch/programs"
beside "examples in documentation" cargo test --locked --doc "$@"
wait

while IFS=$'\t' read -r name status log; do
    printf '\n== %s failed with status %s; its output:\n' "$name" "$status"
    cat "$log"
done <"$failures"
if [ -s "$failures" ]; then
    printf '\n%d of %d test programs failed:\n' "$(wc -l <"$failures")" "$(($(wc -l <"$scratch/programs") + 1))"
    cut -f 1,2 "$failures" | sed 's/^/  /; s/\t/, status /'
    exit 1
fi
echo "$(($(wc -l <"$scratch/programs") + 1)) test programs, each with its number of tests: none failed"
mapfile -t written <"$scratch/logs"
all=$(counted "${written[@]}")
[[ $all != 0\ * ]] || { echo "no test was run" >&2; exit 1; }
# As cargo says it, for those who read that.
echo "test result: ok. $(sed -E 's/,/;/g; s/skipped/ignored/' <<<"$all"); 0 measured; 0 filtered out; finished in $SECONDS.00s"
echo "rust: $all"
