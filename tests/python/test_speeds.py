"""scripts/speeds.py: what it makes of reports, and its table."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from privet.native import available

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def speeds():
    spec = importlib.util.spec_from_file_location("speeds", ROOT / "scripts" / "speeds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(runs):
    """Of so many runs in one."""
    layer = {"layer": "0", "ops": "relu", "seconds": 0.25 * runs, "bytes_sent": 7 * runs, "rounds": 2 * runs}
    totals = {
        "online_s": 0.5 * runs,
        "offline_s": 1.0,
        "bytes_sent": 9 * runs,
        "rounds": 3 * runs,
        "key_bytes": 11 * runs,
    }
    parties = [{"place": "party:0", "peak_rss_bytes": 5}, {"place": "client:client", "peak_rss_bytes": 50}]
    return {"totals": totals, "layers": [{**layer, "key_bytes": 11 * runs}], "parties": parties}


def test_a_run_is_what_a_report_of_several_has_grown_by(speeds):
    one = speeds.difference(report(3), report(2))
    assert one["totals"] == {**report(1)["totals"], "offline_s": 0.0}
    assert one["layers"] == report(1)["layers"]


def test_the_first_run_does_not_count(speeds):
    seconds = iter([9.0, 0.3, 0.1, 0.2])

    def run():
        found = report(1)
        found["totals"]["online_s"] = next(seconds)
        return found

    found = speeds.measured(run, 3)
    assert found["online_s"] == {"median": 0.2, "min": 0.1, "max": 0.3}
    assert found["bytes_sent"] == 9 and found["peak_rss_bytes"] == 5 and found["layers"] == {"0: relu": 0.25}


def test_processor_time_is_that_of_processes_started_here(speeds):
    before = speeds.processor_seconds()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        while speeds.processor_seconds() - before < 0.1:
            assert busy.poll() is None
        busy.kill()


def test_the_table_of_the_kept_results_is_the_pages(speeds):
    folder = ROOT / "benches" / "results-intel-avx512" / "models"
    rows = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    assert {row["model"] for row in rows} == {*speeds.MODELS, speeds.GPT2}
    page = speeds.PAGE.read_text().split(speeds.BEGIN)[1].split(speeds.END)[0]
    for line in speeds.table(rows).splitlines():
        assert line in page.splitlines()
