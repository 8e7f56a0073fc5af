"""Smooth functions: captured whole, lowered, and compared with torch in plain simulation and between processes."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privet
from privet.capture import capture

MATRIX = torch.randn(6, 8, generator=torch.Generator().manual_seed(2)) * 2


class Function(nn.Module):
    """Any function of a tensor as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def positive(x):
    return x * x + 0.1


FUNCTIONS = {
    "exp": (torch.exp, ["smooth"]),
    "sigmoid": (torch.sigmoid, ["smooth"]),
    "tanh": (torch.tanh, ["smooth"]),
    "gelu": (F.gelu, ["smooth"]),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), ["smooth"]),
    "silu": (F.silu, ["smooth"]),
    "softmax": (lambda x: F.softmax(x, dim=-1), ["smooth"]),
    "softmax of columns": (lambda x: F.softmax(x.reshape(6, 4, 2), dim=1), ["reshape", "smooth"]),
    "log_softmax": (lambda x: F.log_softmax(x, dim=1), ["smooth"]),
    "log_sigmoid": (F.logsigmoid, None),
    "log": (lambda x: torch.log(positive(x)), ["mul", "add_scalar", "smooth"]),
    "sqrt": (lambda x: torch.sqrt(positive(x)), ["mul", "add_scalar", "smooth"]),
    "rsqrt": (lambda x: torch.rsqrt(positive(x)), ["mul", "add_scalar", "smooth"]),
    "power of a half": (lambda x: positive(x) ** 0.5, ["mul", "add_scalar", "smooth"]),
    "reciprocal": (lambda x: positive(x).reciprocal(), ["mul", "add_scalar", "smooth"]),
    "division": (lambda x: x / positive(x), ["mul", "add_scalar", "smooth", "mul"]),
    "number over value": (lambda x: 3 / positive(x), ["mul", "add_scalar", "smooth", "mul_scalar"]),
    "layer norm": (nn.LayerNorm(8), None),
    "layer norm without affine": (nn.LayerNorm(8, elementwise_affine=False), None),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_captured_and_close_to_torch(name):
    function, kinds = FUNCTIONS[name]
    model = Function(function)
    captured = capture(model, MATRIX)
    found = [n.kind for n in captured.graph.nodes if n.kind not in ("input", "parameter")]
    assert kinds is None or found == kinds
    precise = privet.compile(model, MATRIX, precision=privet.Precision(bits=64, fraction=20))
    assert precise.check() == []
    difference = precise.compare(MATRIX)
    # a quotient's slope widens what rounding its denominator to 20 fraction bits costs
    assert difference.max_abs < 1e-4 * max(1.0, difference.layers[-1].scale / 10)
    chosen = privet.compile(model, MATRIX)
    assert chosen.compare(MATRIX).max_abs < 1e-2


@pytest.mark.parametrize("bits", [14, 16, 18])
@pytest.mark.parametrize("name", ["gelu", "gelu by tanh", "tanh", "sigmoid", "silu"])
def test_where_messages_are_proved_functions_take_few_pieces(name, bits):
    # One of 32 entries that are looked up, and not of 512: what is proved of a look-up grows with them.
    x = torch.linspace(-9, 9, 4001).reshape(1, -1)
    function = FUNCTIONS[name][0]
    precision = privet.Precision(bits=60, fraction=bits)
    private = privet.compile(Function(function), x, "rep3", security="malicious", precision=precision, guard=False)
    kinds = {node["op"]["kind"] for node in json.loads(private.plan)["nodes"]}
    assert "lookup" in kinds and "piecewise" not in kinds
    off = (private.simulate(x).double() - function(x.double())).abs().max()
    assert off < 2 * 2.0**-bits


class Encoder(nn.Module):
    """A small transformer encoder: attention, GELU and LayerNorm, as BERT has them."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(x).reshape(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, width)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(11)
    return Encoder()


def test_an_encoder_is_close_to_torch(encoder):
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(3))
    private = privet.compile(encoder, x, precision=privet.Precision(bits=64, fraction=20))
    assert private.check() == []
    assert private.compare(x).max_abs < 1e-3
    assert [n.op["function"] for n in capture(encoder, x).graph.nodes if n.kind == "smooth"] == [
        {"softmax": {"dim": 3}},
        "rsqrt",
        "gelu",
        "rsqrt",
    ]


def test_an_encoder_runs_between_processes(encoder):
    x = torch.randn(1, 3, 16, generator=torch.Generator().manual_seed(4))
    private = privet.compile(encoder, x, precision=privet.Precision(bits=64, fraction=20))
    with torch.no_grad():
        expected = encoder(x)
    with privet.local(private) as session:
        torch.testing.assert_close(session.run(x), expected, atol=2e-3, rtol=0)
