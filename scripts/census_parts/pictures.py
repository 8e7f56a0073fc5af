"""Models of transformers that take images or sound, and those of several kinds of inputs, with small configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .text import SMALL

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
    "mobilevit": ("MobileViT", "ForImageClassification", {"image_size": 32, "hidden_sizes": [16, 24, 32],
                  "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 64], "num_attention_heads": 2, "expand_ratio": 2.0}),
    "detr": ("Detr", "Model", {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 48,
             "decoder_ffn_dim": 48, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_queries": 5}),
}  # fmt: skip
"""Configuration, class and sizes of models that take images."""

IMAGE = (1, 3, 32, 32)

SOUND: dict[str, tuple[str, str, dict[str, Any], tuple[int, ...]]] = {
    "whisper-encoder": ("Whisper", "Model", {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
                        "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 48,
                        "decoder_ffn_dim": 48, "num_mel_bins": 8, "max_source_positions": 16, "vocab_size": 64,
                        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
                        "max_target_positions": 20}, (1, 8, 32)),
    "wav2vec2-ctc": ("Wav2Vec2", "ForCTC", {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 1,
                     "num_attention_heads": 2, "intermediate_size": 48, "conv_dim": [8, 8], "conv_stride": [5, 2],
                     "conv_kernel": [10, 3], "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
                     "num_feat_extract_layers": 2}, (1, 160)),
    "hubert": ("Hubert", "Model", {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
               "intermediate_size": 48, "conv_dim": [8, 8], "conv_stride": [5, 2], "conv_kernel": [10, 3],
               "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 2},
               (1, 160)),
    "ast-audio": ("AST", "ForAudioClassification", {"hidden_size": 32, "num_hidden_layers": 1,
                  "num_attention_heads": 2, "intermediate_size": 48, "max_length": 32, "num_mel_bins": 16,
                  "patch_size": 8, "frequency_stride": 8, "time_stride": 8}, (1, 32, 16)),
}  # fmt: skip
"""The same of models that take sound, and the shape of their input."""


class Part(nn.Module):
    """One part of a model by itself, such as its encoder."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        """Its last states."""
        states: Tensor = self.body(x).last_hidden_state
        return states


def picture(name: str, attention: str = "sdpa") -> tuple[nn.Module, Any]:
    """A model that takes images."""
    family, kind, sizes = PICTURES[name]
    given: Callable[[], Tensor] = lambda: torch.randn(IMAGE, generator=torch.Generator().manual_seed(3))  # noqa: E731
    if name == "detr":
        return detector(sizes, attention), torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(3))
    return chosen(family, kind, sizes, attention), given()


def detector(sizes: dict[str, Any], attention: str) -> nn.Module:
    """DETR with a small backbone."""
    import transformers

    backbone = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )
    config = transformers.DetrConfig(
        **sizes, use_timm_backbone=False, backbone_config=backbone, backbone=None, use_pretrained_backbone=False
    )
    return made(transformers.DetrModel, config, attention)


def sound(name: str, attention: str = "sdpa") -> tuple[nn.Module, Any]:
    """A model that takes sound."""
    family, kind, sizes, shape = SOUND[name]
    model = chosen(family, kind, sizes, attention)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    return (Part(model.encoder) if name == "whisper-encoder" else model), x  # type: ignore[arg-type]


def chosen(family: str, kind: str, sizes: dict[str, Any], attention: str) -> nn.Module:
    """A model of transformers by its names."""
    import transformers

    return made(getattr(transformers, f"{family}{kind}"), getattr(transformers, f"{family}Config")(**sizes), attention)


def made(build: Any, config: Any, attention: str) -> nn.Module:
    """The model with this attention, or with the one that it has."""
    config._attn_implementation = attention
    try:
        model: nn.Module = build(config)
    except ValueError:
        config._attn_implementation = "eager"
        model = build(config)
    return model


# --- Several kinds of inputs -------------------------------------------------------------------------


def clip(attention: str) -> tuple[nn.Module, Any]:
    """Both towers of CLIP: ids and pixels."""
    import transformers

    tower = {k: v for k, v in SMALL.items() if k != "vocab_size"}
    config = transformers.CLIPConfig(
        text_config={**SMALL, "eos_token_id": 63},
        vision_config={**tower, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    words = torch.randint(3, 60, (1, 8), generator=torch.Generator().manual_seed(3))
    words[0, -1] = 63
    return made(transformers.CLIPModel, config, attention), {"input_ids": words, "pixel_values": torch.randn(IMAGE)}


def whisper(attention: str) -> tuple[nn.Module, Any]:
    """Whisper from sound and what has been written so far."""
    _, _, sizes, shape = SOUND["whisper-encoder"]
    model = chosen("Whisper", "ForConditionalGeneration", sizes, attention)
    written = torch.randint(3, 60, (1, 4), generator=torch.Generator().manual_seed(3))
    return model, {"input_features": torch.randn(shape), "decoder_input_ids": written}


MIXED = {"clip": clip, "whisper": whisper}
"""Models of several kinds of inputs."""
