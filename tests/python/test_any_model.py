"""Models as published: integer inputs, masks, choices by private values, order, and layers made of others.

Each is captured, lowered, and its integer plan run in the clear beside PyTorch.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load, save
from torch import nn

import privet
from privet._masks import BELOW
from privet._ops_order import network
from privet.capture import capture
from privet.native import available

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")

MATRIX = torch.randn(3, 8, generator=torch.Generator().manual_seed(2))
IMAGE = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(1))
HEADS = torch.randn(1, 4, 5, 8, generator=torch.Generator().manual_seed(3))
CAUSAL = torch.ones(5, 5, dtype=torch.bool).tril()


class Function(nn.Module):
    """Any function of tensors as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def near(model, *inputs, tolerance=2e-3):
    """The integer plan gives what PyTorch gives."""
    private = privet.compile(model, inputs)
    assert private.check() == []
    model.eval()
    with torch.no_grad():
        wanted = model(*[x.clone() for x in inputs])
    found = private.simulate(*inputs)
    wanted = [wanted] if isinstance(wanted, torch.Tensor) else list(wanted)
    found = [found] if isinstance(found, torch.Tensor) else list(found)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.double(), theirs.double(), atol=tolerance, rtol=tolerance)
    return private


# --- Masks -------------------------------------------------------------------------------------------

MASKS = {
    "all true": (lambda q: F.scaled_dot_product_attention(q, q, q, torch.ones(5, 5, dtype=torch.bool))),
    "constant bits": (lambda q: F.scaled_dot_product_attention(q, q, q, CAUSAL)),
    "causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True)),
    "grouped queries": (lambda q: F.scaled_dot_product_attention(q, q[:, :2], q[:, 2:], enable_gqa=True)),
    "least float": (lambda q: (q @ q.mT + torch.where(CAUSAL, 0.0, torch.finfo(torch.float32).min)).softmax(-1)),
    "minus infinity": (lambda q: (q @ q.mT + torch.where(CAUSAL, 0.0, -math.inf)).softmax(-1)),
    "filled": (lambda q: (q @ q.mT).masked_fill(~CAUSAL, -math.inf).softmax(-1)),
    "minus a billion, twice": (lambda q: (q @ q.mT + torch.where(CAUSAL, 0.0, -1e9) + CAUSAL * 0.5).softmax(-1)),
}


@pytest.mark.parametrize("name", MASKS)
def test_masked_attention(name):
    private = near(Function(MASKS[name]), HEADS)
    assert " 16 fraction bits for activations" in " ".join(private.notes), "a mask costs no fraction bits"


def test_a_mask_is_as_far_below_as_the_scores_ask_for():
    captured = capture(Function(MASKS["minus infinity"]), HEADS)
    (mask,) = captured.parameters.values()
    scores = (HEADS @ HEADS.mT).flatten()
    spread = float(scores.max() - scores.min())
    assert mask.unique().tolist() == [pytest.approx(-(2 * spread + BELOW), abs=1.0), 0.0]


def test_a_private_mask_leaves_entries_out():
    def attend(q, mask):
        return F.scaled_dot_product_attention(q, q, q, mask[:, None, None, :].to(torch.bool) & CAUSAL)

    q, mask = HEADS.repeat(2, 1, 1, 1), torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    private = near(Function(attend), q, mask)
    other = torch.tensor([[1, 0, 1, 0, 1], [1, 1, 0, 0, 0]])
    torch.testing.assert_close(private.simulate(q, other), attend(q, other), atol=2e-3, rtol=0)
    with pytest.raises(privet.InputError, match=r"at index \[0, 2\] is neither 0 nor 1"):
        private.simulate(q, torch.tensor([[1, 0, 2, 0, 1], [1, 1, 0, 0, 0]]))


@pytest.mark.parametrize(
    "model", [lambda x: F.normalize(x, dim=1), lambda x: x / x.norm(dim=1, keepdim=True).clamp(min=1e-12).expand_as(x)]
)
def test_a_vector_of_zeros_takes_no_fraction_bits(model):
    private = near(Function(model), torch.cat([MATRIX, torch.zeros(1, 8)]))
    assert " 16 fraction bits for activations" in " ".join(private.notes)
    (inverse,) = (n for n in capture(Function(model), MATRIX).graph.nodes if n.op.get("function") == "reciprocal")
    assert inverse.shape == [3, 1], "one for each vector"


# --- Integers ----------------------------------------------------------------------------------------


