"""The trainer: batches, schedules, the loop, and training by the integer interpreter."""

from __future__ import annotations

import copy
import io
import json
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import privet
from privet.evaluate import step
from privet.native import available
from privet.training._progress import Progress
from privet.training.batches import Encoder
from privet.training.history import Evaluation, History, LossCurve
from privet.training.loop import Companion, Loop, Settings, score
from privet.training.program import capture_training
from privet.training.schedule import learning_rates

built = pytest.mark.skipif(not available(), reason="the extension is not built: make build")


def data(rows=64, seed=1):
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 6, generator=random)
    return x, x[:, :3].argmax(1)


def loader(rows=64, batch=16, **more):
    return DataLoader(TensorDataset(*data(rows)), batch, **{"drop_last": True, **more})


def mlp(*layers):
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(6, 12), *(layers or (nn.ReLU(),)), nn.Linear(12, 3))


def sgd(model, lr=0.1, **more):
    return torch.optim.SGD(model.parameters(), lr, **more)


# --- Batches -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encoder():
    model = mlp()
    x, y = data(4)
    training = capture_training(model, F.cross_entropy, sgd(model), (x, y))
    return Encoder(training, {"input": 100.0})


def test_labels_become_one_hot_rows(encoder):
    x, y = data(4)
    found = encoder.encode(0, (x, y))
    assert found["input"].dtype == found["target"].dtype == torch.float64
    assert torch.equal(found["target"].argmax(1), y) and torch.equal(found["target"].sum(1), torch.ones(4).double())


def spoiled(what):
    x, y = data(4)
    changes = {
        "nan": lambda: x[2].__setitem__(5, float("nan")),
        "inf": lambda: x[1].__setitem__(0, -float("inf")),
        "large": lambda: x[3].__setitem__(1, 1e5),
        "class": lambda: y.__setitem__(3, 3),
        "ignored": lambda: y.__setitem__(0, -100),
    }
    changes[what]()
    return x, y


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (spoiled("nan"), "'input' of batch 7, index [2, 5], is NaN or infinite"),
        (spoiled("inf"), "'input' of batch 7, index [1, 0], is NaN or infinite"),
        (spoiled("large"), "'input' of batch 7, index [3, 1], exceeds 100"),
        (spoiled("class"), "'target' of batch 7, index [3], is no class: they are 0 to 2"),
        (spoiled("ignored"), "'target' of batch 7, index [0], is no class"),
        ((data(4)[0], data(4)[1].float()), "whole numbers"),
        (data(3), "batch 7 has 3 rows, a step takes 4: give the DataLoader drop_last=True"),
        ((data(4)[0][:, :5], data(4)[1]), "shape [4, 5]; a step takes [4, 6]"),
        ((data(4)[0],), "batch 7 has 1 tensors; a step takes 2: input, target"),
    ],
)
def test_what_is_wrong_with_a_batch_is_named_and_never_shown(encoder, batch, message):
    with pytest.raises(privet.InputError, match=re.escape(message)) as caught:
        encoder.encode(7, batch)
    assert "100000" not in str(caught.value)


def test_rows_and_labels_of_several_owners():
    model = mlp()
    x, y = data(16)
    rows = {"data_owner": 10, "data_owner.2": 6}
    training = capture_training(model, F.cross_entropy, sgd(model), (x, y), rows=rows, target_owner="label_owner")
    owners = {name: (n.op["owner"], n.shape[0]) for name, n in training.train.inputs().items()}
    assert owners == {
        "input.data_owner": ("data_owner", 10),
        "input.data_owner.2": ("data_owner.2", 6),
        "target": ("label_owner", 16),
    }
    everything = Encoder(training).encode(0, (x, y))
    second = Encoder(training, roles=["data_owner.2"]).encode(0, (x[10:],))
    labels = Encoder(training, roles=["label_owner", "receiver"]).encode(0, (y,))
    assert list(second) == ["input.data_owner.2"] and list(labels) == ["target"]
    for part in (second, labels):
        assert all(torch.equal(everything[name], value) for name, value in part.items())
    whole = capture_training(model, F.cross_entropy, sgd(model), (x, y))
    publics = training.optimiser.publics(1)
    ours, _ = step(training.train, training.states, everything, publics)
    theirs, _ = step(whole.train, whole.states, Encoder(whole).encode(0, (x, y)), publics)
    assert torch.equal(ours["loss"], theirs["loss"])
    with pytest.raises(privet.InputError, match="has 16 rows, a step takes 6"):
        Encoder(training, roles=["data_owner.2"]).encode(0, (x,))
    with pytest.raises(privet.CaptureError, match="add up to the batch of 16"):
        capture_training(model, F.cross_entropy, sgd(model), (x, y), rows={"data_owner": 10})


