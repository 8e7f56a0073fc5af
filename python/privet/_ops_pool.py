"""Pooling of every dimension and kind."""

from __future__ import annotations

from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_convolution import several
from ._ops_gather import along
from ._ops_layers import pair, reshape_to
from ._ops_scatter import Places, places_of
from ._ops_shape import cut
from .graph import Op


def window(a: Args, dilation: Any) -> dict[str, Any]:
    """A pooling window in the planner's naming."""
    kernel = pair(a["kernel_size"])
    return {
        "kernel": kernel,
        "stride": pair(a["stride"]) if a["stride"] else kernel,
        "padding": pair(a["padding"]),
        "dilation": pair(dilation),
        "ceil_mode": bool(a["ceil_mode"]),
    }


def images(lo: Lowering, argument: Any, emit: Any) -> int:
    """Run a pooling on NCHW, adding the batch dimension where the model has none."""
    x, shape = lo.use(argument), lo.shape
    if len(shape) == 4:
        return int(emit(x, shape))
    if len(shape) != 3:
        raise Decline("not two-dimensional")
    return reshape_to(lo, emit(reshape_to(lo, x, [1, *lo.shape_at(x)]), [1, *shape]), shape)


@op("aten.max_pool2d.default", "aten.max_pool2d_with_indices.default")
def max_pool2d(lo: Lowering, a: Args) -> Value:
    """Maximum over windows, and where it was."""
    node: Op = {"kind": "max_pool2d", "window": window(a, a["dilation"])}
    out = images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape))
    return out if lo.single_result else (out, window_indices(lo, a, 2))


def window_indices(lo: Lowering, a: Args, dims: int) -> Places | None:
    """Where the maxima of windows of one size were, if anything reads it."""
    if not lo.is_read(1):
        return None
    kernel = several(a["kernel_size"], dims)
    stride = several(a["stride"], dims) if a["stride"] else kernel
    padding, dilation = several(a["padding"], dims), several(a["dilation"], dims)
    windows = [
        [[at * s - p + i * d for i in range(k)] for at in range(out)]
        for out, k, s, p, d in zip(lo.shape[-dims:], kernel, stride, padding, dilation, strict=True)
    ]
    return places_of(lo, lo.use(a["self"]), windows, lo.shape)


@op("aten.avg_pool2d.default")
def avg_pool2d(lo: Lowering, a: Args) -> Value:
    """Mean over windows."""
    divisor = a["divisor_override"]
    if divisor is not None and divisor <= 0:
        raise Decline("divisor below 1")
    node: Op = {"kind": "avg_pool2d", "window": window(a, [1, 1]), "count_include_pad": bool(a["count_include_pad"])}
    if divisor is not None:
        node["divisor"] = int(divisor)
    return images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape))


@op("aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(lo: Lowering, a: Args) -> Value:
    """Mean over adaptive windows; where there are more of them than pixels, or very large ones, axis by axis."""
    sizes = [(o, e) for o, e in zip(lo.shape[-2:], lo.shape_arg(a["self"])[-2:], strict=True)]
    if any(o > e for o, e in sizes) or all(e // o > LARGE_WINDOW for o, e in sizes):
        return adaptive_means(lo, a, 2)
    node: Op = {"kind": "adaptive_avg_pool2d", "output": lo.shape[-2:]}
    return images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape))


LARGE_WINDOW = 128
"""Averages over more than this along both axes are taken one axis after the other: one factor would be small."""


# --- One axis after the other ------------------------------------------------------------------------


def columns(lo: Lowering, x: int, dim: int) -> tuple[int, list[int]]:
    """Lines along a dimension as images ``[1, outer, extent, inner]``, and the shape that they have."""
    shape = lo.shape_at(x)
    outer, inner = 1, 1
    for d, extent in enumerate(shape):
        outer, inner = (outer * extent, inner) if d < dim else (outer, inner * extent if d > dim else inner)
    return reshape_to(lo, x, [1, outer, shape[dim], inner]), shape


def pool_axis(lo: Lowering, x: int, dim: int, node: Op, extent: int) -> int:
    """A pooling of images along one dimension, to ``extent`` windows."""
    image, shape = columns(lo, x, dim)
    out = lo.emit(node, [image], [1, lo.shape_at(image)[1], extent, lo.shape_at(image)[3]])
    return reshape_to(lo, out, [*shape[:dim], extent, *shape[dim + 1 :]])