class Words(nn.Module):
    """Embeds ids and positions that it counts from them, as RoBERTa does."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 6), nn.Embedding(20, 6)

    def forward(self, input_ids, attention_mask=None):
        real = input_ids.ne(1).int()
        places = torch.cumsum(real, 1).type_as(real) * real
        x = self.words(input_ids) + self.places(places.long() + 1)
        if attention_mask is not None:
            x = x * attention_mask[:, :, None]
        return {"sum": x.sum(1), "none": None}


IDS = torch.tensor([[3, 10, 0, 1], [4, 4, 1, 1]])


@pytest.mark.parametrize("norm", [nn.LayerNorm(16), nn.RMSNorm(16, 1e-6)])
def test_a_normalisation_of_small_values_keeps_their_digits(norm):
    torch.manual_seed(6)
    layer = nn.Linear(8, 16)
    with torch.no_grad():
        for p in layer.parameters():
            p *= 0.003
    model = nn.Sequential(layer, nn.Unflatten(1, (1, 16)), norm).eval()
    private = near(model, MATRIX, tolerance=5e-4)
    assert private.compare(MATRIX).max_abs < 3e-4
    assert private.estimate(batch=5).total["seconds"] > 0


def test_what_others_read_is_not_scaled():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.norm = nn.Linear(8, 16), nn.RMSNorm(16)

        def forward(self, x):
            y = self.layer(x * 0.01)
            return self.norm(y) + y

    shared = Both()
    nn.init.zeros_(shared.layer.bias)
    assert not any(n.endswith(".scaled") for n in capture(shared, MATRIX).parameters), "another reads the layer"


class Columns(nn.Module):
    """Two columns of categories with tables of their own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(7, 3), nn.Embedding(4, 3)

    def forward(self, ids):
        return self.first(ids[:, 0]) + self.second(ids[:, 1])


def test_columns_have_tables_of_their_own():
    ids = torch.tensor([[6, 3], [0, 1]])
    private = near(Columns(), ids)
    assert privet._inputs.coder_of(private.interface.inputs[0].coder).columns == ((1, 1, 4),)
    for wrong, says in ([[7, 0]], r"\[0, 0\] is not from 0 to 6"), ([[0, 1], [6, 4]], r"\[1, 1\] is not from 0 to 3"):
        with pytest.raises(privet.InputError, match=says):
            private.simulate(torch.tensor(wrong))


def test_private_ids_are_looked_up():
    model = Words().eval()
    private = privet.compile(model, {"input_ids": IDS})
    assert private.check() == []
    assert [(p.name, p.shape, p.integer) for p in private.interface.inputs] == [("input_ids", [2, 4], True)]
    found = private.simulate({"input_ids": IDS.flip(0)})
    assert found["none"] is None
    torch.testing.assert_close(found["sum"], model(IDS.flip(0))["sum"].detach(), atol=1e-3, rtol=0)
    with pytest.raises(privet.InputError, match=r"'input_ids' at index \[1, 2\] is not from 0 to 10"):
        private.simulate(torch.tensor([[3, 10, 0, 1], [4, 4, 11, 1]]))
    with pytest.raises(privet.InputError, match="whole numbers"):
        private.simulate(IDS.float())
    with pytest.raises(privet.InputError, match="no input 'input_ids'"):
        private.simulate({"ids": IDS})


def test_arguments_by_name_and_a_saved_interface(tmp_path):
    model, mask = Words().eval(), torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
    private = privet.compile(model, {"input_ids": IDS, "attention_mask": mask})
    private.save(tmp_path)
    loaded = privet.load(tmp_path)
    assert loaded.interface == private.interface
    found = loaded.simulate({"attention_mask": mask, "input_ids": IDS})
    torch.testing.assert_close(found["sum"], model(IDS, mask)["sum"].detach(), atol=1e-3, rtol=0)


def test_ids_out_of_range_of_the_calibration():
    with pytest.raises(privet.CaptureError, match=r"of the examples: input 'input_ids' at index \[0, 1\]"):
        privet.compile(Words(), {"input_ids": IDS}, calibration={"input_ids": torch.tensor([[3, -1, 0, 1]])})


# --- Choices and order -------------------------------------------------------------------------------

