"""Every module of torch.nn, with the variants that lower differently."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .cases import Build, ids, layer, noise, unit, use

LINES, IMAGES, VOLUMES = noise(2, 4, 9), noise(2, 4, 8, 8), noise(1, 4, 4, 6, 6)
ROWS, SEQUENCE = noise(3, 8), noise(2, 5, 8)
BY_DIMENSION = {1: LINES, 2: IMAGES, 3: VOLUMES}
CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)


def each(name: str, make: Callable[[int], Callable[[], nn.Module]]) -> dict[str, Build]:
    """A module for lines, images and volumes; ``{}`` in the name is the dimension."""
    return {name.format(d): layer(make(d), x) for d, x in BY_DIMENSION.items()}


def plain(*names: str) -> dict[str, Build]:
    """Modules without arguments, of rows."""
    return {name: layer(getattr(nn, name), ROWS) for name in names}


CONVOLUTIONS: dict[str, Build] = {
    **each("Conv{}d", lambda d: lambda: getattr(nn, f"Conv{d}d")(4, 6, 3, 2, 1)),
    **each("ConvTranspose{}d", lambda d: lambda: getattr(nn, f"ConvTranspose{d}d")(4, 6, 3, 2, 1, 1)),
    "Conv1d(stride, dilation, groups)": layer(lambda: nn.Conv1d(4, 6, 3, 2, 2, 2, 2), LINES),
    "Conv2d(padding=same)": layer(lambda: nn.Conv2d(4, 6, 4, padding="same"), IMAGES),
    "Conv2d(unbatched)": layer(lambda: nn.Conv2d(4, 6, 3), IMAGES[0]),
    "Conv2d(padding_mode=reflect)": layer(lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), IMAGES),
    "Conv2d(padding_mode=circular)": layer(lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), IMAGES),
    "LazyConv2d": layer(lambda: initialised(nn.LazyConv2d(6, 3), IMAGES), IMAGES),
    "old weight_norm(Conv1d)": layer(lambda: nn.utils.weight_norm(nn.Conv1d(4, 6, 3)), LINES),
    "Unfold": layer(lambda: nn.Unfold(3, padding=1, stride=2), IMAGES),
    "Fold": layer(lambda: nn.Fold((6, 6), 2, stride=2), noise(2, 16, 9)),
    "Fold(overlapping)": layer(lambda: nn.Fold((4, 4), 3, padding=1), noise(2, 18, 16)),
}

POOLS: dict[str, Build] = {
    **each("MaxPool{}d", lambda d: lambda: getattr(nn, f"MaxPool{d}d")(2)),
    **each("AvgPool{}d", lambda d: lambda: getattr(nn, f"AvgPool{d}d")(2)),
    **each("LPPool{}d", lambda d: lambda: getattr(nn, f"LPPool{d}d")(2, 2)),
    **each("AdaptiveAvgPool{}d", lambda d: lambda: getattr(nn, f"AdaptiveAvgPool{d}d")(2)),
    **each("AdaptiveMaxPool{}d", lambda d: lambda: getattr(nn, f"AdaptiveMaxPool{d}d")(2)),
    **{f"MaxUnpool{d}d": use(lambda m, x: m[1](*m[0](x)), lambda d=d: nn.ModuleList(
        [getattr(nn, f"MaxPool{d}d")(2, return_indices=True), getattr(nn, f"MaxUnpool{d}d")(2)]
       ), x[..., :8]) for d, x in BY_DIMENSION.items()},
    "MaxUnpool2d(after a ReLU)": use(lambda m, x: m[1](m[0](x)[0].relu(), m[0](x)[1]), lambda: nn.ModuleList(
        [nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)]), IMAGES),
    "MaxPool2d(return_indices)": layer(lambda: nn.MaxPool2d(2, return_indices=True), IMAGES),
    "MaxPool2d(overlapping, return_indices)": layer(lambda: nn.MaxPool2d(3, 2, 1, return_indices=True), IMAGES),
    "AdaptiveMaxPool2d(uneven)": layer(lambda: nn.AdaptiveMaxPool2d(3), IMAGES),
    "AdaptiveMaxPool2d(return_indices)": layer(lambda: nn.AdaptiveMaxPool2d(2, return_indices=True), IMAGES),
    "AdaptiveAvgPool2d(larger)": layer(lambda: nn.AdaptiveAvgPool2d(12), IMAGES),
    "AdaptiveAvgPool2d(1)@112": layer(lambda: nn.AdaptiveAvgPool2d(1), noise(1, 2, 112, 112)),
    "AdaptiveAvgPool2d(1)@224": layer(lambda: nn.AdaptiveAvgPool2d(1), noise(1, 2, 224, 224)),
    "AvgPool2d(56)": layer(lambda: nn.AvgPool2d(56), noise(1, 2, 56, 56)),
    "FractionalMaxPool2d": layer(lambda: nn.FractionalMaxPool2d(2, output_size=4), IMAGES),
    "FractionalMaxPool3d": layer(lambda: nn.FractionalMaxPool3d(2, output_size=2), VOLUMES),
}  # fmt: skip

PADDING: dict[str, Build] = {
    **each("ZeroPad{}d", lambda d: lambda: getattr(nn, f"ZeroPad{d}d")(1)),
    **each("ReflectionPad{}d", lambda d: lambda: getattr(nn, f"ReflectionPad{d}d")(2)),
    **each("ReplicationPad{}d", lambda d: lambda: getattr(nn, f"ReplicationPad{d}d")(2)),
    **each("CircularPad{}d", lambda d: lambda: getattr(nn, f"CircularPad{d}d")(2)),
    **each("ConstantPad{}d(1.5)", lambda d: lambda: getattr(nn, f"ConstantPad{d}d")(2, 1.5)),
}

ACTIVATIONS: dict[str, Build] = {
    **plain("CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
            "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "SiLU", "Sigmoid", "Softplus",
            "Softshrink", "Softsign", "Tanh", "Tanhshrink"),
    "GELU(tanh)": layer(lambda: nn.GELU("tanh"), ROWS),
    "PReLU(8)": layer(lambda: nn.PReLU(8), ROWS),
    "Threshold(0.1, 20)": layer(lambda: nn.Threshold(0.1, 20), ROWS),
    "Softmin": layer(lambda: nn.Softmin(-1), ROWS),
    "Softmax": layer(lambda: nn.Softmax(-1), ROWS),
    "Softmax2d": layer(nn.Softmax2d, IMAGES),
    "LogSoftmax": layer(lambda: nn.LogSoftmax(-1), ROWS),
    "AdaptiveLogSoftmaxWithLoss.log_prob": use(
        lambda m, x: m.log_prob(x), lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8]), ROWS),
    "AdaptiveLogSoftmaxWithLoss.predict": use(
        lambda m, x: m.predict(x), lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8]), ROWS),
}  # fmt: skip

NORMALISATIONS: dict[str, Build] = {
    **each("BatchNorm{}d", lambda d: lambda: getattr(nn, f"BatchNorm{d}d")(4)),
    **each("InstanceNorm{}d", lambda d: lambda: getattr(nn, f"InstanceNorm{d}d")(4, affine=True)),
    "BatchNorm1d(2-D)": layer(lambda: nn.BatchNorm1d(8), ROWS),
    "BatchNorm2d(track_running_stats=False)": layer(lambda: nn.BatchNorm2d(4, track_running_stats=False), IMAGES),
    "InstanceNorm2d(track)": layer(lambda: nn.InstanceNorm2d(4, track_running_stats=True), IMAGES),
    "SyncBatchNorm": layer(lambda: nn.SyncBatchNorm(4), IMAGES),
    "GroupNorm": layer(lambda: nn.GroupNorm(2, 4), IMAGES),
    "LayerNorm": layer(lambda: nn.LayerNorm(8), ROWS),
    "LayerNorm(no bias)": layer(lambda: nn.LayerNorm(8, bias=False), ROWS),
    "RMSNorm": layer(lambda: nn.RMSNorm(8), ROWS),
    "LocalResponseNorm": layer(lambda: nn.LocalResponseNorm(3), IMAGES),
    "CrossMapLRN2d": layer(lambda: nn.CrossMapLRN2d(3), IMAGES),
}

RECURRENT: dict[str, Build] = {
    "RNN": layer(lambda: nn.RNN(8, 6, batch_first=True), SEQUENCE),
    "RNN(relu)": layer(lambda: nn.RNN(8, 6, nonlinearity="relu", batch_first=True), SEQUENCE),
    "RNN(bidir, 2 layers)": layer(lambda: nn.RNN(8, 6, 2, bidirectional=True, batch_first=True), SEQUENCE),
    "LSTM": layer(lambda: nn.LSTM(8, 6, batch_first=True), SEQUENCE),
    "LSTM(seq first)": layer(lambda: nn.LSTM(8, 6), SEQUENCE),
    "LSTM(proj)": layer(lambda: nn.LSTM(8, 6, proj_size=4, batch_first=True), SEQUENCE),
    "LSTM(returns state)": use(lambda m, x: m(x)[1][1], lambda: nn.LSTM(8, 6, batch_first=True), SEQUENCE),
    "LSTM(bidir, 2 layers)": layer(lambda: nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), SEQUENCE),
    "GRU": layer(lambda: nn.GRU(8, 6, batch_first=True), SEQUENCE),
    "GRU(bidir, 2 layers)": layer(lambda: nn.GRU(8, 6, 2, bidirectional=True, batch_first=True), SEQUENCE),
    "RNNCell": layer(lambda: nn.RNNCell(8, 6), ROWS),
    "LSTMCell": layer(lambda: nn.LSTMCell(8, 6), ROWS),
    "GRUCell": layer(lambda: nn.GRUCell(8, 6), ROWS),
    "RNNBase(packed sequence)": use(
        lambda m, x: nn.utils.rnn.pad_packed_sequence(
            m(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3]), batch_first=True))[0], batch_first=True)[0],
        lambda: nn.GRU(8, 6, batch_first=True), SEQUENCE),
}  # fmt: skip


def attention(**how: object) -> Callable[[nn.Module, Tensor], Tensor]:
    """Self-attention with these arguments."""
    return lambda m, x: m(x, x, x, **how)[0]


def heads() -> nn.Module:
    """Two heads of four."""
    return nn.MultiheadAttention(8, 2, batch_first=True)


def encoder(layers: int = 1) -> nn.Module:
    """An encoder of so many layers."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), layers)


