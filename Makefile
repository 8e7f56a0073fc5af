# Every target works in a fresh checkout on Debian or Ubuntu with Rust, a C compiler and Python 3.10 or newer: what
# else is needed is installed into a virtual environment outside the checkout, once.
.DEFAULT_GOAL := help
.PHONY: help build wheel demo test test-rust test-python lint lint-text lint-seams lint-rust lint-targets lint-python lint-deps fuzz sanitize timing bench bench-table workloads clean

FUZZ_SECONDS ?= 10
RESULTS ?= benches/results
DEMO ?=
# The family of tests/clear, which no release build takes: what tests build has it, so that nothing is built twice.
CLEAR = --features privet-party/clear

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 16

build: ## the binary (target/release/privet) and the Python extension
	scripts/build.sh

wheel: ## a Python wheel with extension and binary, in target/wheels
	scripts/wheel.sh

demo: build ## private classification of Fashion-MNIST between processes (DEMO='--protocol rep3'); report in demo-out
	scripts/python.sh examples/fashion.py --out demo-out $(DEMO)

test: test-rust test-python ## all tests

test-rust: ## the tests of the Rust crates; no Python needed
	scripts/tools.sh rust cc
	scripts/test-rust.sh

test-python: build ## the tests of the Python package
	scripts/python.sh -m pytest -q

lint: lint-text lint-seams lint-rust lint-python lint-deps ## formatting, lint, types and licences, warnings as errors

# What was built in one checkout may run in another, so tests find files when they run (privet_plan::suite::repository).
lint-text:
	! git grep -nE '^(<<<<<<<|>>>>>>>) '
	! git grep -n 'env!("CARGO_MANIFEST_DIR")' -- '*.rs'

lint-seams: ## no further file names a protocol family outside the families' rooms
	scripts/family-names.sh

lint-rust:
	scripts/tools.sh rust cc
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked $(CLEAR) -- -D warnings
	cargo clippy -p privet-kernels --all-targets --locked --features cuda -- -D warnings

lint-targets: ## the kernels compile for other processors, where their targets can be had
	scripts/tools.sh rust
	scripts/other-targets.sh

lint-python:
	scripts/lint-python.sh

lint-deps: ## licences, sources and known vulnerabilities of what the lock file brings in
	scripts/tools.sh rust cc
	scripts/deny.sh

fuzz: ## every parser for FUZZ_SECONDS (10) each
	scripts/fuzz.sh $(FUZZ_SECONDS)

sanitize: ## the tests of the kernels under AddressSanitizer
	scripts/sanitize.sh

timing: ## whether the kernels' times depend on secrets; needs a quiet machine
	cargo test --release --locked -p privet-kernels --test timing -- --ignored --nocapture --test-threads 1

bench: build ## the benchmark of docs/bench.md into RESULTS (benches/results); needs a quiet machine
	scripts/bench.sh $(RESULTS)

bench-table: ## the tables of RESULTS as Markdown, as in the README
	@python3 scripts/bench_table.py $(RESULTS)

workloads: ## capture the networks of the benchmark again, after a change to the front end
	scripts/python.sh -m privet.workloads

clean: ## what was built in this checkout
	cargo clean
	rm -rf target demo-out python/privet/bin python/privet/_native*.so
