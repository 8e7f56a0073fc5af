"""Convolutions of every dimension, and transposed ones: all are convolutions of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._lowering import Args, Decline, Lowering, Value, op
from ._ops_layers import pair, permute, reshape_to
from ._ops_shape import cut
from .graph import Op


def several(value: Any, count: int) -> list[int]:
    """torch's ``[3]`` or ``[3, 3, 3]`` as so many numbers."""
    values = [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)]
    return values * count if len(values) == 1 else values


def batched(lo: Lowering, a: Args, dims: int, emit: Callable[[int, list[int]], int]) -> int:
    """Run a convolution with a batch dimension, adding one where the model has none."""
    x, shape = lo.use(a["input"]), lo.shape
    if len(shape) == dims + 2:
        return emit(x, shape)
    return reshape_to(lo, emit(reshape_to(lo, x, [1, *lo.shape_at(x)]), [1, *shape]), shape)


def same_padding(a: Args, kernel: list[int]) -> tuple[list[list[int]], list[int]]:
    """Padding before and after each axis, and the dilations."""
    dims = len(kernel)
    dilation = several(a["dilation"], dims)
    if a["padding"] == "valid":
        return [[0, 0]] * dims, dilation
    if a["padding"] == "same":  # torch puts the odd one below and to the right
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return [[t // 2, t - t // 2] for t in total], dilation
    return [[p, p] for p in several(a["padding"], dims)], dilation


@op("aten.conv2d.default", "aten.conv2d.padding")
def conv2d(lo: Lowering, a: Args) -> Value:
    """NCHW convolution; ``padding="same"`` is split left and right as torch does."""
    return batched(lo, a, 2, lambda x, shape: convolve(lo, a, x, shape))


def convolve(lo: Lowering, a: Args, x: int, shape: list[int]) -> int:
    """Emit a convolution from arguments in conv2d's naming."""
    w = lo.use(a["weight"])
    kernel, dilation = lo.shape_at(w)[2:], pair(a["dilation"])
    padding = [0, 0] if a["padding"] == "valid" else a["padding"]
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        padding = [t // 2 for t in total]
        extra = [t % 2 for t in total]  # torch puts the odd one below and to the right
        if any(extra):
            n, c, height, width = lo.shape_at(x)
            amounts = [[0, 0], [0, 0], [0, extra[0]], [0, extra[1]]]
            # The symmetric part stays with the convolution: only the extra row and column are explicit.
            x = lo.emit({"kind": "pad", "amounts": amounts}, [x], [n, c, height + extra[0], width + extra[1]])
    node: Op = {
        "kind": "conv2d",
        "stride": pair(a["stride"]),
        "padding": pair(padding),
        "dilation": dilation,
        "groups": int(a["groups"]),
    }
    bias = [] if a["bias"] is None else [lo.use(a["bias"])]
    return lo.emit(node, [x, w, *bias], shape)


@op("aten.conv1d.default", "aten.conv1d.padding")
def conv1d(lo: Lowering, a: Args) -> Value:
    """An image of height 1."""
    return batched(lo, a, 1, lambda x, shape: flat(lo, a, x, shape))


def flat(lo: Lowering, a: Args, x: int, shape: list[int]) -> int:
    """A convolution of lines as one of images of height 1."""
    weight = lifted(lo, a["weight"], lambda w: w.unsqueeze(2), "image")
    ((before, after),), (dilation,) = same_padding(a, [lo.shape_at(weight)[-1]])
    n, c, length = lo.shape_at(x)
    image = reshape_to(lo, x, [n, c, 1, length])
    if before != after:
        amounts = [[0, 0], [0, 0], [0, 0], [before, after]]
        image = lo.emit({"kind": "pad", "amounts": amounts}, [image], [n, c, 1, length + before + after])
        before = 0
    (stride,) = several(a["stride"], 1)
    found = conv_of(
        lo, a, (image, weight), ([1, stride], [0, before], [1, dilation]), [shape[0], shape[1], 1, shape[2]]
    )
    return reshape_to(lo, found, shape)


def conv_of(
    lo: Lowering, a: Args, operands: tuple[int, int], how: tuple[list[int], list[int], list[int]], shape: list[int]
) -> int:
    """A convolution of images by stride, padding and dilation, with the bias of the arguments."""
    stride, padding, dilation = how
    node: Op = {
        "kind": "conv2d",
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": int(a["groups"]),
    }
    bias = [] if a["bias"] is None else [lo.use(a["bias"])]
    return lo.emit(node, [*operands, *bias], shape)


def lifted(lo: Lowering, argument: Any, how: Callable[[torch.Tensor], torch.Tensor], name: str) -> int:
    """The owner's weight in another shape, with its elements in their order; or a state's."""
    known = lo.tensor(argument)
    if known is not None:
        return lo.use(lo.constant(how(known).contiguous(), f"{lo.name_of(known)}.{name}"))
    node = lo.use(argument)
    if lo.graph.nodes[node].kind != "state":
        raise Decline("a weight computed from the input")
    return reshape_to(lo, node, list(how(torch.empty(lo.shape_at(node))).shape))


@op("aten.conv3d.default", "aten.conv3d.padding")
def conv3d(lo: Lowering, a: Args) -> Value:
    """The depth's window goes into the channels, so that a single convolution of images is left."""
    return batched(lo, a, 3, lambda x, shape: deep(lo, a, x, shape))


def deep(lo: Lowering, a: Args, x: int, shape: list[int]) -> int:
    """A convolution of volumes as one of images, the depth's window being channels."""
    kernel = lo.shape_arg(a["weight"])[2:]
    (depth, *image), dilation = same_padding(a, kernel)
    stride = several(a["stride"], 3)
    n, c = lo.shape_at(x)[:2]
    amounts = [[0, 0], [0, 0], depth, *([0, 0] if b == e else [b, e] for b, e in image)]
    if any(map(any, amounts)):
        extents = [e + sum(p) for e, p in zip(lo.shape_at(x), amounts, strict=True)]
        x = lo.emit({"kind": "pad", "amounts": amounts}, [x], extents)
    h, w = lo.shape_at(x)[3:]
    outputs = shape[2]
    parts = []
    for k in range(kernel[0]):
        first = k * dilation[0]
        part = cut(lo, x, 2, first, first + (outputs - 1) * stride[0] + 1, stride[0])
        parts.append(reshape_to(lo, part, [n, c, 1, outputs, h, w]))
    wide = parts[0]
    if len(parts) > 1:
        wide = lo.emit({"kind": "concat", "dim": 2}, parts, [n, c, len(parts), outputs, h, w])
    images = reshape_to(lo, permute(lo, wide, [0, 3, 1, 2, 4, 5]), [n * outputs, c * kernel[0], h, w])
    flat_weight = lifted(lo, a["weight"], lambda t: t.reshape(t.shape[0], -1, *t.shape[3:]), "image")
    padding = [b if b == e else 0 for b, e in image]
    out = [n * outputs, shape[1], *shape[3:]]
    found = conv_of(lo, a, (images, flat_weight), (stride[1:], padding, dilation[1:]), out)
    return permute(lo, reshape_to(lo, found, [n, outputs, shape[1], *shape[3:]]), [0, 2, 1, 3, 4])


# --- Transposed --------------------------------------------------------------------------------------


def spread(lo: Lowering, x: int, dim: int, step: int) -> int:
    """``step - 1`` zeros between neighbours."""
    shape = list(lo.shape_at(x))
    if step == 1 or shape[dim] == 1:
        return x
    split = [*shape[: dim + 1], 1, *shape[dim + 1 :]]
    amounts = [[0, step - 1] if d == dim + 1 else [0, 0] for d in range(len(split))]
    wide = [step if d == dim + 1 else e for d, e in enumerate(split)]
    x = lo.emit({"kind": "pad", "amounts": amounts}, [reshape_to(lo, x, split)], wide)
    x = reshape_to(lo, x, [*shape[:dim], shape[dim] * step, *shape[dim + 1 :]])
    return cut(lo, x, dim, 0, (shape[dim] - 1) * step + 1)


def turned(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """``[in, out / groups, ...]`` as the weight of the convolution that the transposed one is."""
    inputs, outputs = weight.shape[:2]
    dims = list(range(2, weight.dim()))
    split = weight.flip(dims).reshape(groups, inputs // groups, outputs, *weight.shape[2:])
    return split.transpose(1, 2).reshape(groups * outputs, inputs // groups, *weight.shape[2:])


@op("aten.conv_transpose1d.default", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def conv_transpose(lo: Lowering, a: Args) -> Value:
    """By phases, or zeros between the pixels and then a convolution by the turned kernel."""
    weight = lo.tensor(a["weight"])
    if weight is None:
        raise Decline("transposed, by a weight that is computed or trained")
    dims = weight.dim() - 2
    name = f"{lo.name_of(weight)}.turned"
    kernel = turned(weight, int(a["groups"])).contiguous()
    plain = dict(a)
    plain |= {"stride": [1] * dims, "padding": [0] * dims}
    stride, padding = several(a["stride"], dims), several(a["padding"], dims)
    dilation, beyond = several(a["dilation"], dims), several(a["output_padding"], dims)
    spans = [-(-k // s) * s for k, s in zip(kernel.shape[2:], stride, strict=True)]
    reach = [b + k - p for b, k, p in zip(beyond, kernel.shape[2:], padding, strict=True)]
    within = all(k >= s and r <= e for k, s, r, e in zip(kernel.shape[2:], stride, reach, spans, strict=True))
    known_bias = a["bias"] is None or lo.tensor(a["bias"]) is not None
    if within and known_bias and max(stride) > 1 and max(dilation) == 1:
        return batched(lo, a, dims, lambda x, shape: by_phases(lo, plain, x, shape, (kernel, name, stride, padding)))
    plain["weight"] = lo.constant(kernel, name)

    def emit(x: int, shape: list[int]) -> int:
        amounts = [[0, 0], [0, 0]]
        for d in range(dims):
            x = spread(lo, x, d + 2, stride[d])
            border = dilation[d] * (weight.shape[d + 2] - 1) - padding[d]
            amounts.append([border, border + beyond[d]])
        for d, (before, after) in enumerate(amounts):
            x = cut(lo, x, d, max(-before, 0), lo.shape_at(x)[d] - max(-after, 0))
        amounts = [[max(b, 0), max(e, 0)] for b, e in amounts]
        if any(map(any, amounts)):
            extents = [e + sum(p) for e, p in zip(lo.shape_at(x), amounts, strict=True)]
            x = lo.emit({"kind": "pad", "amounts": amounts}, [x], extents)
        return PLAIN[dims](lo, plain, x, shape)

    return batched(lo, a, dims, emit)


PLAIN = {1: flat, 2: convolve, 3: deep}


def by_phases(
    lo: Lowering, a: dict[str, Any], x: int, shape: list[int], how: tuple[torch.Tensor, str, list[int], list[int]]
) -> int:
    """``y[s q + r - p] = sum over t of x[q - t] w[s t + r]``: every phase r is a convolution by each s-th tap.

    No zeros lie between pixels, so none are multiplied. All phases are output channels of one convolution, and are then
    laid between each other.
    """
    kernel, name, stride, padding = how
    dims, (outputs, inputs) = len(stride), kernel.shape[:2]
    taps = [-(-k // s) for k, s in zip(kernel.shape[2:], stride, strict=True)]
    axes = list(range(dims))
    # taps in their order, with zeros behind them up to whole phases
    missing = [t * s - k for t, s, k in zip(taps, stride, kernel.shape[2:], strict=True)]
    weight = kernel.flip([2 + i for i in axes])
    weight = torch.nn.functional.pad(weight, [m for last in reversed(missing) for m in (0, last)])
    weight = weight.reshape(outputs, inputs, *[e for t, s in zip(taps, stride, strict=True) for e in (t, s)])
    weight = weight.permute(0, *[3 + 2 * i for i in axes], 1, *[2 + 2 * i for i in axes])
    weight = weight.reshape(-1, inputs, *taps).flip([2 + i for i in axes])
    a = dict(a)
    a["weight"] = lo.constant(weight.contiguous(), f"{name}.phases")
    phases = weight.shape[0] // outputs
    known = None if a["bias"] is None else lo.tensor(a["bias"])
    if known is not None:
        a["bias"] = lo.constant(known.repeat_interleave(phases), f"{lo.name_of(known)}.phases")
    a["padding"] = [t - 1 for t in taps]
    n, extents = shape[0], [e + t - 1 for e, t in zip(lo.shape_at(x)[2:], taps, strict=True)]
    y = PLAIN[dims](lo, a, x, [n, outputs * phases, *extents])
    y = permute(
        lo,
        reshape_to(lo, y, [n, outputs, *stride, *extents]),
        [0, 1, *[2 + i + dims * inner for i in axes for inner in (1, 0)]],
    )
    y = reshape_to(lo, y, [n, outputs, *[e * s for e, s in zip(extents, stride, strict=True)]])
    for i in axes:
        y = cut(lo, y, 2 + i, padding[i], padding[i] + shape[2 + i])
    return y


@op("aten.convolution.default")
def convolution(lo: Lowering, a: Args) -> Value:
    """The general form."""
    if a["transposed"]:
        return conv_transpose(lo, a)
    dims = len(lo.shape_arg(a["weight"])) - 2
    return {1: conv1d, 2: conv2d, 3: conv3d}[dims](lo, a)
