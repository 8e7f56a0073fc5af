"""How far the integer plans of large models are from PyTorch: models at full size, with random weights.

    PYTHONPATH=FOLDER scripts/python.sh scripts/large_models.py [NAME...] [--write]

FOLDER has the packages of scripts/requirements-census.txt. Each plan is run in the clear, by its integers, which
is what every protocol computes. A model is calibrated with two rows and judged by two others. The difference is the
largest of a result, over the spread of PyTorch's results (their largest less their smallest). `--write` puts the table
into docs/models.md. The exit code is 1 where a difference is above 0.5 % of the spread.
"""

from __future__ import annotations

import argparse
import datetime
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import privet

PAGE = Path(__file__).parents[1] / "docs" / "models.md"
BEGIN, END = "<!-- large models: scripts/large_models.py -->\n", "<!-- end of the large models -->\n"
MOST = 0.005
"""Of the spread."""

Rows = Tensor | Mapping[str, Tensor]


def text(family: str, kind: str, length: int, **sizes: Any) -> Callable[[], tuple[nn.Module, Callable[[], Rows]]]:
    """A model of transformers with its own sizes, and rows of tokens."""

    def make() -> tuple[nn.Module, Callable[[], Rows]]:
        import transformers

        config = getattr(transformers, f"{family}Config")(**sizes)
        model = getattr(transformers, f"{family}{kind}")(config)
        return model, lambda: {"input_ids": torch.randint(0, config.vocab_size, (2, length))}

    return make


def image(package: str, name: str) -> Callable[[], tuple[nn.Module, Callable[[], Rows]]]:
    """A classifier of torchvision or timm, and images of 224 x 224."""

    def make() -> tuple[nn.Module, Callable[[], Rows]]:
        if package == "timm":
            import timm

            model = timm.create_model(name, pretrained=False)
        else:
            import torchvision

            model = torchvision.models.get_model(name, weights=None)
        return model, lambda: torch.randn(2, 3, 224, 224)

    return make


MODELS: dict[str, tuple[str, Callable[[], tuple[nn.Module, Callable[[], Rows]]]]] = {
    "bert-base": ("BERT-base, 128 tokens, 2 classes", text("Bert", "ForSequenceClassification", 128)),
    "gpt2": ("GPT-2, 32 tokens, 50,257 words", text("GPT2", "LMHeadModel", 32)),
    "llama": (
        "Llama-style, 4 layers of 512, 64 tokens",
        text(
            "Llama", "ForCausalLM", 64, hidden_size=512, num_hidden_layers=4, num_attention_heads=8,
            num_key_value_heads=4, intermediate_size=1408, vocab_size=8000,
        ),
    ),
    "vit-b16": ("ViT-B/16", image("torchvision", "vit_b_16")),
    "deit-tiny": ("DeiT-tiny", image("timm", "deit_tiny_patch16_224")),
    "levit-256": ("LeViT-256", image("timm", "levit_256")),
    "swin-t": ("Swin-T", image("torchvision", "swin_t")),
    "convnext-t": ("ConvNeXt-T", image("torchvision", "convnext_tiny")),
}  # fmt: skip
"""What is said of a model, and how to make it with rows."""


def scores(value: Any) -> Tensor:
    """The logits, or the first tensor."""
    if isinstance(value, Tensor):
        return value.float()
    return scores(value["logits"] if "logits" in value else next(iter(value.values())))


def alive(model: nn.Module) -> None:
    """Scales and heads that begin at 0 would hide whatever is before them."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if name.endswith("layer_scale") or (name.endswith("weight") and p.dim() == 1 and not p.any()):
                p.fill_(1.0)
            elif name.endswith("weight") and not p.any():
                nn.init.trunc_normal_(p, std=0.02)


def settle(model: nn.Module, rows: Callable[[], Rows]) -> None:
    """Batch normalisation gets the statistics of some rows: without them scores fade to a few last places."""
    layers = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None
    if layers:
        model.train()
        with torch.no_grad():
            for _ in range(4):
                given = rows()
                model(**given) if isinstance(given, Mapping) else model(given)


def judge(name: str) -> dict[str, Any]:
    """The difference of one model, of rows that it was not calibrated with."""
    about, make = MODELS[name]
    torch.manual_seed(5)
    model, rows = make()
    alive(model)
    settle(model, rows)
    model.eval()
    began = time.monotonic()
    private = privet.compile(model, rows())
    given = rows()
    found = scores(private.simulate(*(given.values() if isinstance(given, Mapping) else [given])))
    with torch.no_grad():
        wanted = scores(model(**given) if isinstance(given, Mapping) else model(given))
    spread = float(wanted.max() - wanted.min())
    gap = float((found - wanted).abs().max())
    same = float((found.argmax(-1) == wanted.argmax(-1)).float().mean())
    parameters = sum(p.numel() for p in model.parameters())
    seconds = time.monotonic() - began
    return {"about": about, "parameters": parameters, "gap": gap, "spread": spread, "same": same, "seconds": seconds}


def table(found: list[dict[str, Any]]) -> str:
    """As in docs/models.md."""
    day = datetime.date.today()
    lines = ["| model | parameters | largest difference | spread | of the spread | same largest score | date |"]
    lines.append("|---|---|---|---|---|---|---|")
    for r in found:
        of = 100 * r["gap"] / r["spread"]
        lines.append(
            f"| {r['about']} | {r['parameters'] / 1e6:.1f} M | {r['gap']:.2g} | {r['spread']:.3g} | {of:.2g} % "
            f"| {100 * r['same']:.4g} % | {day} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Each named model, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], metavar="NAME")
    parser.add_argument("--write", action="store_true", help="put the table into docs/models.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for name in options.names or MODELS:
        found.append(judge(name))
        print({"name": name, **found[-1]}, flush=True)
    print(table(found))
    if options.write:
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(before + BEGIN + table(found) + END + rest.split(END)[1])
    raise SystemExit(any(r["gap"] > MOST * r["spread"] for r in found))


if __name__ == "__main__":
    main()
