"""Operations that are made of others: places, losses, whole numbers, angles, distances, and running products.

Each is captured, lowered, and its integer plan run in the clear beside PyTorch.
"""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from test_any_model import Function, near
from torch import nn

import privet
from privet.capture import capture
from privet.native import available

pytestmark = pytest.mark.skipif(not available(), reason="the extension is not built: make build")


def drawn(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


ROWS, OTHERS = drawn(3, 8), drawn(3, 8, seed=2)
IMAGE = drawn(2, 3, 6, 6)
PLACES = torch.tensor([[0, 7, 3], [2, 2, 1], [5, 4, 6]])
GRID = drawn(2, 5, 4, 2) * 0.7


def written(x, places, value):
    y = x.clone()
    y[places] = value
    return y


# --- Places ------------------------------------------------------------------------------------------

PUT = {
    "a column": lambda x: written(x, (slice(None), 0), x[:, 1]),
    "a block of numbers": lambda x: written(x, (slice(0, 2), slice(2, 5)), 4.0),
    "some places": lambda x: written(x, (torch.tensor([0, 2]), torch.tensor([5, 1])), x[1, :2]),
    "the same place twice": lambda x: torch.zeros(4, 8).index_add(0, torch.tensor([1, 3, 1]), x),
    "added up in rows": lambda x: torch.ones(3, 8).scatter_add(1, PLACES, x),
    "put in rows": lambda x: x.scatter(1, PLACES.flip(0)[:, :1], x + 3),
    "a number in rows": lambda x: x.scatter(1, PLACES, 2.5),
    "on the diagonal": lambda x: x.diagonal_scatter(torch.full((3,), 2.0)),
    "by a mask": lambda x: x.masked_scatter(torch.arange(24).reshape(3, 8) % 5 == 0, x * 2),
    "of a part": lambda x: x.slice_scatter(x[:, :2] * 2, 1, 3, 5),
}


@pytest.mark.parametrize("name", PUT)
def test_elements_are_put_at_constant_places(name):
    near(Function(PUT[name]), ROWS)


def test_memory_that_nobody_wrote_is_no_weight():
    # What is in it would otherwise stand in the model owner's weights.
    def halves(x):
        y = torch.empty(3, 8)
        y[:, :4] = x[:, :4]
        y[:, 4:] = x[:, 4:] * 2
        return y

    torch.use_deterministic_algorithms(True)  # which fills such memory with NaN
    try:
        captured = capture(Function(halves), ROWS)
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(bool((t == 0).all()) for t in captured.parameters.values())


@pytest.mark.parametrize("how", [{"stride": 2}, {"padding": 1}, {"dilation": 2, "padding": 2}])
def test_folding_adds_windows_up(how):
    windows = F.unfold(IMAGE, 3, **how)
    near(nn.Fold((6, 6), 3, **how), windows)


POOLS = {
    "side by side": (nn.MaxPool2d(2, return_indices=True), IMAGE),
    "overlapping": (nn.MaxPool2d(3, 2, 1, return_indices=True), IMAGE),
    "beyond the edge": (nn.MaxPool2d(4, 3, ceil_mode=True, return_indices=True), IMAGE),
    "spread": (nn.MaxPool2d(2, 1, dilation=2, return_indices=True), IMAGE),
    "of lines": (nn.MaxPool1d(3, 2, 1, return_indices=True), drawn(2, 3, 9)),
    "of volumes": (nn.MaxPool3d(2, return_indices=True), drawn(1, 2, 4, 4, 4)),
    "adaptive": (nn.AdaptiveMaxPool2d((4, 2), return_indices=True), IMAGE),
}


@pytest.mark.parametrize("name", POOLS)
def test_places_of_maxima(name):
    pool, x = POOLS[name]
    private = near(pool, x)
    assert torch.equal(private.simulate(x)[1], pool(x)[1].to(private.simulate(x)[1].dtype))


class Unpooled(nn.Module):
    def __init__(self, dims, how=None):
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{dims}d")(2, return_indices=True)
        self.back = getattr(nn, f"MaxUnpool{dims}d")(2)
        self.how = how or {}

    def forward(self, x):
        y, places = self.pool(x)
        return self.back(y.relu() * 2, places, **self.how)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_values_go_back_to_where_maxima_were(dims):
    near(Unpooled(dims), drawn(2, 3, *[4] * dims))


def test_windows_that_leave_something_over():
    near(Unpooled(2, {"output_size": (5, 5)}), drawn(1, 2, 5, 5))


def test_what_overlaps_is_not_put_back():
    class Overlapping(nn.Module):
        def forward(self, x):
            y, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
            return F.max_unpool2d(y, places, 3, 2, 1, output_size=(6, 6))

    (problem,) = privet.compile(Overlapping(), IMAGE).check()
    assert "windows that overlap" in problem["op"] and "side by side" in problem["remedy"]


@pytest.mark.parametrize("how", [{"mode": "bilinear"}, {"mode": "nearest", "padding_mode": "border"}])
def test_a_constant_grid_is_a_matrix(how):
    near(Function(lambda x: F.grid_sample(x, GRID, align_corners=False, **how)), IMAGE)
    near(Function(lambda x: F.grid_sample(x, GRID[:1].expand(2, -1, -1, -1), align_corners=True, **how)), IMAGE)


# --- Labels and tables -------------------------------------------------------------------------------

CLASSES = torch.tensor([1, 7, 0])
WEIGHTS = torch.linspace(0.5, 2.0, 8)
LABELLED = {
    "cross entropy": nn.CrossEntropyLoss(),
    "each row": nn.CrossEntropyLoss(reduction="none"),
    "weights": nn.CrossEntropyLoss(WEIGHTS),
    "weights, sum": nn.CrossEntropyLoss(WEIGHTS, reduction="sum"),
    "smoothed": nn.CrossEntropyLoss(label_smoothing=0.2),
    "smoothed, weights": nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.2),
    "a class is ignored": nn.CrossEntropyLoss(ignore_index=7),
    "margins": nn.MultiMarginLoss(p=2, margin=0.8, weight=WEIGHTS),
}


