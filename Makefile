# privet: `make demo` shows it, `make test` checks it, `make build` leaves the binary at target/release/privet.
.PHONY: build wheel demo test test-rust test-python lint lint-rust lint-python workloads clean

build:
	scripts/build.sh

wheel:
	scripts/wheel.sh

demo: build
	scripts/python.sh examples/fashion.py --out demo-out

test: test-rust test-python

test-rust:
	cargo test --workspace --exclude privet-py --locked

test-python: build
	scripts/python.sh -m pytest -q

lint: lint-rust lint-python

lint-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

lint-python:
	scripts/lint-python.sh

# Captures the networks of the benchmark again, after a change to the front end.
workloads:
	scripts/python.sh -m privet.workloads

clean:
	cargo clean
	rm -rf demo-out python/privet/bin python/privet/_native*.so
