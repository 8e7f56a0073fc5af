"""Whole runs of every protocol: its processes over mutual TLS, this process as the client.

Needs the binary and the extension (``make build``); skipped with the reason where one is missing.
"""

from __future__ import annotations

import subprocess
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privet
from privet import models
from privet._processes import Processes, binary
from privet.native import available, native
from privet.protocols import PROTOCOLS
from privet.session import dial


def missing() -> str:
    if not available():
        return "the extension is not built: make build"
    try:
        binary()
    except privet.SessionError as error:
        return str(error)
    return ""


pytestmark = [pytest.mark.e2e, pytest.mark.skipif(bool(missing()), reason=missing())]

STUCK_S = 120
"""A call that takes longer hangs; nothing here takes more than seconds."""


def finish(action):
    """The exception that ``action`` ends with, or ``None``; fails the test instead of hanging."""
    ended = []

    def work():
        try:
            action()
        except BaseException as error:
            ended.append(error)
        else:
            ended.append(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(STUCK_S)
    assert ended, "the call hangs"
    return ended[0]


FAMILIES = {
    "fss": {"protocol": "fss"},
    "rep3": {"protocol": "rep3", "security": "semi-honest"},
    "rep3-malicious": {"protocol": "rep3"},
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    """Protocol and security, as arguments of ``privet.compile``."""
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def lenet(family):
    torch.manual_seed(11)
    model = models.LeNet().eval()
    calibration = torch.rand(32, 1, 28, 28)
    private = privet.compile(model, torch.rand(8, 1, 28, 28), calibration=calibration, name="lenet", **family)
    return model, private


def processes_of(private, folder):
    return Processes(folder, private.interface.protocol, private.interface.security)


@pytest.fixture(scope="module")
def session(lenet):
    with privet.local(lenet[1]) as session:
        yield session


def test_lenet_gives_the_integers_of_the_plan(lenet, session):
    model, private = lenet
    images = torch.rand(8, 1, 28, 28)
    scores = session.run(images)
    assert torch.equal(scores, private.simulate(images))
    with torch.no_grad():
        torch.testing.assert_close(scores, model(images), atol=0.01, rtol=0)


def test_rows_are_run_in_groups(lenet, session):
    _, private = lenet
    images = torch.rand(11, 1, 28, 28)
    seen = []
    scores = session.run(images, progress=lambda done, rows: seen.append((done, rows)))
    assert seen == [(8, 11), (11, 11)]
    assert scores.shape == (11, 10) and torch.equal(scores, private.simulate(images))
    assert session.report.data["batch"] == 16


def test_the_report_says_what_it_cost_and_who_learned_what(lenet, session, tmp_path):
    _, private = lenet
    session.run(torch.rand(8, 1, 28, 28))
    report = session.report
    data = report.data
    protocol = PROTOCOLS[private.interface.protocol]
    assert (data["protocol"], data["security"]) == (protocol.name, private.interface.security)
    assert (data["transport"], data["plan"]) == ("TLS", "lenet")
    assert data["plan_hash"] == native().fingerprint(private.plan)
    servers = [f"party:{i}" for i in range(protocol.parties)] + ["dealer"] * protocol.dealer
    assert [p["place"] for p in data["parties"]] == [*servers, "client:client"]
    assert report.learned() == {
        **{place: [] for place in servers},
        "client:client": ["the result `output` (8x10)"],
    }
    assert data["openings"]["revealed"] == [
        {"name": "output", "to": "receiver", "shape": [8, 10], "bits": data["openings"]["revealed"][0]["bits"]}
    ]
    assert data["openings"]["masked"] >= 8 * 28 * 28
    assert all(p["peak_rss_bytes"] > 2**20 for p in data["parties"] if p["place"] != "dealer")
    names = [row["layer"] for row in data["layers"]]
    assert [n for n in names if n in ("conv1", "conv2", "fc1", "fc2")] == ["conv1", "conv2", "fc1", "fc2"]
    verified = report.verification or {"rounds": 0, "seconds": 0.0}
    assert (verified["rounds"] > 0) == (private.interface.security == "malicious")
    assert verified["seconds"] < report.totals["online_s"]
    assert sum(row["rounds"] for row in data["layers"]) + verified["rounds"] == report.totals["rounds"] > 0
    assert sum(row["key_bytes"] for row in data["layers"]) == report.totals["key_bytes"]
    assert protocol.dealer == (report.totals["key_bytes"] > 0) == (report.totals["offline_s"] > 0)
    page = report.save_html(tmp_path / "run.html").read_text()
    assert "conv2" in page and "client:client" in page and f"{protocol.name}</b> of {protocol.parties} parties" in page
    assert ("verification" in page) == (report.verification is not None)


def test_costs_are_those_of_the_estimate(lenet, session):
    _, private = lenet
    session.run(torch.rand(8, 1, 28, 28))
    measured = {row["layer"]: row for row in session.report.data["layers"]}
    for row in private.estimate().layers:
        if row["layer"] in ("conv1", "conv2", "fc1"):
            assert measured[row["layer"]]["bytes_sent"] == row["cost"]["wire_bytes"], row["layer"]
            assert measured[row["layer"]]["rounds"] == row["cost"]["rounds"], row["layer"]
    estimate, verified = private.estimate(), session.report.verification or {"rounds": 0, "bytes_sent": 0}
    beside = estimate.data["whole_run"]
    assert ("verification" in str(estimate)) == (private.interface.security == "malicious")
    assert (beside["rounds"], beside["wire_bytes"]) == (verified["rounds"], verified["bytes_sent"])


def test_an_mlp_gives_the_integers_of_the_plan(family):
    torch.manual_seed(5)
    model, images = models.mlp().eval(), torch.rand(16, 1, 28, 28)
    precision = privet.Precision(bits=32, fraction=12)
    private = privet.compile(model, images, precision=precision, calibration=torch.rand(64, 1, 28, 28), **family)
    with privet.local(private) as session:
        assert torch.equal(session.run(images), private.simulate(images))


def spoiled(value):
    images = torch.rand(8, 1, 28, 28)
    images[3, 0, 2, 1] = value
    return images


BAD_INPUTS = {
    "NaN": (lambda: spoiled(float("nan")), r"index \[3, 0, 2, 1\] is NaN or infinite"),
    "infinity": (lambda: spoiled(float("-inf")), r"index \[3, 0, 2, 1\] is NaN or infinite"),
    "range": (lambda: spoiled(1e6), r"index \[3, 0, 2, 1\] exceeds .* calibrate"),
    "shape": (lambda: torch.rand(8, 1, 28, 27), r"shape \[8, 1, 28, 27\]; the model takes \[rows, 1, 28, 28\]"),
    "dimensions": (lambda: torch.rand(28, 28), "the model takes"),
    "no rows": (lambda: torch.rand(0, 1, 28, 28), "the model takes"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs_are_refused_and_the_session_goes_on(lenet, session, case):
    _, private = lenet
    make, message = BAD_INPUTS[case]
    with pytest.raises(privet.InputError, match=message) as caught:
        session.run(make())
    assert "1000000" not in str(caught.value) and "1e+06" not in str(caught.value)
    images = torch.rand(8, 1, 28, 28)
    assert torch.equal(session.run(images), private.simulate(images))


class Mixed(nn.Module):
    """One of everything that the planner lowers in convolutional networks."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.depthwise = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8))
        self.wide = nn.Conv2d(8, 4, 3, padding=2, dilation=2)
        self.pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.average = nn.AvgPool2d(2)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(self.depthwise(x) + x)
        y = F.leaky_relu(self.wide(x), 0.125)
        x = self.pool(torch.cat([x, y], dim=1))
        x = self.average(F.hardtanh(x, -0.5, 2.0))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def test_a_residual_network_gives_the_integers_of_the_plan(family):
    torch.manual_seed(3)
    model = Mixed()
    with torch.no_grad():  # statistics and scales as after training
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-0.5, 0.5)
                module.running_var.uniform_(0.5, 2.0)
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
    model.eval()
    images = torch.randn(5, 3, 18, 18)
    calibration = torch.cat([images, torch.randn(60, 3, 18, 18)])
    private = privet.compile(model, images[:2], calibration=calibration, **family)
    assert private.check() == []
    with privet.local(private) as session:
        scores = session.run(images)
    assert torch.equal(scores, private.simulate(images))
    with torch.no_grad():
        torch.testing.assert_close(scores, model(images), atol=0.02, rtol=0)


class Chosen(nn.Module):
    def forward(self, x):
        return x.argmax(dim=1), F.relu(x)


def test_several_outputs_and_ties(family):
    rows = torch.tensor([[1.0, 3.0, 3.0, -1.0], [0.5, 0.5, 0.5, 0.5], [-4.0, -3.0, -2.0, -1.0]])
    private = privet.compile(Chosen(), rows, calibration=rows, **family)
    with privet.local(private) as session:
        index, positive = session.run(rows)
    assert index.tolist() == [1, 0, 3] and index.dtype == torch.int64
    assert torch.equal(positive, rows.clamp(min=0))


def test_stochastic_rounding_is_close(lenet, family):
    model, _ = lenet
    images = torch.rand(4, 1, 28, 28)
    precision = privet.Precision(rounding="stochastic")
    private = privet.compile(model, images, precision=precision, calibration=torch.rand(32, 1, 28, 28), **family)
    with torch.no_grad():
        expected = model(images)
    with privet.local(private) as session:
        torch.testing.assert_close(session.run(images), expected, atol=0.01, rtol=0)
    torch.testing.assert_close(private.simulate(images), expected, atol=0.01, rtol=0)


class Unsupported(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.multinomial(self.fc(x).softmax(1), 1)


def test_an_unsupported_operation_is_named_with_its_line():
    private = privet.compile(Unsupported(), torch.rand(2, 4))
    (problem,) = private.check()
    line = Unsupported.forward.__code__.co_firstlineno + 1
    assert (
        problem["source"] == f"test_end_to_end.py:{line} in forward: return torch.multinomial(self.fc(x).softmax(1), 1)"
    )
    assert "multinomial" in problem["op"] and "draw in the clear" in problem["remedy"]
    with pytest.raises(privet.UnsupportedModel, match="multinomial") as caught, privet.local(private):
        pass
    assert caught.value.report == [problem]


@pytest.mark.parametrize("victim", ["party0", "party1", "last"])
def test_a_killed_process_ends_the_session_with_its_name(lenet, tmp_path, victim):
    _, private = lenet
    if victim == "last":
        victim = "dealer" if PROTOCOLS[private.interface.protocol].dealer else "party2"
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes(private.weights)
    (tmp_path / "plan.json").write_text(private.plan)
    with processes_of(private, tmp_path / "session") as processes:
        processes.initialise(tmp_path / "plan.json", weights)
        processes.start()
        client = dial(processes.client_file, private, None)
        session = privet.Session(client, private, processes.while_alive)
        session.run(torch.rand(8, 1, 28, 28))

        def kill(done, rows):
            processes._children[victim].kill()
            processes._children[victim].wait()

        def run():
            session.run(torch.rand(16, 1, 28, 28), progress=kill)
            session.prepare(8)  # a run with keys in store does not need the dealer

        error = finish(run)
        assert isinstance(error, privet.SessionError), error
        assert victim in str(error) and "signal 9" in str(error)


def test_a_client_that_owns_the_model_shares_it(lenet, tmp_path):
    _, private = lenet
    (tmp_path / "plan.json").write_text(private.plan)
    folder = tmp_path / "session"
    roles = ["--model-owner", "client:client"]
    family = ["--protocol", private.interface.protocol, "--security", private.interface.security]
    command = [binary(), "init", "--local", str(folder), "--plan", str(tmp_path / "plan.json"), *roles, *family]
    subprocess.run(command, check=True, capture_output=True)
    images = torch.rand(8, 1, 28, 28)
    with processes_of(private, folder) as processes:
        processes.start()
        with privet.connect(folder / "deployment.toml", private, node=processes.client_file) as session:
            assert torch.equal(session.run(images), private.simulate(images))
            assert torch.equal(session.run(images), private.simulate(images))


def test_a_deployment_of_another_security_is_refused(lenet, tmp_path):
    _, private = lenet
    (tmp_path / "plan.json").write_text(private.plan)
    other = {"semi-honest": "malicious", "malicious": "semi-honest"}[private.interface.security]
    with Processes(tmp_path / "session", "rep3", other) as processes:
        processes.initialise(tmp_path / "plan.json", tmp_path / "none")
        with pytest.raises(privet.SessionError, match=f"rep3, {other}, but the model was compiled for"):
            dial(processes.client_file, private, None)


def test_another_plan_is_refused(lenet, family, tmp_path):
    model, private = lenet
    (tmp_path / "plan.json").write_text(private.plan)
    other = privet.compile(model, torch.rand(2, 1, 28, 28), calibration=torch.rand(32, 1, 28, 28), **family)
    with processes_of(private, tmp_path / "session") as processes:
        processes.initialise(tmp_path / "plan.json", tmp_path / "none")
        processes.start()
        with pytest.raises(privet.SessionError, match="plan"):
            dial(processes.client_file, other, None)


def test_a_closed_session_says_so(lenet):
    with privet.local(lenet[1]) as session:
        pass
    with pytest.raises(privet.SessionError, match="closed"):
        session.run(torch.rand(8, 1, 28, 28))
