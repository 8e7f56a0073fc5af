"""Every operation of the table, as the smallest model that uses it: capture, evaluate, compare."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from privet.capture import Capture, capture
from privet.evaluate import evaluate
from privet.graph import Graph


class Model(nn.Module):
    """Any function of tensors as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def check(model, *inputs, tolerance=1e-5) -> Capture:
    """The graph, read back from its JSON, computes what the model computes on fresh inputs."""
    captured = capture(model, inputs)
    assert captured.graph.unsupported() == []
    graph = Graph.from_json(captured.graph.to_json())
    assert graph == captured.graph
    assert all(n.range is not None for n in graph.nodes)
    for node_id, node in enumerate(graph.nodes):
        assert all(i < node_id for i in node.inputs)
    fresh = [torch.randn(x.shape, generator=torch.Generator().manual_seed(7)) for x in inputs]
    found = evaluate(graph, captured.parameters, dict(zip(graph.inputs(), fresh, strict=True)))
    model.eval()
    with torch.no_grad():
        expected = model(*[x.clone() for x in fresh])
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs.double(), atol=tolerance, rtol=tolerance)
    return captured


def kinds(captured: Capture) -> list[str]:
    return [n.kind for n in captured.graph.nodes if n.kind not in ("input", "parameter")]


IMAGE = torch.randn(2, 6, 9, 10, generator=torch.Generator().manual_seed(1))
MATRIX = torch.randn(3, 8, generator=torch.Generator().manual_seed(2))

