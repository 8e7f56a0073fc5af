#!/bin/sh
# The compiler of this workspace's crates for scripts/fuzz.sh: with coverage counters, which stable Rust can place. What comes
# from elsewhere is compiled as for the tests, once; its generic code gets counters where our crates use it.
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
