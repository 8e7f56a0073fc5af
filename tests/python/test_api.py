"""compile, check, estimate, compare, save, load and sessions, over a stand-in for the extension."""

from __future__ import annotations

import json
import stat
import sys

import fake_native
import pytest
import torch
from torch import nn

import privet
from privet import models
from privet.aim import network_profile
from privet.report import RunReport, merge, size
from privet.session import Session


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setitem(sys.modules, "privet._native", fake_native.module())


@pytest.fixture(scope="module")
def lenet():
    torch.manual_seed(3)
    return models.LeNet()


@pytest.fixture
def private(lenet):
    return privet.compile(lenet, torch.rand(4, 1, 28, 28), name="lenet")


def session_of(private):
    interface = private.interface
    client = fake_native.Client.connect("", private.plan, private.weights, interface.protocol, interface.security)
    return Session(client, private), client


def test_compile_gives_a_plan_and_notes(private):
    assert private.check() == []
    assert private.notes == ["mirrored the graph", "for lan, None bytes of keys"]
    assert private.limits() == {"x": 100.0}
    expected = "PrivateModel('lenet', protocol='fss', security='semi-honest', batch=4, with weights)"
    assert repr(private) == expected


def test_what_is_no_module_is_no_model():
    with pytest.raises(privet.CaptureError, match=r"the model is a function; give a torch\.nn\.Module"):
        privet.compile(lambda x: x, torch.ones(1, 2))


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({"protocol": "bgw"}, "no protocol 'bgw'; this version has fss, rep3"),
        ({"security": "malicious"}, "'fss' takes security='semi-honest', not 'malicious'; choose protocol='rep3'"),
        ({"protocol": "rep3", "security": "covert"}, "security='malicious' or 'semi-honest', not 'covert'$"),
    ],
)
def test_protocols_that_do_not_exist_are_refused(family, message):
    with pytest.raises(ValueError, match=message):
        privet.compile(nn.ReLU(), torch.zeros(1, 1), **family)


@pytest.mark.parametrize(("given", "security"), [({}, "malicious"), ({"security": "semi-honest"}, "semi-honest")])
def test_three_parties(given, security, tmp_path):
    private = privet.compile(nn.ReLU(), torch.zeros(2, 3), protocol="rep3", **given)
    assert (private.interface.protocol, private.interface.security) == ("rep3", security)
    private.save(tmp_path)
    assert privet.load(tmp_path, with_weights=False).interface == private.interface
    session, client = session_of(private)
    session.run(torch.rand(7, 3))
    assert (client.runs, client.prepared) == (4, 1), "the session is begun once, and nothing is dealt"


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def test_unsupported_models_can_be_checked_but_not_run():
    model = nn.Sequential(nn.Linear(3, 3), Apply(torch.i0), Apply(torch.lgamma))
    private = privet.compile(model, torch.zeros(1, 3))
    assert [p["op"] for p in private.check()] == ["aten.i0.default", "aten.lgamma.default"]
    with pytest.raises(privet.UnsupportedModel, match=r"2 operations .*\n- aten\.i0\.default in '1'") as caught:
        private.estimate()
    assert len(caught.value.report) == 2


def test_check_works_without_the_extension(monkeypatch):
    monkeypatch.setitem(sys.modules, "privet._native", None)
    private = privet.compile(Apply(torch.i0), torch.zeros(1, 3))
    assert [p["op"] for p in private.check()] == ["aten.i0.default"]
    with pytest.raises(privet.NativeMissing, match="make build"):
        privet.compile(nn.ReLU(), torch.zeros(1, 3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bits": 7}, "7 ring bits; choose 8 to 64"),
        ({"bits": 65}, "65 ring bits"),
        ({"fraction": -1}, "-1 fraction bits"),
        ({"bits": 16, "fraction": 15}, "no room for a sign"),
        ({"layers": {"a": privet.Precision(layers={"b": privet.Precision()})}}, "layer 'a' can have `bits`"),
        ({"weight_fraction": 63}, "63 fraction bits"),
        ({"rounding": "up"}, "no rounding 'up'"),
        ({"headroom": -1}, "headroom"),
    ],
)
def test_impossible_precision(arguments, message):
    with pytest.raises(privet.PrecisionError, match=message):
        privet.Precision(**arguments)


def test_precision_reaches_the_planner():
    precision = privet.Precision(bits=64, fraction=24, layers={"conv1": privet.Precision(bits=32)})
    assert json.loads(precision.to_json()) == {
        "bits": 64,
        "fraction": 24,
        "per_layer": {"conv1": {"bits": 32}},
        "rounding": "nearest",
        "headroom_bits": 2,
    }
    assert json.loads(privet.Precision().to_json()) == {"rounding": "nearest", "headroom_bits": 2}
    with pytest.raises(privet.PrecisionError, match="33 bits"):
        privet.compile(nn.ReLU(), torch.zeros(1, 1), precision=privet.Precision(bits=16, fraction=4))