def decoder() -> nn.Module:
    """A decoder of one layer."""
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)


FLOAT_MASK = nn.Transformer.generate_square_subsequent_mask(5)
PADDING_MASK = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])

TRANSFORMERS: dict[str, Build] = {
    "MultiheadAttention": use(attention(need_weights=False), heads, SEQUENCE),
    "MultiheadAttention(need_weights)": use(lambda m, x: m(x, x, x), heads, SEQUENCE),
    "MultiheadAttention(is_causal)": use(
        attention(need_weights=False, is_causal=True, attn_mask=FLOAT_MASK), heads, SEQUENCE),
    "MultiheadAttention(causal bool mask)": use(attention(attn_mask=CAUSAL), heads, SEQUENCE),
    "MultiheadAttention(float -inf mask)": use(attention(attn_mask=FLOAT_MASK), heads, SEQUENCE),
    "MultiheadAttention(key padding)": use(attention(key_padding_mask=PADDING_MASK), heads, SEQUENCE),
    "TransformerEncoderLayer": layer(lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), SEQUENCE),
    "TransformerEncoderLayer(seq first)": layer(lambda: nn.TransformerEncoderLayer(8, 2, 16), SEQUENCE),
    "TransformerEncoderLayer(gelu, norm_first)": layer(lambda: nn.TransformerEncoderLayer(
        8, 2, 16, activation="gelu", norm_first=True, batch_first=True), SEQUENCE),
    "TransformerEncoder": layer(lambda: encoder(2), SEQUENCE),
    "TransformerEncoder(causal)": use(lambda m, x: m(x, FLOAT_MASK, is_causal=True), encoder, SEQUENCE),
    "TransformerEncoder(src_key_padding_mask const)": use(
        lambda m, x: m(x, src_key_padding_mask=PADDING_MASK)[:, :3], encoder, SEQUENCE),
    "TransformerEncoder(src_key_padding_mask private)": use(
        lambda m, x, p: m(x, src_key_padding_mask=p)[:, :3], encoder, SEQUENCE, PADDING_MASK),
    "TransformerDecoderLayer": use(
        lambda m, x: m(x, x * 0.5), lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), SEQUENCE),
    "TransformerDecoder": use(lambda m, x: m(x, x * 0.5), decoder, SEQUENCE),
    "TransformerDecoder(causal)": use(
        lambda m, x: m(x, x * 0.5, tgt_mask=FLOAT_MASK, tgt_is_causal=True), decoder, SEQUENCE),
    "Transformer": use(lambda m, x: m(x, x * 0.5), lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), SEQUENCE),
    "Transformer(causal)": use(lambda m, x: m(x, x * 0.5, tgt_mask=FLOAT_MASK, tgt_is_causal=True),
                               lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), SEQUENCE),
}  # fmt: skip

