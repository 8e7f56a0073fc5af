"""Gradients of layers, activations and slices, and products with weights that are states."""

from __future__ import annotations

from .._lowering import Args, Decline, Lowering, Value, op
from .._ops_layers import expand_to, pair, product, reshape_to
from .._ops_pointwise import add_scalar, mul_scalar, unary
from .._ops_pool import window
from .._ops_shape import cut
from .._ops_smooth import beta_of, log_sigmoid, smooth
from ..graph import Op
from ._lowering import EVALUATION, training
from ._ops_bits import Bit, choose, positive
from ._ops_norm import add, mul, over, sub

# --- Convolution and linear layers -------------------------------------------------------------------


@training("aten.convolution_backward.default")
def convolution_backward(lo: Lowering, a: Args) -> Value:
    """Gradients by input, weight and bias; those that nobody asked for are none."""
    if a["transposed"]:
        raise Decline("transposed convolution")
    g, x, w = lo.use(a["grad_output"]), lo.use(a["input"]), lo.use(a["weight"])
    lines = len(lo.shape_at(g)) == 3
    if not lines and len(lo.shape_at(g)) != 4:
        raise Decline("convolution of volumes")
    before, still = ([1], [0]) if lines else ([], [])  # of an image's height
    settings = {
        "stride": pair([*before, *a["stride"]]),
        "padding": pair([*still, *a["padding"]]),
        "dilation": pair([*before, *a["dilation"]]),
        "groups": int(a["groups"]),
    }
    by_input, by_weight, by_bias = a["output_mask"]
    gi, xi, wi = (as_image(lo, t) for t in (g, x, w))

    def gradient(kind: str, operands: list[int], of: int, image: int) -> int:
        found = lo.emit({"kind": kind, **settings}, operands, lo.shape_at(image))
        return reshape_to(lo, found, lo.shape_at(of))

    return (
        gradient("conv2d_input_grad", [wi, gi], x, xi) if by_input else None,
        gradient("conv2d_weight_grad", [xi, gi], w, wi) if by_weight else None,
        lo.emit({"kind": "sum", "dims": [0, 2, 3], "keepdim": False}, [gi], [lo.shape_at(g)[1]]) if by_bias else None,
    )


def as_image(lo: Lowering, x: int) -> int:
    """Lines as images of height 1; images as they are."""
    shape = lo.shape_at(x)
    return x if len(shape) == 4 else reshape_to(lo, x, [*shape[:2], 1, shape[2]])


@training("aten.addmm.default")
def addmm(lo: Lowering, a: Args) -> Value:
    """``c + x y``: a linear layer where y is a transposed matrix and c a vector."""
    if a["alpha"] != 1 or a["beta"] != 1:
        raise Decline("alpha or beta other than 1")
    y = lo.graph.nodes[lo.use(a["mat2"])]
    bias = lo.use(a["self"])
    if y.op == {"kind": "permute", "dims": [1, 0]} and lo.shape_at(bias) == lo.shape[-1:]:
        return lo.emit({"kind": "linear"}, [lo.use(a["mat1"]), y.inputs[0], bias], lo.shape)
    return product(lo, a["mat1"], a["mat2"], a["self"])


@op("aten.linear.default", table=EVALUATION)
def linear(lo: Lowering, a: Args) -> Value:
    """``x W^T + b`` with a weight that is a state."""
    bias = [] if a["bias"] is None else [lo.use(a["bias"])]
    return lo.emit({"kind": "linear"}, [lo.use(a["input"]), lo.use(a["weight"]), *bias], lo.shape)


# --- Pooling -----------------------------------------------------------------------------------------


def on_images(lo: Lowering, node: Op, operands: list[int]) -> int:
    """A pooling's gradient in the shape of its operand, with a batch dimension where the model has none."""
    shape = lo.shape
    if len(shape) == 4:
        return lo.emit(node, operands, shape)
    if len(shape) != 3:
        raise Decline("not two-dimensional")
    batched = [reshape_to(lo, o, [1, *lo.shape_at(o)]) for o in operands]
    return reshape_to(lo, lo.emit(node, batched, [1, *shape]), shape)


@training("aten.max_pool2d_with_indices_backward.default")
def max_pool_backward(lo: Lowering, a: Args) -> Value:
    """The gradient to the first of each window's largest elements: no indices are needed."""
    node: Op = {"kind": "max_pool2d_grad", "window": window(a, a["dilation"])}
    return on_images(lo, node, [lo.use(a["self"]), lo.use(a["grad_output"])])


@training("aten.avg_pool2d_backward.default")
def avg_pool_backward(lo: Lowering, a: Args) -> Value:
    """A share of the gradient to every element of a window."""
    node: Op = {
        "kind": "avg_pool2d_grad",
        "window": window(a, [1, 1]),
        "count_include_pad": bool(a["count_include_pad"]),
    }
    if a["divisor_override"] is not None:
        node["divisor"] = int(a["divisor_override"])
    return on_images(lo, node, [lo.use(a["grad_output"])])