@pytest.mark.parametrize("name", LABELLED)
def test_losses_of_labels(name):
    near(LABELLED[name], ROWS, CLASSES)
    near(Function(lambda x: LABELLED[name](x, CLASSES)), ROWS)


def test_a_loss_of_images_and_of_distributions():
    scores, labels = drawn(2, 4, 3, 3), torch.arange(18).reshape(2, 3, 3) % 4
    near(nn.CrossEntropyLoss(WEIGHTS[:4]), scores, labels)
    near(nn.CrossEntropyLoss(WEIGHTS, label_smoothing=0.1), ROWS, OTHERS.softmax(-1))
    near(Function(lambda x, y: F.nll_loss(x.log_softmax(1), y)), ROWS, CLASSES)


def test_a_label_out_of_range_is_refused():
    private = privet.compile(nn.CrossEntropyLoss(), (ROWS, CLASSES))
    with pytest.raises(privet.InputError, match="is not from 0 to 7"):
        private.simulate(ROWS, torch.tensor([1, 8, 0]))


IDS = torch.tensor([[3, 0, 5], [1, 1, 7]])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_rows(mode):
    near(nn.EmbeddingBag(8, 4, mode=mode), IDS)
    offsets = torch.tensor([0, 1, 4])
    bag = nn.EmbeddingBag(8, 4, mode=mode)
    near(Function(lambda ids: bag(ids, offsets)), IDS.reshape(-1))


def test_bags_with_weights_and_tables_cut_to_a_length():
    bag = nn.EmbeddingBag(8, 4, mode="sum")
    near(Function(lambda ids, w: bag(ids, per_sample_weights=w)), IDS, torch.rand(2, 3))
    near(nn.Embedding(8, 4, max_norm=0.7), IDS)
    cut = nn.Embedding(8, 4, max_norm=0.7)
    with torch.no_grad():
        cut.weight.mul_(3)
    rows = F.normalize(cut.weight[5:7].detach().clone(), dim=1) * 0.7
    # PyTorch cuts a row when it is looked up; these were not among the examples
    private = privet.compile(cut, torch.tensor([[0, 1]]))
    torch.testing.assert_close(private.simulate(torch.tensor([[5, 6]]))[0], rows, atol=2e-3, rtol=0)


def test_private_indices_of_values_and_of_tables():
    table = nn.Parameter(drawn(8, 4))
    near(Function(lambda ids: table[ids] * 1.0), IDS)
    near(Function(lambda x, ids: x.gather(1, ids)), drawn(2, 8), IDS)
    near(Function(lambda x, ids: x.index_select(1, ids)), drawn(3, 8), IDS[0])


def test_numbers_that_the_model_makes_whole_look_up_rows():
    table = nn.Embedding(8, 4)
    near(Function(lambda x: table((x.abs() * 2).long())), ROWS)
    # PyTorch refuses what no row has; a private run cannot, and takes the nearest one.
    private = privet.compile(Function(lambda x: table(x.long())), torch.tensor([[0.5, 7.5]]))
    found = private.simulate(torch.tensor([[0.1, 7.9]]))
    torch.testing.assert_close(found, table(torch.tensor([[0, 7]])).detach(), atol=1e-3, rtol=0)


# --- Whole numbers -----------------------------------------------------------------------------------

NUMBERS = torch.tensor([[-2.75, -2.0, -1.2, -0.4, 0.0, 0.3, 1.0, 2.9]])
WHOLE = {
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "decimals": lambda x: (x * 1.003).round(decimals=1),
    "frac": torch.frac,
    "whole type": lambda x: x.int().float() + x.long(),
    "floor division": lambda x: torch.div(x, 0.5, rounding_mode="floor") + x // 2,
    "remainders": lambda x: torch.remainder(x, 1.5) + torch.fmod(x, 1.5),
    "signs": lambda x: torch.signbit(x).float() + torch.copysign(torch.full((8,), 2.0), x),
    "buckets": lambda x: torch.bucketize(x, torch.tensor([-2.0, 0.0, 0.5, 2.0])),
    "buckets, right": lambda x: torch.bucketize(x, torch.tensor([-2.0, 0.0, 0.5, 2.0]), right=True),
    "ranges": lambda x: torch.histc(x, 4, -2.0, 2.0).reshape(1, 4),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name):
    near(Function(WHOLE[name]), NUMBERS)