LINEAR: dict[str, Build] = {
    **plain("Dropout", "AlphaDropout", "FeatureAlphaDropout", "Flatten"),
    "Dropout1d": layer(nn.Dropout1d, LINES),
    "Dropout2d": layer(nn.Dropout2d, IMAGES),
    "Dropout3d": layer(nn.Dropout3d, VOLUMES),
    "Identity": layer(lambda: nn.Sequential(nn.Linear(8, 3), nn.Identity()), ROWS),
    "Identity(alone)": layer(nn.Identity, ROWS),
    "Linear": layer(lambda: nn.Linear(8, 3), ROWS),
    "LazyLinear": layer(lambda: initialised(nn.LazyLinear(3), ROWS), ROWS),
    "Bilinear": layer(lambda: nn.Bilinear(8, 8, 3), ROWS, ROWS.flip(1)),
    "Unflatten": layer(lambda: nn.Unflatten(1, (2, 4)), ROWS),
    "weight_norm(Linear)": layer(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 3)), ROWS),
    "spectral_norm(Linear)": layer(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 3)), ROWS),
    "half Linear": layer(lambda: nn.Linear(8, 3).half(), ROWS.half()),
    "double Linear": layer(lambda: nn.Linear(8, 3).double(), ROWS.double()),
    "bfloat16 Linear": layer(lambda: nn.Linear(8, 3).bfloat16(), ROWS.bfloat16()),
    "quantize.dynamic Linear": layer(lambda: quantised(), ROWS),
}

