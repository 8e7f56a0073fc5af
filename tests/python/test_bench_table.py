"""Tables of benchmark results."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "bench_table.py"


@pytest.fixture(scope="module")
def bench_table():
    spec = importlib.util.spec_from_file_location("bench_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(workload, protocol, security, **more):
    base = {"workload": workload, "protocol": protocol, "security": f"{security}, TLS", "batch": 128, "bits": 32}
    return {**base, "bytes_sent": 128_000_000, "rounds": 9, **more}


def test_results_go_to_the_table_of_their_protocol(bench_table):
    prepared = {"sent_bytes": 7_000_000, "received_bytes": 7_000_000, "rounds": 21, "cpu_s": [0.25, 0.75]}
    found = [
        result("lenet", "fss", "semi-honest", key_bytes=5_000_000),
        result("lenet", "rep3", "semi-honest", bytes_sent=64_000_000),
        result("lenet", "rep3", "malicious", verification={"bytes_sent": 2_500_000}),
        result("mlp", "rep3", "malicious", bits=64),
        result("mlp", "semi2k", "semi-honest", parties=3, preparation=prepared),
        result("cnn2", "semi2k", "semi-honest", parties=2),
    ]
    tables = {name: make(found) for name, make in bench_table.TABLES.items()}
    assert tables["bench-fss"].count("lenet") == 1 and "5 MB" in tables["bench-fss"]
    assert "| lenet, batch 128 | malicious | 32 /  |" in tables["bench-rep3"] and "2.5 MB" in tables["bench-rep3"]
    assert (
        "| mlp, batch 128 | semi2k, 3 |" in tables["bench-alone"] and "| 0.75 s | 7 MB | 21 |" in tables["bench-alone"]
    )
    assert "cnn2" not in tables["bench-alone"], "a dealer made its records"
    rows = tables["bench-falcon"].splitlines()[2:]
    assert rows == ["| lenet | 0.5 MB | 0.74 MB | 1 MB | 5.69 MB |"], "64 bits cannot be compared"


def test_only_whole_pairs_of_marks_are_replaced(bench_table):
    page = "a <!-- bench-rep3: begin -->\nold\n<!-- bench-rep3: end --> z"
    written = bench_table.replaced(page, {"bench-fss": "F", "bench-rep3": "R"})
    assert written == "a <!-- bench-rep3: begin -->\nR\n<!-- bench-rep3: end --> z"
    assert bench_table.replaced(page, {"bench-rep3": bench_table.NOTHING}) == page
    for broken in ("nothing", page.replace("end", "fin"), page + page):
        assert bench_table.replaced(broken, {"bench-rep3": "R"}) is None