# --- Schedules ---------------------------------------------------------------------------------------


def test_rates_ahead_are_torchs_and_change_nothing():
    model = mlp()
    optimizer = sgd(model, 0.4)
    scheduler = torch.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, 1.0, 2),
            torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5),
        ],
        milestones=[2],
    )
    before = copy.deepcopy(scheduler.state_dict()), copy.deepcopy(optimizer.state_dict())
    found = [r[0] for r in learning_rates(optimizer, scheduler, 5)]
    assert found == pytest.approx([0.1, 0.25, 0.4, 0.2, 0.1])
    assert optimizer.state_dict() == before[1]
    assert learning_rates(optimizer, scheduler, 5) == [[pytest.approx(r)] for r in found]
    assert scheduler.last_epoch == before[0]["last_epoch"]


def test_schedules_that_follow_results_or_another_optimizer_are_refused():
    model = mlp()
    optimizer = sgd(model)
    with pytest.raises(privet.UnsupportedOptimiser, match="ReduceLROnPlateau"):
        learning_rates(optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer), 1)
    with pytest.raises(privet.UnsupportedOptimiser, match="another optimizer"):
        learning_rates(optimizer, torch.optim.lr_scheduler.StepLR(sgd(model), 1), 1)


# --- The loop, over the graph in float64 -------------------------------------------------------------


class Exact:
    """An engine that evaluates the graphs in float64."""

    def __init__(self, training, step=0):
        self.training, self.states, self.step = training, dict(training.states), step
        self.seen, self.expected = [], []

    def run(self, plan, inputs, publics):
        outputs, self.states = step(self.training.graphs()[plan], self.states, inputs, publics)
        self.seen.append((plan, publics))
        self.step += plan == "train"
        return outputs

    def expect(self, plan, runs):
        self.expected.append((plan, runs))

    def keys_left(self):
        return None


def exact(model, optimizer, loss=F.cross_entropy, compare=False):
    training = capture_training(model, loss, optimizer, next(iter(loader())))
    companion = Companion(model, loss, optimizer) if compare else None
    return Loop(training, Exact(training), Encoder(training), loss, companion)


def test_the_loop_is_plain_training(capsys):
    model = mlp()
    optimizer = sgd(model, 0.2, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    loop = exact(model, optimizer, compare=True)
    history = loop.run(loader(), Settings(epochs=3, scheduler=scheduler, evaluate=loader(40, drop_last=False)))
    assert history.steps == len(history.losses) == 12
    assert max(history.differences()) < 1e-5
    assert [e.step for e in history.evaluations] == [4, 8, 12]
    for ours, theirs in zip(history.evaluations, history.plaintext_evaluations, strict=True):
        assert ours.rows == theirs.rows == 40 and ours.accuracy == theirs.accuracy
        assert ours.loss == pytest.approx(theirs.loss, abs=1e-5)
    rates = [p["rate"] for plan, p in loop.engine.seen if plan == "train"]
    assert rates == pytest.approx([0.2 / 16] * 4 + [0.1 / 16] * 4 + [0.05 / 16] * 4)
    assert "step 12/12, loss" in capsys.readouterr().err
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), mlp().parameters(), strict=True))


