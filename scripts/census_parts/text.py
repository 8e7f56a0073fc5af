"""Models of transformers that take tokens, as published, with small configurations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

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
    "minilm-meanpool": ("Bert", "Model", {**SMALL, "num_hidden_layers": 2}),
    "mpnet-meanpool": ("MPNet", "Model", SMALL),
}  # fmt: skip
"""Configuration, class and sizes of models that take tokens."""

POOLED = ("minilm-meanpool", "mpnet-meanpool")
"""Sentence encoders: the mean of the tokens that the mask keeps, at length 1."""

WRITTEN = ("t5", "bart")
"""What has been written so far is an input, too."""


class Pooled(nn.Module):
    """The mean of an encoder's states over the tokens that are there, normalised."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Sentences ``[batch, length]`` to vectors ``[batch, width]``."""
        states = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        weights = mask[..., None].to(states.dtype)
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, dim=-1)


class FromEmbeddings(nn.Module):
    """A model of which the client has looked up the embeddings itself."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, embeddings: Tensor) -> Any:
        """Embeddings ``[batch, length, width]`` to the model's result."""
        return self.body(inputs_embeds=embeddings, use_cache=False) if self.cached else self.body(
            inputs_embeds=embeddings)  # fmt: skip

    @property
    def cached(self) -> bool:
        """Whether the model would return keys and values for a next call."""
        return bool(getattr(self.body.config, "use_cache", False))


def language(name: str, attention: str, masked: bool) -> tuple[nn.Module, Any]:
    """A model as called: ids, and a padding mask where asked for."""
    model = built(name, attention)
    if name in POOLED:
        model = Pooled(model)
    inputs = {"input_ids": torch.randint(3, 60, (1, LENGTH), generator=torch.Generator().manual_seed(3))}
    if name in WRITTEN:
        inputs["decoder_input_ids"] = inputs["input_ids"][:, : LENGTH // 2].flip(1)
    if name == "clip-text":
        inputs["input_ids"][0, -1] = 63
    if masked:
        inputs["attention_mask"] = torch.tensor([[1] * (LENGTH - 2) + [0] * 2])
    return model, inputs


def embedded(name: str, attention: str) -> tuple[nn.Module, Any]:
    """The same model from embeddings."""
    model = built(name, attention)
    width = model.get_input_embeddings().weight.shape[1]
    return FromEmbeddings(model), torch.randn(1, LENGTH, width, generator=torch.Generator().manual_seed(3)) * 0.5


BY_IDS_ALONE = ("clip-text", "t5", "bart", *POOLED)
"""They find a token by its id, have two kinds of ids, or are wrapped."""


def built(name: str, attention: str) -> nn.Module:
    """The model with random weights; where it has no other attention, with the one that it has."""
    import transformers

    family, kind, sizes = TEXT[name]
    config = getattr(transformers, f"{family}Config")(**sizes)
    config._attn_implementation = attention
    classes = (f"{family}{kind}", f"{family}For{kind}")
    build = next(getattr(transformers, c) for c in classes if hasattr(transformers, c))
    try:
        model: nn.Module = build(config)
    except ValueError:
        config._attn_implementation = "eager"
        model = build(config)
    return model