def pooled(lo: Lowering, a: Args, dims: int, kind: str) -> int:
    """Windows of any number of dimensions, one axis after the other."""
    x = lo.use(a["self"])
    kernel = several(a["kernel_size"], dims)
    stride = several(a["stride"], dims) if a["stride"] else kernel
    padding, dilation = several(a["padding"], dims), several(a.get("dilation", 1), dims)
    if a.get("divisor_override"):
        raise Decline("a divisor of one's own")
    for axis in range(dims):
        dim = len(lo.shape) - dims + axis
        w = {
            "kernel": [kernel[axis], 1], "stride": [stride[axis], 1], "padding": [padding[axis], 0],
            "dilation": [dilation[axis], 1], "ceil_mode": bool(a["ceil_mode"]),
        }  # fmt: skip
        node: Op = {"kind": kind, "window": w}
        if kind == "avg_pool2d":
            node["count_include_pad"] = bool(a["count_include_pad"])
        x = pool_axis(lo, x, dim, node, lo.shape[dim])
    return x


@op(
    "aten.max_pool1d.default", "aten.max_pool3d.default", "aten.max_pool1d_with_indices.default",
    "aten.max_pool3d_with_indices.default",
)  # fmt: skip
def max_pool(lo: Lowering, a: Args) -> Value:
    """Maximum over windows of lines or volumes, and where it was."""
    dims = 1 if "1d" in str(lo.operator) else 3
    out = pooled(lo, a, dims, "max_pool2d")
    return out if lo.single_result else (out, window_indices(lo, a, dims))


@op("aten.avg_pool1d.default", "aten.avg_pool3d.default")
def avg_pool(lo: Lowering, a: Args) -> Value:
    """Mean over windows of lines or volumes."""
    return pooled(lo, a, 1 if "1d" in str(lo.operator) else 3, "avg_pool2d")


def ends(extent: int, output: int) -> list[tuple[int, int]]:
    """torch's adaptive windows along an axis."""
    return [(o * extent // output, -(-(o + 1) * extent // output)) for o in range(output)]


def adaptive_means(lo: Lowering, a: Args, dims: int) -> int:
    """A constant matrix an axis, whose rows are the windows."""
    x = lo.use(a["self"])
    for axis in range(dims):
        dim = len(lo.shape) - dims + axis
        extent, output = lo.shape_at(x)[dim], lo.shape[dim]
        if extent == output:
            continue
        if output == 1:
            shape = list(lo.shape_at(x))
            shape[dim] = 1
            x = lo.emit({"kind": "mean", "dims": [dim], "keepdim": True}, [x], shape)
            continue
        matrix = torch.zeros(output, extent)
        for row, (start, end) in enumerate(ends(extent, output)):
            matrix[row, start:end] = 1.0 / (end - start)
        x = along(lo, x, dim, matrix)
    return x


@op("aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool3d.default", "aten._adaptive_avg_pool3d.default")
def adaptive_avg_pool(lo: Lowering, a: Args) -> Value:
    """Mean over adaptive windows of lines or volumes."""
    return adaptive_means(lo, a, 1 if "1d" in str(lo.operator) else 3)


@op("aten.adaptive_max_pool1d.default", "aten.adaptive_max_pool2d.default", "aten.adaptive_max_pool3d.default")
def adaptive_max_pool(lo: Lowering, a: Args) -> Value:
    """Maximum over adaptive windows, one axis after the other, and where it was."""
    dims = int(str(lo.operator).split("pool")[1][0])
    x = lo.use(a["self"])
    where = None
    if lo.is_read(1):
        axes = zip(lo.shape_at(x)[-dims:], lo.shape[-dims:], strict=True)
        where = places_of(lo, x, [[list(range(*w)) for w in ends(e, o)] for e, o in axes], lo.shape)
    if dims == 2 and all(e % o == 0 for e, o in zip(lo.shape_at(x)[-2:], lo.shape[-2:], strict=True)):
        kernel = [e // o for e, o in zip(lo.shape_at(x)[-2:], lo.shape[-2:], strict=True)]
        w = {"kernel": kernel, "stride": kernel, "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False}
        node: Op = {"kind": "max_pool2d", "window": w}
        return images(lo, a["self"], lambda x, shape: lo.emit(node, [x], shape)), where
    for axis in range(dims):
        dim = len(lo.shape) - dims + axis
        windows = ends(lo.shape_at(x)[dim], lo.shape[dim])
        parts = []
        for start, end in windows:
            part = cut(lo, x, dim, start, end)
            w = {
                "kernel": [end - start, 1],
                "stride": [1, 1],
                "padding": [0, 0],
                "dilation": [1, 1],
                "ceil_mode": False,
            }
            parts.append(pool_axis(lo, part, dim, {"kind": "max_pool2d", "window": w}, 1))
        shape = [*lo.shape_at(x)[:dim], len(parts), *lo.shape_at(x)[dim + 1 :]]
        x = parts[0] if len(parts) == 1 else lo.emit({"kind": "concat", "dim": dim}, parts, shape)
    return x, where
