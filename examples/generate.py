"""Private generation between processes on this machine: ``generate.py --protocol rep3 --tokens 8 --temperature 0.8``.

Without ``--model`` (a folder of a causal model of transformers, with its tokenizer) a small GPT-2 with random weights
writes numbers. The prompt stays with its owner, the weights with theirs; the tokens come to the receiver.
"""

from __future__ import annotations

import argparse
import time

import torch

import privet
from privet.models.decoders import Gpt2, Layout

parser = argparse.ArgumentParser()
parser.add_argument("--model", help="a folder that transformers can load")
parser.add_argument("--prompt", default="3 14 15 9 2 6", help="text, or numbers of tokens without a model")
parser.add_argument("--tokens", type=int, default=8)
parser.add_argument("--temperature", type=float, default=0.0)
parser.add_argument("--top", type=int)
parser.add_argument("--window", type=int, default=32)
parser.add_argument("--protocol", default="rep3")
parser.add_argument("--security")


def main() -> None:
    """Write, and say what it took."""
    settings = parser.parse_args()
    if settings.model:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(settings.model, attn_implementation="eager").float()
        tokenizer = AutoTokenizer.from_pretrained(settings.model)
        prompt, show, stop = tokenizer.encode(settings.prompt), tokenizer.decode, tokenizer.eos_token_id
    else:
        model = Gpt2(Layout(64, positions=settings.window))
        prompt, show, stop = [int(word) for word in settings.prompt.split()], str, None
    family = {"protocol": settings.protocol, "security": settings.security}
    generator = privet.Generator(model.eval(), settings.window, top=settings.top, **family)
    print(f"one token: {generator.estimate(local=True).total}")
    with generator.local() as writer, torch.no_grad():
        began = time.perf_counter()
        text = writer.write(prompt, settings.tokens, temperature=settings.temperature, stop=stop)
        took = time.perf_counter() - began
    print(show(text))
    print(f"{len(text)} tokens in {took:.1f} s, prompt and keys included")


if __name__ == "__main__":
    main()