CHOICES = {
    "comparisons": lambda x: torch.stack([(x > 0.3).float(), (x < 0.3).float(), (x >= x[:, :1]).float()]),
    "where": lambda x: torch.where(x > 0.2, x * 2, x - 1),
    "where not": lambda x: torch.where(x <= 0.2, 1.0, x),
    "where numbers": lambda x: torch.where(x > 0, 2.0, -3.0),
    "where constant": lambda x: torch.where(torch.arange(8) % 2 == 0, x, -x + 1),
    "where constant numbers": lambda x: x + torch.where(torch.arange(8) > 3, 1.0, 2.0),
    "masked fill": lambda x: x.masked_fill(x > 0, 0.5),
    "logic": lambda x: ((x > 0) & (x < 1) | (x < -1)).float() + (~(x > 0)).float(),
    "any and all": lambda x: torch.stack([(x > 1).any(1).float(), (x > -2).all(1).float()]),
    "sign": torch.sign,
    "clamp by tensors": lambda x: x.clamp(torch.full((8,), -0.5), torch.full((8,), 0.5)),
    "maximum": lambda x: torch.cat([x.amax(1), x.amin(1), x.max(1)[0], x.min(1).values, x.max().reshape(1)]),
    "argmin": lambda x: x.argmin(1),
    "index of maximum": lambda x: x.max(1).indices,
    "sort": lambda x: tuple(x.sort(1)),
    "sort down": lambda x: x.sort(1, descending=True)[0],
    "argsort": lambda x: x.argsort(0),
    "topk": lambda x: tuple(x.topk(3, 1)),
    "topk of the least": lambda x: tuple(x.topk(5, 1, largest=False)),
    "topk of one": lambda x: (*x.topk(1, 1), *x.topk(1, 0, largest=False)),
    "median": lambda x: x.median(1).values,
    "ranks": lambda x: (x.kthvalue(2, 1).values, *x.kthvalue(7, 1), x.median().reshape(1)),
    "gather of argmax": lambda x: x.gather(1, x.argmax(1, keepdim=True)),
    "row of argmax": lambda x: x.reshape(3, 4, 2)[torch.arange(3), x[:, :4].argmax(1)],
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_and_order(name):
    near(Function(CHOICES[name]), MATRIX)


def by(levels, places, row):
    """What a network of comparators makes of a row: the elements at these places."""
    line = list(row)
    for level in levels:
        assert len({place for pair in level for place in pair}) == 2 * len(level)
        for i, j in level:
            line[i], line[j] = max(line[i], line[j]), min(line[i], line[j])
    return [line[place] for place in places]


@pytest.mark.parametrize("n", range(1, 11))
def test_networks_order_every_row_of_zeros_and_ones(n):
    # Knuth's principle: a network that orders all of these orders all rows.
    for count in range(1, n + 1):
        levels, places = network(n, count)
        for row in itertools.product((0, 1), repeat=n):
            assert by(levels, places, row) == sorted(row, reverse=True)[:count]


def test_a_network_without_one_of_its_comparators_does_not():
    levels, places = network(6, 3)
    rows = list(itertools.product((0, 1), repeat=6))
    for at, level in enumerate(levels):
        for left_out in level:
            fewer = [*levels[:at], [pair for pair in level if pair != left_out], *levels[at + 1 :]]
            assert any(by(fewer, places, row) != sorted(row, reverse=True)[:3] for row in rows)


@pytest.mark.parametrize(
    ("n", "count", "comparisons", "levels"),
    [(64, 1, 63, 6), (64, 64, 543, 21), (1000, 4, 3242, 27), (1000, 10, 5411, 40), (1000, 1000, 23511, 55)],
)
def test_what_a_selection_compares(n, count, comparisons, levels):
    found = network(n, count)[0]
    assert (sum(map(len, found)), len(found)) == (comparisons, levels)


def test_the_plan_has_the_networks_comparisons():
    rows = torch.randn(2, 64, generator=torch.Generator().manual_seed(7))
    for count in (4, 64):
        private = near(Function(lambda x, k=count: x.topk(k, 1).values), rows)
        nodes = json.loads(private.plan)["nodes"]
        compared = sum(math.prod(n["ty"]["shape"]) for n in nodes if n["op"]["kind"] == "is_negative")
        assert compared == len(rows) * sum(map(len, network(64, count)[0]))


# --- Elements in another order -----------------------------------------------------------------------

MOVED = {
    "roll": lambda x: x.roll((1, -2), (2, 3)),
    "roll of all": lambda x: x.roll(3),
    "flip": lambda x: x.flip(2, 3),
    "indices of two dimensions": lambda x: x[:, :, [0, 2, 5], [1, 1, 0]],
    "indices in a table": lambda x: x[:, :, torch.tensor([[0, 1], [5, 4]])],
    "constant bits": lambda x: x[:, torch.tensor([True, False, True, False])],
    "gather": lambda x: x.gather(3, torch.tensor([0, 5, 5]).expand(2, 4, 6, 3)),
    "triangle": lambda x: x.tril() + x.triu(1) * 2,
    "diagonal": lambda x: x.diagonal(dim1=2, dim2=3),
    "unfold": lambda x: F.unfold(x, 3, padding=1, stride=2),
    "windows": lambda x: x.unfold(3, 2, 2),
    "sums so far": lambda x: x.cumsum(2),
    "reflect": lambda x: F.pad(x, (1, 2, 3, 0), mode="reflect"),
    "repeat border": lambda x: F.pad(x, (1, 2, 0, 1), mode="replicate"),
    "around": lambda x: F.pad(x, (1, 2, 0, 1), mode="circular"),
    "pad with a number": lambda x: F.pad(x, (1, 2, -1, 0), value=2.5),
    "nothing to join": lambda x: torch.cat([x[..., :0], x], -1),
    "bilinear": lambda x: F.interpolate(x, size=(9, 4), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True),
    "nearest": lambda x: F.interpolate(x, size=(8, 9)),
}


@pytest.mark.parametrize("name", MOVED)
def test_elements_in_another_order(name):
    near(Function(MOVED[name]), IMAGE)


# --- Functions and layers ----------------------------------------------------------------------------

FUNCTIONS = {
    "powers": lambda x: torch.stack([x**5, x.abs() ** 1.5 + x**0, 2**x, (x.abs() + 1) ** -2, (x.abs() + 0.5) ** 0.3]),
    "logarithms": lambda x: torch.stack([torch.log1p(x.abs()), torch.log2(x.abs() + 1), torch.log10(x.abs() + 1)]),
    "exponentials": lambda x: torch.stack([torch.expm1(x), torch.exp2(x), torch.sinh(x), torch.logaddexp(x, -x)]),
    "softplus": lambda x: F.softplus(x, beta=2.0) + F.mish(x) + F.elu(x) + F.selu(x) + F.celu(x, 0.5),
    "shrink": lambda x: F.softshrink(x) + F.hardshrink(x) + F.threshold(x, 0.1, 2.0),
    "spread": lambda x: torch.cat([x.std(1), x.var(1, unbiased=False), *torch.var_mean(x, 1)]),
    "norms": lambda x: torch.stack([x.norm(dim=1), x.norm(1, dim=1), x.norm(math.inf, dim=1), x.norm(4, dim=1)]),
    "normalize": lambda x: F.normalize(x, dim=1),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "scores after an exact factor": lambda x: ((x * 0.01 @ x.mT) * 0.125).softmax(-1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    near(Function(FUNCTIONS[name]), MATRIX, tolerance=5e-3)


LAYERS = {
    "conv1d": (nn.Conv1d(4, 6, 3, 2, 2, 2, 2), (2, 4, 9)),
    "conv1d same": (nn.Conv1d(4, 4, 4, padding="same"), (2, 4, 9)),
    "conv3d": (nn.Conv3d(4, 6, (2, 3, 3), (1, 2, 1), (1, 0, 1), groups=2), (1, 4, 4, 6, 6)),
    "conv transposed": (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, dilation=2), (2, 4, 5, 5)),
    "conv transposed of lines": (nn.ConvTranspose1d(4, 6, 2, 3), (2, 4, 5)),
    "conv transposed by phases": (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), (2, 4, 5, 3)),
    "conv transposed by phases, sides apart": (nn.ConvTranspose2d(4, 3, (4, 3), (2, 3), (1, 0), bias=False), (4, 5, 3)),
    "conv transposed, whole windows": (nn.ConvTranspose2d(4, 2, 2, 2), (2, 4, 3, 4)),
    "conv transposed of lines by phases": (nn.ConvTranspose1d(4, 6, 5, 3, 2), (2, 4, 5)),
    "conv transposed of volumes by phases": (
        nn.ConvTranspose3d(2, 3, (3, 2, 2), (2, 2, 1), (1, 0, 0)),
        (1, 2, 3, 3, 2),
    ),
    "conv transposed beyond phases": (nn.ConvTranspose2d(2, 3, 2, 2, 0, 1), (1, 2, 3, 3)),
    "conv without batch": (nn.Conv2d(4, 6, 3), (4, 6, 6)),
    "max pool 3d": (nn.MaxPool3d(3, 2, 1), (1, 2, 6, 6, 6)),
    "average pool 3d": (nn.AvgPool3d(2, padding=1), (1, 2, 6, 6, 6)),
    "adaptive pools": (nn.Sequential(nn.AdaptiveMaxPool2d(4), nn.AdaptiveAvgPool2d(7)), (2, 3, 6, 6)),
    "a large average": (nn.AdaptiveAvgPool2d(1), (1, 2, 80, 80)),
    "group norm": (nn.GroupNorm(2, 4), (2, 4, 5, 5)),
    "instance norm": (nn.InstanceNorm1d(4, affine=True), (2, 4, 9)),
    "rms norm": (nn.RMSNorm(8), (3, 8)),
    "bilinear form": (nn.Bilinear(8, 8, 3), None),
    "half precision": (nn.Linear(8, 3).to(torch.bfloat16), None),
    "lstm": (nn.LSTM(8, 5, 2, batch_first=True, bidirectional=True), (2, 4, 8)),
    "gru": (nn.GRU(8, 5, batch_first=True), (2, 4, 8)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    layer, shape = LAYERS[name]
    if name == "bilinear form":
        near(layer, MATRIX, MATRIX.flip(1))
    elif name == "half precision":
        near(layer, MATRIX.bfloat16(), tolerance=5e-2)
    else:
        model = Function(lambda x: layer(x)[0]) if name in ("lstm", "gru") else layer
        near(model, torch.randn(shape, generator=torch.Generator().manual_seed(4)))


def test_transposed_convolutions_multiply_no_zeros_between_pixels():
    captured = capture(nn.ConvTranspose2d(4, 2, 2, 2), torch.randn(1, 4, 3, 5))
    (convolution,) = (n for n in captured.graph.nodes if n.kind == "conv2d")
    assert captured.graph.nodes[convolution.inputs[0]].shape == [1, 4, 3, 5]
    assert convolution.shape == [1, 8, 3, 5]


class Mixed(nn.Module):
    """Private ids, a private and a constant mask, a comparison, and an order."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, ids, mask):
        x = self.words(ids)
        causal = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        y = self.attention(x, x, x, attn_mask=causal, need_weights=False)[0]
        y = torch.where(y > 0.05, y, -y) * mask[:, :, None]
        return y.sum(1).topk(3, 1)[0]


FAMILIES = [("fss", None), ("rep3", "semi-honest"), ("rep3", "malicious"), ("semi2k", None)]


@pytest.mark.parametrize(("protocol", "security"), FAMILIES)
def test_they_run_between_processes(protocol, security):
    torch.manual_seed(0)
    model, ids, mask = Mixed().eval(), torch.randint(0, 9, (2, 4)), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    private = privet.compile(model, (ids, mask), protocol, security=security)
    parameters = {"helper": "dealer"} if protocol == "semi2k" else None
    with privet.local(private, parameters=parameters) as session, torch.no_grad():
        torch.testing.assert_close(session.run(ids, mask), model(ids, mask), atol=1e-3, rtol=0)


# --- Layer by layer ----------------------------------------------------------------------------------


class Grouped(nn.Module):
    """Keys and values of one shape in one layer, repeated for the heads of the queries."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(6)
        self.q, self.k, self.v = (nn.Parameter(torch.randn(n, 16) / 4) for n in (16, 8, 8))

    def forward(self, x):
        q, k, v = (F.linear(x, w).view(1, 6, -1, 8).transpose(1, 2) for w in (self.q, self.k, self.v))
        k = torch.cat([-k[..., 4:], k[..., :4]], -1) * 0.5 + k
        scores = q @ k.repeat_interleave(2, 1).mT * 0.35
        return (scores.softmax(-1) @ v.repeat_interleave(2, 1)).transpose(1, 2).reshape(1, 6, 16)


@pytest.mark.parametrize("protocol", ["fss", "rep3"])
def test_each_value_of_attention_is_compared_with_itself(protocol):
    x = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(4))
    private = privet.compile(Grouped(), x, protocol, guard=False)
    comparison = private.compare(x)
    assert len(comparison.layers) >= 4
    assert all(d.max_abs < 1e-3 for d in comparison.layers), str(comparison)


def test_a_layer_that_is_wrong_is_seen_as_such():
    x = torch.randn(1, 6, 16, generator=torch.Generator().manual_seed(4))
    private = privet.compile(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)), x, guard=False)
    spoiled = {name: t.clone() for name, t in load(private.weights).items()}
    spoiled[next(name for name, t in spoiled.items() if t.shape == (16, 16))][3] *= 1.5
    private._owned = replace(private._owned, weights=save(spoiled))
    off = {d.layer for d in private.compare(x).layers if d.max_abs > 0.02}
    assert off == {"0", "1", "2"}


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_table_is_a_weight_of_a_session(rank):
    # Masked once a session and not once a run; its proofs are about its columns, not about each look-up's.
    ids = torch.arange(6).reshape([1] * (rank - 1) + [6])
    private = near(nn.Embedding(12, 4), ids)
    kinds = [node["op"]["kind"] for node in json.loads(private.plan)["nodes"]]
    assert "linear" in kinds and "mat_mul" not in kinds