LAYERS = {
    "conv": (nn.Conv2d(6, 4, 3, stride=2, padding=1), IMAGE, ["conv2d"]),
    "conv without bias": (nn.Conv2d(6, 4, (3, 1), padding=(1, 0), bias=False), IMAGE, ["conv2d"]),
    "conv dilated in groups": (nn.Conv2d(6, 4, 3, dilation=2, groups=2), IMAGE, ["conv2d"]),
    "conv depthwise": (nn.Conv2d(6, 6, 3, groups=6), IMAGE, ["conv2d"]),
    "conv same": (nn.Conv2d(6, 4, 3, padding="same"), IMAGE, ["conv2d"]),
    "conv same, even kernel": (nn.Conv2d(6, 4, (4, 3), padding="same", dilation=(1, 2)), IMAGE, ["pad", "conv2d"]),
    "conv valid": (nn.Conv2d(6, 4, 3, padding="valid"), IMAGE, ["conv2d"]),
    "linear": (nn.Linear(8, 5), MATRIX, ["linear"]),
    "linear without bias": (nn.Linear(8, 5, bias=False), MATRIX, ["linear"]),
    "linear on four dimensions": (nn.Linear(10, 5), IMAGE, ["linear"]),
    "relu": (nn.ReLU(), MATRIX, ["relu"]),
    "relu in place": (nn.ReLU(inplace=True), MATRIX, ["relu"]),
    "relu6": (nn.ReLU6(), MATRIX, ["clamp"]),
    "hardtanh": (nn.Hardtanh(-0.5, 2), MATRIX, ["clamp"]),
    "leaky relu": (nn.LeakyReLU(0.2), MATRIX, ["leaky_relu"]),
    "hardswish": (nn.Hardswish(), MATRIX, ["add_scalar", "clamp", "mul_scalar", "mul"]),
    "hardsigmoid": (nn.Hardsigmoid(), MATRIX, ["add_scalar", "clamp", "mul_scalar"]),
    "prelu": (nn.PReLU(), IMAGE, ["neg", "relu", "mul", "relu", "sub"]),
    "prelu by channel": (nn.PReLU(6), IMAGE, ["neg", "relu", "mul", "relu", "sub"]),
    "threshold": (nn.Threshold(0.0, 0.0), MATRIX, ["relu"]),
    "max pool": (nn.MaxPool2d(3, 2, 1), IMAGE, ["max_pool2d"]),
    "max pool rounding up": (nn.MaxPool2d((2, 3), ceil_mode=True), IMAGE, ["max_pool2d"]),
    "max pool dilated": (nn.MaxPool2d(2, 1, dilation=2), IMAGE, ["max_pool2d"]),
    "average pool": (nn.AvgPool2d(3, 2, 1), IMAGE, ["avg_pool2d"]),
    "average pool without padding": (nn.AvgPool2d(3, 2, 1, True, False), IMAGE, ["avg_pool2d"]),
    "average pool with divisor": (nn.AvgPool2d(2, divisor_override=3), IMAGE, ["avg_pool2d"]),
    "adaptive average pool": (nn.AdaptiveAvgPool2d((4, 3)), IMAGE, ["adaptive_avg_pool2d"]),
    "adaptive average pool, one side": (nn.AdaptiveAvgPool2d((None, 1)), IMAGE, ["adaptive_avg_pool2d"]),
    "adaptive max pool": (nn.AdaptiveMaxPool2d((3, 5)), IMAGE, ["max_pool2d"]),
    "batch norm": (nn.BatchNorm2d(6), IMAGE, ["batch_norm"]),
    "batch norm without affine": (nn.BatchNorm2d(6, affine=False), IMAGE, ["batch_norm"]),
    "batch norm of a matrix": (nn.BatchNorm1d(8), MATRIX, ["batch_norm"]),
    "dropout": (nn.Sequential(nn.Dropout(0.5), nn.ReLU(), nn.Dropout2d(0.5)), IMAGE, ["relu"]),
    "identity": (nn.Sequential(nn.Identity(), nn.ReLU()), MATRIX, ["relu"]),
    "flatten": (nn.Flatten(), IMAGE, ["reshape"]),
    "unflatten": (nn.Unflatten(1, (2, 4)), MATRIX, ["reshape"]),
    "upsample": (nn.Upsample(scale_factor=2), IMAGE, ["reshape", "expand", "reshape"]),
    "pixel shuffle": (nn.Sequential(nn.Conv2d(6, 8, 1), nn.PixelShuffle(2)), IMAGE,
                      ["conv2d", "reshape", "permute", "reshape"]),
    "zero pad": (nn.ZeroPad2d((1, 0, 2, 3)), IMAGE, ["pad"]),
    "bilinear weight norm": (nn.utils.parametrizations.weight_norm(nn.Linear(8, 3)), MATRIX, ["linear"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    model, example, expected = LAYERS[name]
    for norm in model.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.running_mean.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)
            if norm.affine:
                nn.init.uniform_(norm.weight, 0.5, 2)
                nn.init.uniform_(norm.bias, -1, 1)
    assert kinds(check(model, example)) == expected


FUNCTIONS = {
    "add a number": (lambda x: x + 1.5, ["add_scalar"]),
    "add scaled": (lambda x: torch.add(x, x.flatten(1).reshape(x.shape), alpha=2), None),
    "subtract from a number": (lambda x: 1 - x, ["neg", "add_scalar"]),
    "subtract": (lambda x: x - x[:, :1], ["slice", "sub"]),
    "subtract scaled": (lambda x: torch.sub(x, x, alpha=3), ["mul_scalar", "sub"]),
    "multiply by a number": (lambda x: 3 * x, ["mul_scalar"]),
    "multiply by a literal": (lambda x: x * torch.tensor(3.0), ["mul_scalar"]),
    "multiply by a vector": (lambda x: x * torch.tensor([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)[:, :1], ["mul"]),
    "divide by a number": (lambda x: x / 4, ["mul_scalar"]),
    "divide by a vector": (lambda x: x / torch.arange(1.0, 11.0), ["mul"]),
    "negate": (lambda x: -x, ["neg"]),
    "square": (lambda x: x**2, ["mul"]),
    "cube": (lambda x: x.pow(3), ["mul", "mul"]),
    "absolute value": (torch.abs, ["relu", "mul_scalar", "sub"]),
    "maximum": (lambda x: torch.maximum(x, -x), ["neg", "sub", "relu", "add"]),
    "minimum": (lambda x: torch.minimum(x, -x), ["neg", "sub", "relu", "sub"]),
    "clamp": (lambda x: x.clamp(-1, 0.5), ["clamp"]),
    "clamp from below": (lambda x: x.clamp(min=-0.5), ["clamp"]),
    "clamp from above": (lambda x: x.clamp(max=0.5), ["clamp"]),
    "clamp at zero": (lambda x: x.clamp(min=0), ["relu"]),
    "mean of pixels": (lambda x: x.mean((2, 3)), ["mean"]),
    "mean of all": (lambda x: x.mean().reshape(1) + x[:, 0, 0, 0], None),
    "mean, keepdim": (lambda x: x.mean(-1, keepdim=True), ["mean"]),
    "sum": (lambda x: x.sum((1, -1)), ["sum"]),
    "permute": (lambda x: x.permute(0, -1, 1, 2), ["permute"]),
    "transpose": (lambda x: x.transpose(1, -1), ["permute"]),
    "channels last": (lambda x: x.to(memory_format=torch.channels_last) * 2, ["mul_scalar"]),
    "slice with step": (lambda x: x[:, 1:-1, ::2, 3:], ["slice", "slice", "slice"]),
    "select": (lambda x: x[:, -1], ["slice", "reshape"]),
    "narrow": (lambda x: x.narrow(2, 1, 4), ["slice"]),
    "chunk": (lambda x: torch.chunk(x, 4, 1), ["slice"] * 3),
    "split": (lambda x: x.split([1, 2, 3], 1), ["slice"] * 3),
    "unbind": (lambda x: torch.stack(x.unbind(1)[:2], 1), ["slice", "reshape"] * 2 + ["reshape"] * 2 + ["concat"]),
    "concatenate": (lambda x: torch.cat([x, x[:, :2]], 1), ["slice", "concat"]),
    "concatenate with nothing": (lambda x: torch.cat([torch.zeros(0), x], 1), []),
    "stack": (lambda x: torch.stack([x, x], -1), ["reshape", "reshape", "concat"]),
    "index": (lambda x: x[:, [2, 0, -1]], None),
    "repeat": (lambda x: x.repeat(1, 2, 1, 3), ["concat", "concat"]),
    "expand": (lambda x: x[:, :, :, None].expand(-1, -1, -1, 4, -1), ["reshape", "expand"]),
    "squeeze": (lambda x: x[:, :1].squeeze(1).unsqueeze(-1), ["slice", "reshape", "reshape"]),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 3)), ["pad"]),
    "pad and cut": (lambda x: F.pad(x, (1, -2)), ["slice", "pad"]),
    "write through a view": (
        lambda x: F.relu_((x * 2).view(2, -1)),
        ["mul_scalar", "reshape", "relu", "reshape", "reshape"],
    ),
    "in place on a view": (lambda x: x.clone().add_(1).mul_(2), ["add_scalar", "mul_scalar"]),
    "double": (lambda x: (x.double() + 1).float(), ["add_scalar"]),
    "zeros like": (lambda x: torch.zeros_like(x) + x, ["add"]),
    "linear attention": (lambda x: x @ x.transpose(-1, -2), ["permute", "mat_mul"]),
    "einsum": (lambda x: torch.einsum("bchw,bdhw->bcd", x, x), None),
    "functional linear of a value": (lambda x: F.linear(x[0, 0], x[1, 0]), None),
    "argmax": (lambda x: x.argmax(1), ["argmax"]),
    "argmax, keepdim": (lambda x: x.argmax(-1, keepdim=True), ["argmax"]),
    "argmax of all": (lambda x: x.argmax(), ["reshape", "argmax"]),
    "indices of max": (lambda x: x.max(1)[1], ["argmax"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    function, expected = FUNCTIONS[name]
    captured = check(Model(function), IMAGE)
    if expected is not None:
        assert kinds(captured) == expected


class Products(nn.Module):
    """Every way to multiply by a weight."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 5))
        self.b = nn.Parameter(torch.randn(5))
        self.v = nn.Parameter(torch.randn(8))

    def forward(self, x):
        return x @ self.w, torch.mm(x, self.w), torch.addmm(self.b, x, self.w), x.mv(self.v), self.v @ self.w + x[:, :5]


def test_products_with_weights():
    captured = check(Products(), MATRIX)
    assert kinds(captured)[:3] == ["linear"] * 3
    assert captured.parameters["w.t"].shape == (5, 8)
    assert sorted(captured.parameters) == sorted({"w.t", "b", "v", *(n for n in captured.parameters if "folded" in n)})


def test_products_of_values():
    check(Model(lambda x, y: (x @ y, torch.bmm(x, y), x[0] @ y, x @ y[0, :, 0])), IMAGE[:, 0], IMAGE[:, 1].mT)


def test_several_inputs_and_nested_results():
    class Nested(nn.Module):
        def forward(self, left, right):
            return {"sum": left + right, "rest": (left, [right * 2])}

    captured = capture(Nested(), (MATRIX, MATRIX))
    assert list(captured.graph.inputs()) == ["left", "right"]
    assert [o.name for o in captured.graph.outputs] == ["sum", "rest.0", "rest.1.0"]
    assert captured.structure == {"dict": {"sum": 0, "rest": {"tuple": [1, {"list": [2]}]}}}


def test_argmax_ties_go_to_the_smallest_index():
    captured = capture(Model(lambda x: x.argmax(1)), torch.randn(1, 4))
    tied = torch.tensor([[1.0, 3.0, 3.0, 2.0]])
    (found,) = evaluate(captured.graph, captured.parameters, {next(iter(captured.graph.inputs())): tied})
    assert found.tolist() == [1.0]


def test_shared_weight_is_one_parameter():
    layer = nn.Linear(8, 8)
    captured = check(nn.Sequential(layer, nn.ReLU(), layer), MATRIX)
    assert len(captured.graph.parameters()) == 2