@training("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool_backward(lo: Lowering, a: Args) -> Value:
    """As for an average pool, where all windows are of one size."""
    g = lo.use(a["grad_output"])
    extent, output = lo.shape[-2:], lo.shape_at(g)[-2:]
    if any(e % o for e, o in zip(extent, output, strict=True)):
        raise Decline("windows of different sizes")
    kernel = [e // o for e, o in zip(extent, output, strict=True)]
    shape = {"kernel": kernel, "stride": kernel, "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False}
    return on_images(lo, {"kind": "avg_pool2d_grad", "window": shape, "count_include_pad": True}, [g])


# --- Smooth activations ------------------------------------------------------------------------------


def one_minus(lo: Lowering, x: int) -> int:
    """1 - x."""
    return add_scalar(lo, unary(lo, {"kind": "neg"}, x), 1.0)


@training("aten.sigmoid_backward.default")
def sigmoid_backward(lo: Lowering, a: Args) -> Value:
    """``g y (1 - y)``."""
    g, y = lo.use(a["grad_output"]), lo.use(a["output"])
    return mul(lo, g, mul(lo, y, one_minus(lo, y)))


@training("aten.tanh_backward.default")
def tanh_backward(lo: Lowering, a: Args) -> Value:
    """``g (1 - y^2)``."""
    g, y = lo.use(a["grad_output"]), lo.use(a["output"])
    return mul(lo, g, one_minus(lo, mul(lo, y, y)))


@training("aten.silu_backward.default")
def silu_backward(lo: Lowering, a: Args) -> Value:
    """The gradient times the derivative, which is a function of its own."""
    return mul(lo, lo.use(a["grad_output"]), smooth(lo, "silu_grad", lo.use(a["self"])))


@training("aten.log_sigmoid_backward.default")
def log_sigmoid_backward(lo: Lowering, a: Args) -> Value:
    """``g (1 - sigmoid(x))``."""
    return mul(lo, lo.use(a["grad_output"]), one_minus(lo, smooth(lo, "sigmoid", lo.use(a["self"]))))


@training("aten.log_sigmoid_forward.default")
def log_sigmoid_forward(lo: Lowering, a: Args) -> Value:
    """The value; torch's buffer is not needed."""
    return (log_sigmoid(lo, a), None)


@training("aten.gelu_backward.default")
def gelu_backward(lo: Lowering, a: Args) -> Value:
    """The gradient times the derivative, which is a function of its own."""
    g, x = lo.use(a["grad_output"]), lo.use(a["self"])
    return mul(lo, g, smooth(lo, "gelu_tanh_grad" if a["approximate"] == "tanh" else "gelu_grad", x))


@training("aten.softplus.default")
def softplus(lo: Lowering, a: Args) -> Value:
    """``relu(x) + log(1 + e^-|beta x|) / beta``, by the bit of the sign."""
    x, beta = lo.use(a["self"]), beta_of(a)
    relu = choose(lo, Bit(positive(lo, x)), x)
    minus_size = sub(lo, x, mul_scalar(lo, relu, 2.0))
    log = smooth(lo, "log", add_scalar(lo, smooth(lo, "exp", mul_scalar(lo, minus_size, beta)), 1.0))
    return add(lo, relu, mul_scalar(lo, log, 1.0 / beta))


@training("aten.softplus_backward.default")
def softplus_backward(lo: Lowering, a: Args) -> Value:
    """``g sigmoid(beta x)``; beyond the threshold that is g but for e^-20."""
    slope = smooth(lo, "sigmoid", mul_scalar(lo, lo.use(a["self"]), beta_of(a)))
    return mul(lo, lo.use(a["grad_output"]), slope)


def below_zero(lo: Lowering, x: int, slope: float) -> tuple[Bit, int, int]:
    """Whether x > 0, x where it is, and ``e^(slope min(x, 0))``."""
    bit = Bit(positive(lo, x))
    above = choose(lo, bit, x)
    return bit, above, smooth(lo, "exp", mul_scalar(lo, sub(lo, x, above), slope))


@training("aten.elu.default", "aten.elu_.default")
def elu(lo: Lowering, a: Args) -> Value:
    """``scale x`` above zero, ``alpha scale (e^(slope x) - 1)`` below."""
    alpha, scale, slope = (float(a[name]) for name in ("alpha", "scale", "input_scale"))
    _, above, power = below_zero(lo, lo.use(a["self"]), slope)
    curve = mul_scalar(lo, add_scalar(lo, power, -1.0), alpha * scale)
    return add(lo, mul_scalar(lo, above, scale), curve)


@training("aten.elu_backward.default")
def elu_backward(lo: Lowering, a: Args) -> Value:
    """``g scale`` above zero, ``g slope alpha scale e^(slope x)`` below; above, the power is 1."""
    g, x = lo.use(a["grad_output"]), lo.use(a["self_or_result"])
    alpha, scale, slope = (float(a[name]) for name in ("alpha", "scale", "input_scale"))
    below = slope * alpha * scale
    if a["is_result"]:  # alpha scale (e^(slope x) - 1) is what there is of x below zero
        bit = Bit(positive(lo, x))
        power = add_scalar(lo, mul_scalar(lo, sub(lo, x, choose(lo, bit, x)), 1.0 / (alpha * scale)), 1.0)
    else:
        bit, _, power = below_zero(lo, x, slope)
    found = mul(lo, g, mul_scalar(lo, power, below))
    return found if scale == below else add(lo, found, mul_scalar(lo, choose(lo, bit, g), scale - below))


@training("aten._softmax_backward_data.default")
def softmax_backward(lo: Lowering, a: Args) -> Value:
    """``y (g - sum(g y))``."""
    g, y = lo.use(a["grad_output"]), lo.use(a["output"])
    dim = int(a["dim"]) % len(lo.shape_at(y))
    return mul(lo, y, sub(lo, g, over(lo, "sum", mul(lo, g, y), [dim])))


@training("aten._safe_softmax.default")
def safe_softmax(lo: Lowering, a: Args) -> Value:
    """A softmax: rows that are masked out altogether cannot occur."""
    x = lo.use(a["self"])
    return smooth(lo, {"softmax": {"dim": int(a["dim"]) % len(lo.shape_at(x))}}, x)


# --- Slices ------------------------------------------------------------------------------------------


def padded(lo: Lowering, x: int, dim: int, before: int, after: int) -> int:
    """Zeros before and after a dimension."""
    if before == after == 0:
        return x
    shape = list(lo.shape_at(x))
    amounts = [[0, 0] for _ in shape]
    amounts[dim] = [before, after]
    shape[dim] += before + after
    return lo.emit({"kind": "pad", "amounts": amounts}, [x], shape)


@training("aten.slice_backward.default")
def slice_backward(lo: Lowering, a: Args) -> Value:
    """The gradient in the places that were taken, zeros in the others."""
    g, sizes, step = lo.use(a["grad_output"]), [int(n) for n in a["input_sizes"]], int(a["step"])
    dim = int(a["dim"]) % len(sizes)
    extent = sizes[dim]
    start = int(a["start"]) + (extent if a["start"] < 0 else 0)
    if step > 1:  # every element followed by step - 1 zeros
        shape = lo.shape_at(g)
        apart = reshape_to(lo, g, [*shape[: dim + 1], 1, *shape[dim + 1 :]])
        spaced = padded(lo, apart, dim + 1, 0, step - 1)
        g = reshape_to(lo, spaced, [*shape[:dim], shape[dim] * step, *shape[dim + 1 :]])
        g = cut(lo, g, dim, 0, min(lo.shape_at(g)[dim], extent - start))
    return padded(lo, g, dim, start, extent - start - lo.shape_at(g)[dim])


@training("aten.select_backward.default")
def select_backward(lo: Lowering, a: Args) -> Value:
    """The gradient at one index, zeros at the others."""
    g, sizes = lo.use(a["grad_output"]), [int(n) for n in a["input_sizes"]]
    dim = int(a["dim"]) % len(sizes)
    index = int(a["index"]) % sizes[dim]
    one = reshape_to(lo, g, [1 if d == dim else n for d, n in enumerate(sizes)])
    return padded(lo, one, dim, index, sizes[dim] - 1 - index)


@training("aten.index_put.default", "aten._unsafe_index_put.default")
def index_put(lo: Lowering, a: Args) -> Value:
    """The gradient of constant indices along one dimension: each slice in its place, added up."""
    zero = lo.tensor(a["self"])
    given = [(d, i) for d, i in enumerate(a["indices"]) if i is not None]
    if not a["accumulate"] or zero is None or bool(zero.any()) or len(given) != 1:
        raise Decline("writing by index")
    dim, which = given[0]
    known, values = lo.tensor(which), lo.use(a["values"])
    if known is None or known.dim() != 1 or known.is_floating_point():
        raise Decline("indices that are not a constant list")
    extent = lo.shape[dim]
    parts = []
    for place in range(extent):
        taken = [cut(lo, values, dim, j, j + 1) for j, i in enumerate(known) if int(i) % extent == place]
        if not taken:
            shape = [1 if d == dim else n for d, n in enumerate(lo.shape)]
            parts.append(mul_scalar(lo, expand_to(lo, cut(lo, values, dim, 0, 1), shape), 0.0))
            continue
        total = taken[0]
        for other in taken[1:]:
            total = lo.emit({"kind": "add"}, [total, other], lo.shape_at(total))
        parts.append(total)
    return parts[0] if len(parts) == 1 else lo.emit({"kind": "concat", "dim": dim}, parts, lo.shape)