def test_a_resumed_loop_goes_on_in_the_middle_of_an_epoch():
    model = mlp()
    parts = exact(model, sgd(model))
    model = mlp()
    whole = exact(model, sgd(model))
    whole.run(loader(), Settings(epochs=2, progress=False))
    parts.run(loader(), Settings(epochs=2, steps=3, progress=False))
    again = Loop(parts.training, parts.engine, parts.encoder, parts.loss, None)
    history = again.run(loader(), Settings(epochs=2, progress=False))
    assert history.steps == 8 and history.curve.first == 4
    assert history.losses == pytest.approx(whole.history.losses[3:], abs=1e-12)


def test_training_can_be_stopped_by_who_sees_the_loss():
    model = mlp()
    loop = exact(model, sgd(model))
    history = loop.run(loader(), Settings(epochs=9, stop=lambda h: h.steps == 5, progress=False))
    assert history.stopped and history.steps == 5 and "stopped early" in str(history)


def test_the_runs_that_follow_are_announced():
    model = mlp()
    loop = exact(model, sgd(model))
    uneven = DataLoader(TensorDataset(*data(21)), 8)  # three runs, though their rows would fit into two
    loop.run(loader(), Settings(epochs=2, steps=6, evaluate=uneven, evaluate_every=4, progress=False))
    assert loop.engine.expected == [("train", 6), ("evaluate", 3), ("evaluate", 3)]
    assert [plan for plan, _ in loop.engine.seen].count("evaluate") == 6
    Loop(loop.training, loop.engine, loop.encoder, loop.loss, None).run(loader(), Settings(epochs=2, progress=False))
    assert loop.engine.expected[3:] == [("train", 2)]


def test_steps_between_evaluations_and_by_step_schedules():
    model = mlp()
    optimizer = sgd(model, 0.8)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    loop = exact(model, optimizer)
    settings = Settings(epochs=1, scheduler=scheduler, schedule_steps=True, evaluate=loader(), evaluate_every=3)
    history = loop.run(loader(), settings)
    assert [e.step for e in history.evaluations] == [3, 4]
    rates = [p["rate"] for plan, p in loop.engine.seen if plan == "train"]
    assert rates == pytest.approx([0.05, 0.025, 0.0125, 0.00625])


def test_divergence_names_the_step():
    model = mlp()
    loop = exact(model, sgd(model, 1e4), loss=lambda z, y: F.cross_entropy(z, y) + (z**2).mean())
    with pytest.raises(privet.TrainingDiverged, match=r"diverged in step [12]: a r"):
        loop.run(loader(), Settings(epochs=3, progress=False))


def test_scores_of_batches_of_different_sizes():
    scored = [(torch.tensor([[1.0, 0.0]]), torch.tensor([0])), (torch.zeros(3, 2), torch.tensor([1, 0, 1]))]
    found = score(5, scored, F.cross_entropy)
    assert (found.rows, found.accuracy) == (4, 0.5)
    assert found.loss == pytest.approx(
        float(F.cross_entropy(torch.tensor([[1.0, 0], *[[0, 0]] * 3]), torch.tensor([0, 1, 0, 1])))
    )
    assert score(5, [(torch.zeros(3, 2), torch.zeros(3, 2))], F.mse_loss).accuracy is None


def test_progress_shows_a_loss_only_where_there_is_one():
    out = io.StringIO()
    bar = Progress(10, out=out)
    bar.show(1, None, lambda: 7)
    assert "loss" not in out.getvalue() and "keys for 7 steps ready" in out.getvalue()
    bar.show(2, 0.5, lambda: None)
    assert "step 2/10, loss 0.5000" in out.getvalue() and "steps/s" in out.getvalue()


def test_keys_are_counted_only_for_what_is_shown():
    asked = []
    bar = Progress(1000, out=io.StringIO())
    for done in range(1, 1001):
        bar.show(done, 1.0, lambda: asked.append(0))
    assert len(asked) == 11