def test_estimate_prints_a_table(private):
    estimate = private.estimate(network={"rtt": 0.06, "bandwidth": "293Mbit/s"})
    assert estimate.data["protocol"] == "rtt=60ms,bandwidth=293Mbit/s"
    assert estimate.data["batch"] == 4
    assert "relu, truncate " in str(estimate)
    assert "1.5 kB" in str(estimate) and "3 MB" in str(estimate) and "1 GB a party" in str(estimate)


def test_estimate_for_another_batch_traces_again(private):
    assert private.estimate(batch=9).data["batch"] == 9


@pytest.mark.parametrize("network", [{}, {"delay": 1}, {"rtt": 1}, {"rtt": 1, "bandwidth": 1, "loss": 0}, 3])
def test_refused_networks(network):
    with pytest.raises(ValueError, match="'rtt' and 'bandwidth'"):
        network_profile(network)
    with pytest.raises(ValueError, match="'rtt' and 'bandwidth'"):
        privet.compile(nn.ReLU(), torch.zeros(1, 1), network=network)


def test_network_and_cap_reach_the_planner():
    def notes(**aim):
        return privet.compile(nn.ReLU(), torch.zeros(1, 1), **aim).notes

    assert "for lan, None bytes of keys" in notes()
    link = {"rtt": "60ms", "bandwidth": 40e6}
    assert "for rtt=60ms,bandwidth=40MB/s, 500 bytes of keys" in notes(network=link, max_key_bytes=500)
    with pytest.raises(ValueError, match="`moon` is not a network"):
        notes(network="moon")


@pytest.mark.parametrize("cap", [0, -1, 1.5, True, "4 GB"])
def test_refused_caps(cap):
    with pytest.raises(ValueError, match="max_key_bytes is a positive whole number"):
        privet.compile(nn.ReLU(), torch.zeros(1, 1), max_key_bytes=cap)


def test_an_estimate_prints_what_other_networks_would_choose(private):
    estimate = private.estimate()
    assert estimate.alternatives == []
    both = [
        {"compiled_for": n, "comparisons": f"3 by {n}", "key_bytes": 10**6, "rounds": 7, "lan_s": 0.5, "wan_s": 2.0}
        for n in ("this plan", "wan")
    ]
    text = str(privet.Estimate({**estimate.data, "alternatives": both}))
    assert "compiled for" in text and "3 by wan" in text and "2.0000" in text


def test_compare_finds_the_rounding_of_each_layer(private):
    comparison = private.compare(torch.rand(3, 1, 28, 28))
    assert {d.layer for d in comparison.layers} >= {"conv1", "conv2", "fc1", "fc2"}
    assert 0 < comparison.max_abs < 1e-3
    assert all(d.max_abs < 1e-3 for d in comparison.layers)
    assert "largest difference" in str(comparison)


def test_compare_follows_the_planners_merges():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))
    graph = privet.capture(model, torch.rand(1, 1, 8, 8)).graph
    at = privet.compare.model_values(graph, {"nodes": []})
    kinds = {key: graph.nodes[i].kind for key, i in at.items()}
    assert kinds == {
        ("0", (1, 2, 6, 6)): "batch_norm",
        ("1", (1, 2, 6, 6)): "batch_norm",
        ("2", (1, 2, 3, 3)): "max_pool2d",
    }


def test_save_and_load(private, lenet, tmp_path):
    private.save(tmp_path)
    secret = tmp_path / "model"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in secret.iterdir()} == {0o600}
    again = privet.load(tmp_path)
    assert (again.plan, again.weights) == (private.plan, private.weights)
    images = torch.rand(2, 1, 28, 28)
    with torch.no_grad():
        torch.testing.assert_close(again.plaintext(images), lenet.eval()(images))
    with pytest.raises(privet.PrivetError, match="compile it for 9"):
        again.estimate(batch=9)


def test_a_copy_without_weights_can_run_but_not_compare(private, tmp_path):
    private.save(tmp_path)
    for path in (tmp_path / "model").iterdir():
        path.unlink()
    (tmp_path / "model").rmdir()
    public = privet.load(tmp_path)
    assert public.plan == private.plan
    assert "without weights" in repr(public)
    assert public.check() == []
    for action in (lambda: public.weights, lambda: public.compare(torch.rand(1, 1, 28, 28))):
        with pytest.raises(privet.PrivetError, match="only the model's owner"):
            action()


def test_load_of_nothing(tmp_path):
    with pytest.raises(privet.PrivetError, match="holds no saved private model"):
        privet.load(tmp_path)


def test_nothing_secret_is_printed(private):
    text = repr(private) + repr(private._owned) + str(private.notes)
    assert not any(f"{float(v):.4f}"[:6] in text for v in private._owned.captured.parameters["fc2.bias"])


