"""Random geometries: the graph's convolution and pooling mean what torch means."""

from __future__ import annotations

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from privet.capture import capture
from privet.errors import CaptureError

small = st.integers(1, 3)
sides = st.tuples(st.integers(1, 9), st.integers(1, 9))


def spans(kernel, dilation):
    return [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]


@settings(max_examples=25, deadline=None)
@given(
    groups=small,
    factors=st.tuples(small, small),
    kernel=st.tuples(small, small),
    stride=st.tuples(small, small),
    padding=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=st.tuples(small, small),
    image=sides,
    bias=st.booleans(),
)
def test_convolution(groups, factors, kernel, stride, padding, dilation, image, bias):
    assume(all(i + 2 * p >= s for i, p, s in zip(image, padding, spans(kernel, dilation), strict=True)))
    before, after = groups * factors[0], groups * factors[1]
    layer = nn.Conv2d(before, after, kernel, stride, padding, dilation, groups, bias)
    # capture runs the graph on the example and refuses a difference
    graph = capture(layer, torch.randn(2, before, *image)).graph
    assert graph.nodes[-1].kind == "conv2d"
    assert graph.nodes[-1].op["groups"] == groups


@settings(max_examples=25, deadline=None)
@given(
    kernel=st.tuples(small, small),
    stride=st.tuples(small, small),
    dilation=st.tuples(small, small),
    padding=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    image=sides,
    ceil_mode=st.booleans(),
)
def test_max_pool(kernel, stride, dilation, padding, image, ceil_mode):
    assume(all(2 * p <= k for p, k in zip(padding, kernel, strict=True)))
    assume(all(i + 2 * p >= s for i, p, s in zip(image, padding, spans(kernel, dilation), strict=True)))
    layer = nn.MaxPool2d(kernel, stride, padding, dilation, ceil_mode=ceil_mode)
    example = torch.randn(2, 2, *image)
    if not bool(torch.isfinite(layer(example)).all()):  # a dilated window of nothing but padding
        with pytest.raises(CaptureError, match="infinity"):
            capture(layer, example)
        return
    window = capture(layer, example).graph.nodes[-1].op["window"]
    assert window == {
        "kernel": list(kernel),
        "stride": list(stride),
        "padding": list(padding),
        "dilation": list(dilation),
        "ceil_mode": ceil_mode,
    }


@settings(max_examples=25, deadline=None)
@given(
    kernel=st.tuples(small, small),
    stride=st.tuples(small, small),
    padding=st.tuples(st.integers(0, 1), st.integers(0, 1)),
    image=sides,
    ceil_mode=st.booleans(),
    count=st.booleans(),
    divisor=st.one_of(st.none(), st.integers(1, 5)),
)
def test_average_pool(kernel, stride, padding, image, ceil_mode, count, divisor):
    assume(all(2 * p <= k for p, k in zip(padding, kernel, strict=True)))
    assume(all(i + 2 * p >= k for i, p, k in zip(image, padding, kernel, strict=True)))
    layer = nn.AvgPool2d(kernel, stride, padding, ceil_mode, count, divisor)
    op = capture(layer, torch.randn(2, 2, *image)).graph.nodes[-1].op
    assert (op["count_include_pad"], op.get("divisor")) == (count, divisor)