def test_whole_numbers_are_divided_exactly():
    # Each multiple of 7, and its neighbours: a product with 1/7 alone would miss some.
    whole = torch.arange(-70, 71).reshape(1, -1)
    private = near(Function(lambda x: (x // 7, x % 7, torch.div(x, 7, rounding_mode="trunc"))), whole)
    assert all(
        torch.equal(a, b.to(a.dtype)) for a, b in zip(private.simulate(whole), (whole // 7, whole % 7), strict=False)
    )


def test_whole_numbers_are_not_rounded_again():
    captured = capture(Function(lambda x: x.floor().long() + x.argmax(1, keepdim=True).floor_divide(1)), NUMBERS)
    assert sum(n.op.get("function") == "floor" for n in captured.graph.nodes) == 2


# --- Angles, distances, and along a dimension --------------------------------------------------------

FUNCTIONS = {
    "sine and cosine": lambda x: torch.stack([(x * 9).sin(), (x * 9).cos(), (x * 0.4).tan()]),
    "small and large angles": lambda x: torch.cat([torch.sinc(x), torch.sinc(x * 0.01), torch.sin(x * 300)]),
    "error function": lambda x: torch.stack([torch.erf(x), torch.erfc(x), torch.erf(x * 4)]),
    "arcs": lambda x: torch.stack([torch.atan(x), torch.atan(x * 20), torch.asin(x.tanh()), torch.acos(x.tanh())]),
    "hyperbolic arcs": lambda x: torch.stack([torch.asinh(x), torch.acosh(x.abs() + 1.1), torch.atanh(x * 0.3)]),
    "products": lambda x: torch.cat([x.prod(1), x.cumprod(1).reshape(-1), x[:, :3].prod().reshape(1)]),
    "largest so far": lambda x: (x.cummax(1).values, x.cummin(0).values),
    "sums of exponentials so far": lambda x: x.logcumsumexp(1),
    "pairs of rows": F.pdist,
    "matrices": lambda x: torch.addmm(torch.ones(3, 3), x, x.T, beta=0.5, alpha=2) + torch.addmv(
        torch.ones(3), x, x[0], alpha=0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_rows(name):
    near(Function(FUNCTIONS[name]), ROWS, tolerance=5e-3)


DISTANCES = {
    "of every pair": torch.cdist,
    "of every pair, magnitudes": lambda x, y: torch.cdist(x, y, 1.0),
    "of every pair, largest": lambda x, y: torch.cdist(x, y, math.inf),
    "of all": lambda x, y: torch.stack([torch.dist(x, y), torch.dist(x, y, 1)]),
    "hypotenuse": torch.hypot,
    "angle of points": torch.atan2,
    "on the way": lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(x, y, y),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_distances(name):
    near(Function(DISTANCES[name]), ROWS, OTHERS, tolerance=5e-3)


def test_all_quarters_of_a_turn():
    y, x = torch.tensor([[0.5, 0.5, -0.5, -0.5, 2.0, -2.0]]), torch.tensor([[1.0, -1.0, -1.0, 1.0, 0.1, -0.1]])
    near(Function(torch.atan2), y, x)


def test_the_mean_of_a_large_image():
    near(nn.AdaptiveAvgPool2d(1), drawn(1, 2, 200, 160))


# --- Between processes -------------------------------------------------------------------------------


class Everything(nn.Module):
    """What is new to the protocols: sines, the error function, whole numbers, places of maxima, labels."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 4)

    def forward(self, x, labels):
        y, places = F.max_pool2d(x, 2, return_indices=True)
        y = F.max_unpool2d(y.sin() + y.erf(), places, 2)
        rows = self.table((x[:, 0, :2, 0].abs() * 2.03).floor().clamp(max=5).long())
        return y, rows, F.cross_entropy(x[:, 0, 0], labels, reduction="none")


FAMILIES = [("fss", None), ("rep3", "semi-honest"), ("rep3", "malicious"), ("semi2k", None)]


@pytest.mark.parametrize(("protocol", "security"), FAMILIES)
def test_they_run_between_processes(protocol, security):
    torch.manual_seed(0)
    model, x, labels = Everything().eval(), drawn(2, 1, 4, 4), torch.tensor([3, 0])
    private = privet.compile(model, (x, labels), protocol, security=security)
    parameters = {"helper": "dealer"} if protocol == "semi2k" else None
    with privet.local(private, parameters=parameters) as session, torch.no_grad():
        for found, wanted in zip(session.run(x, labels), model(x, labels), strict=True):
            torch.testing.assert_close(found, wanted, atol=2e-3, rtol=0)