def test_a_page_shows_both_curves(tmp_path):
    history = History(2, 1.0, LossCurve("private", 1, [2.0, 1.0]), [Evaluation(2, 10, 1.0, 0.5)])
    history.plaintext = LossCurve("plaintext", 1, [2.0, 1.5])
    page = history.save_html(tmp_path / "curves.html").read_text()
    assert page.count("<polyline") == 4 and "accuracy 50.00%" in page
    assert json.loads((tmp_path / "curves.json").read_text())["curve"]["losses"] == [2.0, 1.0]
    assert "<polyline" not in History().save_html(tmp_path / "none.html").read_text()


# --- By the integer interpreter ----------------------------------------------------------------------


def test_a_resumed_training_has_no_plaintext_beside_it(tmp_path):
    model = mlp()
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model))
    with pytest.raises(ValueError, match="compare=True needs a training from its start"):
        trainer.fit(loader(), resume=True, compare=True, directory=tmp_path / "parties")
    assert not (tmp_path / "parties").exists() and "not captured yet" in repr(trainer)


@built
def test_a_protocol_for_inference_names_those_that_train():
    model = mlp()
    those = "protocol='fss' or protocol='rep3' or protocol='semi2k'"
    with pytest.raises(ValueError, match=f"does not train; choose {those}"):
        privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model, 0.2), "heot")


@built
@pytest.mark.parametrize("protocol", ["fss", "rep3"])
def test_integers_train_as_well(protocol):
    model = mlp()
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model, 0.2, momentum=0.9), protocol)
    trained = trainer.simulate(loader(), epochs=3, seed=1, compare=True, progress=False)
    assert len(trained.history.losses) == 12
    assert max(trained.history.differences()) < 1e-4
    companion = Companion(model, nn.CrossEntropyLoss(), trainer.optimizer)
    for _ in range(3):
        for batch in loader():
            companion.step(batch, [0.2])
    for name, value in companion.model.state_dict().items():
        torch.testing.assert_close(trained.state_dict[name], value, atol=1e-4, rtol=0)


class Recurrent(nn.Module):
    """A gated cell over three places, written out."""

    def __init__(self):
        super().__init__()
        self.x, self.h, self.y = nn.Linear(2, 32), nn.Linear(8, 32), nn.Linear(8, 2)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], 8)
        for place in range(3):
            i, f, g, o = (self.x(x[:, place]) + self.h(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.y(h)


class Attention(nn.Module):
    """A block of a transformer, and the mean over its places."""

    def __init__(self):
        super().__init__()
        self.x, self.y = nn.Linear(2, 8), nn.Linear(8, 3)
        self.block = nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )

    def forward(self, x):
        return self.y(self.block(self.x(x)).mean(1))


def uniform(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(sum(shape)))


def autoencoder():
    return nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 6), nn.Sigmoid())


def adamw(model):
    return torch.optim.AdamW(model.parameters(), 0.003)


@built
@pytest.mark.parametrize(
    ("model", "loss", "optimizer", "x", "y"),
    [
        # a mean over 10 x 6 numbers, which is no power of two
        (autoencoder, nn.MSELoss(), torch.optim.Adam, uniform(10, 6), uniform(11, 6)[:10]),
        (autoencoder, nn.BCEWithLogitsLoss(), sgd, uniform(10, 6), uniform(11, 6)[:10].round()),
        (autoencoder, nn.L1Loss(), adamw, uniform(7, 6), uniform(8, 6)[:7]),
        (Recurrent, nn.CrossEntropyLoss(), sgd, uniform(12, 3, 2), torch.arange(12) % 2),
        (Attention, nn.CrossEntropyLoss(label_smoothing=0.1), adamw, uniform(6, 5, 2), torch.arange(6) % 3),
    ],
)
def test_models_of_many_kinds_train_as_torch_does(model, loss, optimizer, x, y):
    torch.manual_seed(4)
    made = model()
    chosen = optimizer(made.parameters()) if optimizer is torch.optim.Adam else optimizer(made)
    trainer = privet.Trainer(made, loss, chosen, example=(x, y))
    trained = trainer.simulate([(x, y)] * 4, seed=1, compare=True, progress=False)
    assert len(trained.history.losses) == 4
    assert max(trained.history.differences()) < 1e-4


