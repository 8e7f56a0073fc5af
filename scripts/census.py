"""Which published models and layers compile unmodified: one line each, and percentages.

    scripts/python.sh scripts/census.py [--only text|vision|modules] [--match NAME] [--markdown]

Models have random weights and few layers: what is looked at is whether `privet.compile` takes them and whether the
integer plan, run in the clear, is near to PyTorch. Models of packages that are not
installed are skipped.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import privet

LENGTH = 8
"""Tokens."""

SMALL = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48,
    "max_position_embeddings": 40,
}  # fmt: skip
"""What most configurations of transformers call their sizes."""

GROUPED = {**SMALL, "num_key_value_heads": 1, "head_dim": 16}
"""The same with keys and values for groups of heads."""

OLD = {"vocab_size": 64, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 40}
"""What GPT-2 calls them."""

TEXT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("Bert", "SequenceClassification", SMALL),
    "bert-mlm": ("Bert", "MaskedLM", SMALL),
    "bert-qa": ("Bert", "QuestionAnswering", SMALL),
    "roberta": ("Roberta", "SequenceClassification", {**SMALL, "pad_token_id": 1}),
    "distilbert": ("DistilBert", "SequenceClassification", {"vocab_size": 64, "dim": 32, "n_layers": 1, "n_heads": 2,
                   "hidden_dim": 48, "max_position_embeddings": 40}),
    "albert": ("Albert", "SequenceClassification", {**SMALL, "embedding_size": 16}),
    "electra": ("Electra", "SequenceClassification", {**SMALL, "embedding_size": 16}),
    "deberta-v2": ("DebertaV2", "SequenceClassification", {**SMALL, "relative_attention": True, "position_buckets": 8,
                   "pos_att_type": ["p2c", "c2p"], "max_relative_positions": -1, "share_att_key": True}),
    "mpnet": ("MPNet", "Model", SMALL),
    "modernbert": ("ModernBert", "SequenceClassification", {**SMALL, "num_hidden_layers": 2, "pad_token_id": 0,
                   "cls_token_id": 1, "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2}),
    "gpt2": ("GPT2", "LMHeadModel", OLD),
    "gpt2-classifier": ("GPT2", "ForSequenceClassification", {**OLD, "pad_token_id": 0}),
    "llama": ("Llama", "CausalLM", GROUPED),
    "qwen2": ("Qwen2", "CausalLM", GROUPED),
    "qwen3": ("Qwen3", "CausalLM", GROUPED),
    "mistral": ("Mistral", "CausalLM", GROUPED),
    "gemma": ("Gemma", "CausalLM", GROUPED),
    "gemma2": ("Gemma2", "CausalLM", GROUPED),
    "opt": ("OPT", "CausalLM", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    "phi": ("Phi", "CausalLM", SMALL),
    "phi3": ("Phi3", "CausalLM", {**SMALL, "pad_token_id": 0, "num_key_value_heads": 2}),
    "gpt-neox": ("GPTNeoX", "CausalLM", SMALL),
    "bloom": ("Bloom", "CausalLM", {"vocab_size": 64, "hidden_size": 32, "n_layer": 1, "n_head": 2}),
    "falcon": ("Falcon", "CausalLM", SMALL),
    "mamba": ("Mamba", "CausalLM", {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4}),
    "t5-encoder": ("T5", "EncoderModel", {"vocab_size": 64, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1,
                   "num_heads": 2}),
    "t5": ("T5", "ForConditionalGeneration", {"vocab_size": 64, "d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1,
           "num_heads": 2, "decoder_start_token_id": 0}),
    "bart": ("Bart", "ForConditionalGeneration", {"vocab_size": 64, "d_model": 32, "encoder_layers": 1,
             "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 48,
             "decoder_ffn_dim": 48, "max_position_embeddings": 40, "pad_token_id": 1, "bos_token_id": 0,
             "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None}),
    "clip-text": ("CLIPText", "Model", {**SMALL, "eos_token_id": 63}),
}  # fmt: skip
"""Configuration, class and sizes of models that take tokens."""

PICTURES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "vit": ("ViT", "ForImageClassification", {**SMALL, "image_size": 32, "patch_size": 8}),
    "deit": ("DeiT", "ForImageClassification", {**SMALL, "image_size": 32, "patch_size": 8}),
    "beit": ("Beit", "ForImageClassification", {**SMALL, "image_size": 32, "patch_size": 8}),
    "dinov2": ("Dinov2", "ForImageClassification", {**SMALL, "image_size": 32, "patch_size": 8}),
    "swin": ("Swin", "ForImageClassification", {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2],
             "num_heads": [2], "window_size": 4}),
    "swinv2": ("Swinv2", "ForImageClassification", {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2],
               "num_heads": [2], "window_size": 4}),
    "convnext": ("ConvNext", "ForImageClassification", {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}),
    "resnet": ("ResNet", "ForImageClassification", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
               "layer_type": "basic"}),
    "segformer": ("Segformer", "ForSemanticSegmentation", {"hidden_sizes": [8, 16], "depths": [1, 1],
                  "num_encoder_blocks": 2, "num_attention_heads": [1, 2], "sr_ratios": [2, 1], "patch_sizes": [3, 3],
                  "strides": [2, 2], "mlp_ratios": [2, 2], "decoder_hidden_size": 16}),
    "clip-vision": ("CLIPVision", "Model", {**SMALL, "image_size": 32, "patch_size": 8}),
    "siglip-vision": ("SiglipVision", "Model", {**SMALL, "image_size": 32, "patch_size": 8}),
}  # fmt: skip
"""The same of models that take images."""

TORCHVISION = {
    "resnet18": 64, "mobilenet_v2": 64, "mobilenet_v3_small": 64, "efficientnet_b0": 64, "densenet121": 64,
    "shufflenet_v2_x1_0": 64, "regnet_y_400mf": 64, "squeezenet1_1": 64, "convnext_tiny": 32, "googlenet": 64,
    "swin_t": 64, "swin_v2_t": 64, "vgg11_bn": 64,
}  # fmt: skip
"""Image classifiers, and the size of their image."""

TIMM = {
    "resnet18": 64, "efficientnet_lite0": 64, "convnextv2_atto": 64, "vit_tiny_patch16_224": 224, "levit_128s": 224,
    "poolformer_s12": 64, "resmlp_12_224": 224, "edgenext_xx_small": 64, "mobilevitv2_050": 64, "ecaresnet26t": 64,
    "efficientvit_b0": 64, "mixer_s32_224": 224,
}  # fmt: skip


LINES, IMAGES, VOLUMES = (2, 4, 9), (2, 4, 8, 8), (1, 4, 4, 6, 6)
SEQUENCE, ROWS = (2, 5, 8), (3, 8)

MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    **{f"Conv{d}d": (lambda d=d: getattr(nn, f"Conv{d}d")(4, 6, 3, 2, 1), s) for d, s in ((1, LINES), (2, IMAGES),
       (3, VOLUMES))},
    **{f"ConvTranspose{d}d": (lambda d=d: getattr(nn, f"ConvTranspose{d}d")(4, 6, 3, 2, 1, 1), s) for d, s in
       ((1, LINES), (2, IMAGES), (3, VOLUMES))},
    "Conv2d(unbatched)": (lambda: nn.Conv2d(4, 6, 3), (4, 8, 8)),
    "Conv2d(reflect)": (lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), IMAGES),
    "Conv2d(circular)": (lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular"), IMAGES),
    **{f"{k}Pool{d}d": (lambda k=k, d=d: getattr(nn, f"{k}Pool{d}d")(2), s) for k in ("Max", "Avg") for d, s in
       ((1, LINES), (2, IMAGES), (3, VOLUMES))},
    **{f"Adaptive{k}Pool{d}d": (lambda k=k, d=d: getattr(nn, f"Adaptive{k}Pool{d}d")(3), s) for k in ("Max", "Avg")
       for d, s in ((1, LINES), (2, IMAGES), (3, VOLUMES))},
    "AdaptiveAvgPool2d(larger)": (lambda: nn.AdaptiveAvgPool2d(12), IMAGES),
    "AdaptiveAvgPool2d(1)@80": (lambda: nn.AdaptiveAvgPool2d(1), (1, 2, 80, 80)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), IMAGES),
    **{f"{k}Pad2d": (lambda k=k: getattr(nn, f"{k}Pad2d")(2), IMAGES) for k in ("Reflection", "Replication",
       "Circular", "Zero")},
    "ConstantPad1d": (lambda: nn.ConstantPad1d(2, 1.5), LINES),
    **{k: (lambda k=k: getattr(nn, k)(), ROWS) for k in ("CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid",
       "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "SiLU",
       "Sigmoid",
       "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Identity", "Dropout", "Flatten")},
    "GLU": (nn.GLU, ROWS),
    "Threshold": (lambda: nn.Threshold(0.1, 20), ROWS),
    "Softmax": (lambda: nn.Softmax(-1), ROWS),
    "Softmin": (lambda: nn.Softmin(-1), ROWS),
    "LogSoftmax": (lambda: nn.LogSoftmax(-1), ROWS),
    **{f"BatchNorm{d}d": (lambda d=d: getattr(nn, f"BatchNorm{d}d")(4), s) for d, s in ((1, LINES), (2, IMAGES),
       (3, VOLUMES))},
    "BatchNorm2d(no statistics)": (lambda: nn.BatchNorm2d(4, track_running_stats=False), IMAGES),
    **{f"InstanceNorm{d}d": (lambda d=d: getattr(nn, f"InstanceNorm{d}d")(4, affine=True), s) for d, s in ((1, LINES),
       (2, IMAGES), (3, VOLUMES))},
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), IMAGES),
    "LayerNorm": (lambda: nn.LayerNorm(8), ROWS),
    "RMSNorm": (lambda: nn.RMSNorm(8), ROWS),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), IMAGES),
    "RNN": (lambda: nn.RNN(8, 6, batch_first=True), SEQUENCE),
    "RNN(both ways, 2 layers)": (lambda: nn.RNN(8, 6, 2, bidirectional=True, batch_first=True), SEQUENCE),
    "LSTM": (lambda: nn.LSTM(8, 6, batch_first=True), SEQUENCE),
    "LSTM(both ways)": (lambda: nn.LSTM(8, 6, bidirectional=True, batch_first=True), SEQUENCE),
    "GRU": (lambda: nn.GRU(8, 6, batch_first=True), SEQUENCE),
    "LSTMCell": (lambda: nn.LSTMCell(8, 6), ROWS),
    "GRUCell": (lambda: nn.GRUCell(8, 6), ROWS),
    "MultiheadAttention": (lambda: Causal(False), SEQUENCE),
    "MultiheadAttention(causal)": (lambda: Causal(), SEQUENCE),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), SEQUENCE),
    "TransformerEncoder(causal)": (lambda: CausalEncoder(), SEQUENCE),
    "TransformerDecoderLayer": (lambda: Decoder(), SEQUENCE),
    "Linear": (lambda: nn.Linear(8, 3), ROWS),
    "Bilinear": (lambda: Both(nn.Bilinear(8, 8, 3)), ROWS),
    "CosineSimilarity": (lambda: Both(nn.CosineSimilarity()), ROWS),
    "PairwiseDistance": (lambda: Both(nn.PairwiseDistance()), ROWS),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), IMAGES),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), IMAGES),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), IMAGES),
    "Unfold": (lambda: nn.Unfold(3), IMAGES),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 4)), ROWS),
    **{f"Upsample({m})": (lambda m=m: nn.Upsample(scale_factor=2, mode=m), IMAGES) for m in ("nearest", "bilinear",
       "bicubic", "nearest-exact", "area")},
    "Upsample(7)": (lambda: nn.Upsample(size=7, mode="nearest"), IMAGES),
    "Upsample(linear)": (lambda: nn.Upsample(scale_factor=2, mode="linear"), LINES),
    "Upsample(trilinear)": (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), VOLUMES),
    "Linear(bfloat16)": (lambda: nn.Linear(8, 3).to(torch.bfloat16), ROWS),
}  # fmt: skip


class Causal(nn.Module):
    """Attention under a mask of minus infinity, or under none."""

    def __init__(self, causal: bool = True) -> None:
        super().__init__()
        self.causal = causal
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Each row looks at those before it."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        return self.attention(x, x, x, attn_mask=mask)[0]


class CausalEncoder(nn.Module):
    """An encoder under a causal mask."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Each row looks at those before it."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.body(x, mask, is_causal=True)