BAD_INPUTS = {
    "count": ((), "0 inputs given, the model takes 1: x"),
    "shape": ((torch.zeros(4, 28, 28),), r"'x' has shape \[4, 28, 28\]; the model takes \[rows, 1, 28, 28\]"),
    "no rows": ((torch.zeros(0, 1, 28, 28),), "'x' has shape"),
    "nan": (("nan", [1, 0, 2, 3]), r"'x' at index \[1, 0, 2, 3\] is NaN or infinite"),
    "infinity": (("inf", [0, 0, 27, 27]), r"'x' at index \[0, 0, 27, 27\] is NaN or infinite"),
    "range": (("100.5", [3, 0, 0, 1]), r"'x' at index \[3, 0, 0, 1\] exceeds 100 in magnitude"),
    "complex": ((torch.zeros(1, 1, 28, 28, dtype=torch.complex64),), "'x' is complex"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs_are_refused_before_anything_is_sent(private, case):
    given, message = BAD_INPUTS[case]
    if given and isinstance(given[0], str):
        image = torch.zeros(4, 1, 28, 28)
        image[tuple(given[1])] = float(given[0])
        given = (image,)
    session, client = session_of(private)
    with pytest.raises(privet.InputError, match=message) as caught:
        session.run(*given)
    assert "100.5" not in str(caught.value)
    assert (client.runs, client.keys) == (0, 0)


@pytest.mark.parametrize("rows", [1, 4, 9])
def test_rows_are_split_into_groups(private, lenet, rows):
    images = torch.rand(rows, 1, 28, 28)
    session, client = session_of(private)
    steps = []
    scores = session.run(images, progress=lambda done, of: steps.append((done, of)))
    with torch.no_grad():
        torch.testing.assert_close(scores, lenet.eval()(images), atol=1e-3, rtol=0)
    groups = -(-rows // 4)
    assert client.runs == groups and client.keys == 0
    assert steps[-1] == (rows, rows) and len(steps) == groups
    assert session.report.totals["bytes_sent"] == 7 * groups
    assert session.report.data["batch"] == 4 * groups


def test_prepared_keys_are_used_first(private):
    session, client = session_of(private)
    session.prepare(8)
    assert client.keys == 2
    session.run(torch.rand(12, 1, 28, 28))
    assert (client.keys, client.runs) == (0, 3)


def test_numpy_and_integer_inputs(private):
    session, _ = session_of(private)
    zeros = session.run(torch.zeros(1, 1, 28, 28, dtype=torch.uint8).numpy())
    torch.testing.assert_close(zeros, session.run(torch.zeros(1, 1, 28, 28)))


def test_nested_results_and_indices_keep_their_form():
    class Both(nn.Module):
        def forward(self, x):
            return {"scores": x * 2, "best": x.argmax(1)}

    private = privet.compile(Both(), torch.rand(2, 5))
    session, _ = session_of(private)
    x = torch.rand(3, 5)
    found = session.run(x)
    assert found["best"].dtype == torch.int64
    assert torch.equal(found["best"], x.argmax(1))


def test_results_without_rows_need_the_exact_batch():
    class Total(nn.Module):
        def forward(self, x):
            return x.sum(0)

    private = privet.compile(Total(), torch.rand(2, 5))
    session, _ = session_of(private)
    session.run(torch.rand(2, 5))
    with pytest.raises(privet.InputError, match="give exactly 2 rows"):
        session.run(torch.rand(3, 5))


def test_a_closed_session_says_so(private):
    session, client = session_of(private)
    with session:
        pass
    assert not client.open
    session.close()
    with pytest.raises(privet.SessionError, match="closed"):
        session.run(torch.rand(1, 1, 28, 28))


def test_the_process_that_died_is_named_rather_than_the_connection(private):
    def guard(action):
        with pytest.raises(privet.SessionError, match="no keys"):
            action()
        raise privet.SessionError("party1 was killed by signal 9")

    client = fake_native.Client.connect("", private.plan, private.weights)
    session = Session(client, private, guard)
    session._prepared = 1  # by its own count; the client has none
    with pytest.raises(privet.SessionError, match="party1 was killed"):
        session.run(torch.rand(1, 1, 28, 28))


def test_merged_reports_add_up(private):
    session, _ = session_of(private)
    session.run(torch.rand(8, 1, 28, 28))
    data = session.report.data
    assert data["layers"][0]["rounds"] == 4
    assert data["parties"][0]["peak_rss_bytes"] == 7
    assert data["openings"]["masked"] == 6
    assert "accuracy" in session.report.with_accuracy(samples=8).data
    assert "accuracy" not in session.report.data
    other = RunReport({**data, "plan_hash": "ff"})
    with pytest.raises(ValueError, match="different plans"):
        merge([session.report, other])
    assert "sizes and timing only" in str(session.report)


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (2.78e9, "2.78 GB"), (5e12, "5e+03 GB")])
def test_sizes(count, text):
    assert size(count) == text