@built
def test_a_seed_makes_simulations_alike_and_none_does_not():
    model = mlp(nn.ReLU(), nn.Dropout(0.5))

    def losses(seed):
        trainer = privet.Trainer(model, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), 0.01))
        return trainer.simulate(loader(), seed=seed, progress=False).history.losses

    assert losses(3) == losses(3) != losses(4)
    assert losses(None) != losses(None)


@built
def test_batch_norm_and_its_averages_in_integers():
    torch.manual_seed(4)
    model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3))
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model, 0.05))
    trained = trainer.simulate(loader(), epochs=2, compare=True, evaluate=loader(), progress=False)
    assert max(trained.history.differences()) < 1e-3
    assert trained.state_dict["1.num_batches_tracked"] == 8
    ours, theirs = trained.history.evaluations[-1], trained.history.plaintext_evaluations[-1]
    assert ours.loss == pytest.approx(theirs.loss, abs=1e-3)


@built
def test_a_hidden_loss_is_in_no_plan():
    model = mlp()
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model), reveal_loss=False, example=data(16))
    plans = {p["name"]: p["plan"] for p in json.loads(trainer.program)["plans"]}
    assert {o["name"] for o in plans["train"]["outputs"]} == {"in_range.values", "in_range.parameters"}
    assert {o["to"] for o in plans["reveal"]["outputs"]} == {"model_owner"}
    assert trainer.simulate(loader(), progress=False).history.losses == []


@built
def test_estimates_cover_steps_and_epochs():
    model = mlp()
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model), example=data(16))
    found = trainer.estimate(batches=10, network="wan")
    assert found.step.total["key_bytes"] > 0 and found.step.total["rounds"] > 10
    assert "an epoch of 10 steps" in str(found)


@built
def test_overflow_is_reported_not_silent():
    model = mlp()
    trainer = privet.Trainer(model, nn.MSELoss(), sgd(model, 300.0), example=(data(16)[0], torch.ones(16, 3)))
    rows = DataLoader(TensorDataset(data(64)[0], torch.ones(64, 3)), 16)
    with pytest.raises((privet.TrainingDiverged, ValueError), match=r"diverged|learning rate"):
        trainer.simulate(rows, epochs=9, progress=False)


@built
def test_everything_unsupported_is_listed():
    model = mlp(nn.GELU(), nn.PReLU())
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model), example=data(16))
    assert any("prelu" in p["op"] for p in trainer.check())
    with pytest.raises(privet.UnsupportedModel, match="prelu"):
        trainer.estimate()


def test_a_trainer_needs_a_batch_first():
    model = mlp()
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), sgd(model))
    with pytest.raises(privet.PrivetError, match="no batch has been seen"):
        trainer.check()
    with pytest.raises(privet.PrivetError, match="gives no batch"):
        trainer.simulate(loader(8, 16))
    with pytest.raises(privet.PrivetError, match="call fit first"):
        trainer.reveal()
    with pytest.raises(ValueError, match="not revealed to 'everybody'"):
        trainer.reveal(to="everybody")


def test_a_schedule_above_the_plans_rates_is_refused():
    model = mlp()
    optimizer = sgd(model, 0.1)
    trainer = privet.Trainer(model, nn.CrossEntropyLoss(), optimizer, example=data(16))
    higher = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0 + epoch)
    with pytest.raises(privet.PrivetError, match=re.escape("up to 0.2, the plan was made for 0.1")):
        trainer.simulate(loader(), epochs=2, scheduler=higher)