class Decoder(nn.Module):
    """A decoder's layer of its own input."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both operands are x."""
        return self.body(x, x)


class Both(nn.Module):
    """A module of two operands."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x, and x in another order."""
        return self.body(x, x.flip(-1) * 0.5 + 1)


@dataclass
class Row:
    """What became of one model."""

    group: str
    name: str
    outcome: str
    difference: float = 0.0
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether it compiled unmodified, near to PyTorch."""
        return self.outcome == "ok"


def first(value: Any) -> torch.Tensor:
    """The first tensor of a result."""
    if isinstance(value, torch.Tensor):
        return value
    items = value.values() if hasattr(value, "values") else value
    return first(next(iter(items)))


def judge(group: str, name: str, build: Callable[[], tuple[nn.Module, Any]], tolerance: float = 0.05) -> Row:
    """Compile a model and run its integer plan; the difference is relative to the largest result."""
    torch.manual_seed(1)
    began = time.monotonic()
    try:
        model, inputs = build()
        model.eval()
        private = privet.compile(model, inputs)
        problems = private.check()
        if problems:
            return Row(group, name, "missing: " + ", ".join(dict.fromkeys(p["op"] for p in problems)))
        call = inputs if isinstance(inputs, dict) else {}
        tensors = [v for v in call.values() if isinstance(v, torch.Tensor)] if call else [inputs]
        found = first(private.simulate(*tensors))
        with torch.no_grad():
            wanted = first(model(**inputs) if call else model(inputs)).float()
        gap = float((found - wanted).abs().max()) / max(1.0, float(wanted.abs().max()))
        outcome = "ok" if gap <= tolerance else f"differs by {gap:.3g}"
        return Row(group, name, outcome, gap, time.monotonic() - began)
    except privet.PrivetError as error:
        return Row(group, name, f"{type(error).__name__}: {str(error)[:200]}")
    except Exception as error:  # what a user must never see is counted here
        return Row(group, name, f"RAW {type(error).__name__}: {str(error)[:160]}")


def language(name: str, attention: str, masked: bool) -> tuple[nn.Module, Any]:
    """A model of transformers as called: ids, and a padding mask where asked for."""
    import transformers

    family, kind, sizes = TEXT[name]
    config = getattr(transformers, f"{family}Config")(**sizes)
    config._attn_implementation = attention
    classes = (f"{family}{kind}", f"{family}For{kind}")
    build = next(getattr(transformers, c) for c in classes if hasattr(transformers, c))
    try:
        model = build(config)
    except ValueError:  # it has no other attention
        config._attn_implementation = "eager"
        model = build(config)
    inputs = {"input_ids": torch.randint(3, 60, (1, LENGTH), generator=torch.Generator().manual_seed(3))}
    if name in ("t5", "bart"):  # what has been written so far is an input, too
        inputs["decoder_input_ids"] = inputs["input_ids"][:, : LENGTH // 2].flip(1)
    if name == "clip-text":
        inputs["input_ids"][0, -1] = 63
    if masked:
        inputs["attention_mask"] = torch.tensor([[1] * (LENGTH - 2) + [0] * 2])
    return model, inputs


def picture(name: str) -> tuple[nn.Module, Any]:
    """A model of transformers that takes images."""
    import transformers

    family, kind, sizes = PICTURES[name]
    model = getattr(transformers, f"{family}{kind}")(getattr(transformers, f"{family}Config")(**sizes))
    return model, torch.randn(1, 3, 32, 32)


def torchvision_model(name: str) -> tuple[nn.Module, Any]:
    """A classifier of torchvision."""
    import torchvision

    return torchvision.models.get_model(name, weights=None), torch.randn(1, 3, TORCHVISION[name], TORCHVISION[name])


def timm_model(name: str) -> tuple[nn.Module, Any]:
    """A classifier of timm."""
    import timm

    return timm.create_model(name, pretrained=False), torch.randn(1, 3, TIMM[name], TIMM[name])


def layer(name: str) -> tuple[nn.Module, Any]:
    """A module of torch.nn."""
    build, shape = MODULES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    model = build()
    return model, x.to(next(model.parameters()).dtype) if name.endswith("(bfloat16)") else x


def rows(only: str | None, match: str) -> list[Row]:
    """All that is asked for; packages that are not there are said once."""
    there = {p: importlib.util.find_spec(p) is not None for p in ("transformers", "torchvision", "timm")}
    for package, installed in there.items():
        if not installed:
            print(f"{package} is not installed: its models are skipped", file=sys.stderr)
    jobs: list[tuple[str, str, Callable[[], tuple[nn.Module, Any]]]] = []
    if only in (None, "modules"):
        jobs += [("torch.nn", n, lambda n=n: layer(n)) for n in MODULES]  # type: ignore[misc]
    if only in (None, "text") and there["transformers"]:
        for n in TEXT:
            jobs.append(("transformers, ids", n, lambda n=n: language(n, "sdpa", False)))  # type: ignore[misc]
            jobs.append(("transformers, ids and mask", n, lambda n=n: language(n, "sdpa", True)))  # type: ignore[misc]
            jobs.append(("transformers, eager, mask", n, lambda n=n: language(n, "eager", True)))  # type: ignore[misc]
    if only in (None, "vision"):
        if there["transformers"]:
            jobs += [("transformers, images", n, lambda n=n: picture(n)) for n in PICTURES]  # type: ignore[misc]
        if there["torchvision"]:
            jobs += [("torchvision", n, lambda n=n: torchvision_model(n)) for n in TORCHVISION]  # type: ignore[misc]
        if there["timm"]:
            jobs += [("timm", n, lambda n=n: timm_model(n)) for n in TIMM]  # type: ignore[misc]
    found = []
    for group, name, build in jobs:
        if match in name:
            found.append(judge(group, name, build))
            row = found[-1]
            print(
                f"{row.group:28} {row.name:28} {row.seconds:6.1f} s  {row.difference:8.1e}  {row.outcome}", flush=True
            )
    return found


def summary(found: list[Row]) -> str:
    """Percentages by group."""
    lines = []
    for group in dict.fromkeys(r.group for r in found):
        of_group = [r for r in found if r.group == group]
        good = sum(r.good for r in of_group)
        lines.append(f"{group}: {good} of {len(of_group)} ({100 * good / len(of_group):.0f} %)")
    return "\n".join(lines)


def main() -> None:
    """The census; exit code 1 where an error reached the user that is not privet's own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=("text", "vision", "modules"))
    parser.add_argument("--match", default="", help="part of a name")
    parser.add_argument("--markdown", action="store_true", help="a table for docs/models.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = rows(options.only, options.match)
    if options.markdown:
        print("\n| group | name | result | difference |\n|---|---|---|---|")
        for r in found:
            print(f"| {r.group} | {r.name} | {r.outcome} | {r.difference:.1e} |")
    print("\n" + summary(found))
    raise SystemExit(any(r.outcome.startswith("RAW") for r in found))


if __name__ == "__main__":
    main()