TABLES: dict[str, Build] = {
    "Embedding(int ids)": layer(lambda: nn.Embedding(12, 6), ids(12, 2, 5)),
    "Embedding(float ids .long())": use(lambda m, x: m(x.long()), lambda: nn.Embedding(12, 6), ids(12, 2, 5).float()),
    "Embedding(const ids + x)": use(lambda m, x: m(torch.arange(8)) + x[..., None], lambda: nn.Embedding(12, 6), ROWS),
    "Embedding(padding_idx)": layer(lambda: nn.Embedding(12, 6, padding_idx=0), ids(12, 2, 5)),
    "Embedding(max_norm)": layer(lambda: nn.Embedding(12, 6, max_norm=1.0), ids(12, 2, 5)),
    "EmbeddingBag(int ids)": layer(lambda: nn.EmbeddingBag(12, 6), ids(12, 2, 5)),
    "EmbeddingBag(sum)": layer(lambda: nn.EmbeddingBag(12, 6, mode="sum"), ids(12, 2, 5)),
    "EmbeddingBag(max)": layer(lambda: nn.EmbeddingBag(12, 6, mode="max"), ids(12, 2, 5)),
    "EmbeddingBag(weights)": use(lambda m, i, w: m(i, per_sample_weights=w), lambda: nn.EmbeddingBag(
        12, 6, mode="sum"), ids(12, 2, 5), unit(2, 5)),
    "EmbeddingBag(constant offsets)": use(
        lambda m, i: m(i, torch.tensor([0, 3, 4])), lambda: nn.EmbeddingBag(12, 6), ids(12, 7)),
}  # fmt: skip

VISION: dict[str, Build] = {
    "PixelShuffle": layer(lambda: nn.PixelShuffle(2), IMAGES),
    "PixelUnshuffle": layer(lambda: nn.PixelUnshuffle(2), IMAGES),
    "ChannelShuffle": layer(lambda: nn.ChannelShuffle(2), IMAGES),
    **{f"Upsample({m}, x2)": layer(lambda m=m: nn.Upsample(scale_factor=2, mode=m), IMAGES)
       for m in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")},
    "Upsample(bilinear, align_corners)": layer(
        lambda: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), IMAGES),
    "Upsample(nearest, size=7)": layer(lambda: nn.Upsample(size=7), IMAGES),
    "Upsample(nearest 1d)": layer(lambda: nn.Upsample(scale_factor=2), LINES),
    "Upsample(linear 1d)": layer(lambda: nn.Upsample(scale_factor=2, mode="linear"), LINES),
    "Upsample(nearest 3d)": layer(lambda: nn.Upsample(scale_factor=2), VOLUMES),
    "Upsample(trilinear)": layer(lambda: nn.Upsample(scale_factor=2, mode="trilinear"), VOLUMES),
    "UpsamplingNearest2d": layer(lambda: nn.UpsamplingNearest2d(scale_factor=2), IMAGES),
    "UpsamplingBilinear2d": layer(lambda: nn.UpsamplingBilinear2d(scale_factor=2), IMAGES),
}  # fmt: skip

DISTANCES: dict[str, Build] = {
    "CosineSimilarity": layer(nn.CosineSimilarity, ROWS, ROWS.flip(1)),
    "PairwiseDistance": layer(nn.PairwiseDistance, ROWS, ROWS.flip(1)),
    "PairwiseDistance(p=1)": layer(lambda: nn.PairwiseDistance(1), ROWS, ROWS.flip(1)),
}


def initialised(module: nn.Module, x: Tensor) -> nn.Module:
    """A lazy module that has seen an input."""
    module(x)
    return module


def quantised() -> nn.Module:
    """Weights of int8, whose kernels torch does not trace."""
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 3)), {nn.Linear}, torch.qint8)


MODULES: dict[str, Build] = {
    **CONVOLUTIONS, **POOLS, **PADDING, **ACTIVATIONS, **NORMALISATIONS, **RECURRENT, **TRANSFORMERS, **LINEAR,
    **TABLES, **VISION, **DISTANCES,
}  # fmt: skip
