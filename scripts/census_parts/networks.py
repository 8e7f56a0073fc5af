"""Networks of torchvision and timm, with random weights and images as small as they allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

TORCHVISION = {
    "resnet18": 64, "resnet50": 64, "wide_resnet50_2": 64, "resnext50_32x4d": 64, "mobilenet_v2": 64,
    "mobilenet_v3_small": 64, "mobilenet_v3_large": 64, "efficientnet_b0": 64, "efficientnet_v2_s": 64,
    "densenet121": 64, "shufflenet_v2_x1_0": 64, "regnet_y_400mf": 64, "regnet_x_400mf": 64, "mnasnet1_0": 64,
    "squeezenet1_1": 64, "convnext_tiny": 32, "alexnet": 224, "inception_v3": 128, "googlenet": 64, "vit_b_16": 224,
    "maxvit_t": 224, "swin_t": 64, "swin_v2_t": 64, "vgg11_bn": 64, "fcn_resnet50": 64,
    "deeplabv3_mobilenet_v3_large": 64, "lraspp_mobilenet_v3_large": 64, "retinanet_resnet50_fpn": 128,
}  # fmt: skip
"""Networks by their names in torchvision, and the size of their image."""

VIDEO = {"r3d_18": 32, "r2plus1d_18": 32}
"""Networks of four images."""

TIMM = {
    "resnet18": 64, "resnetv2_50": 64, "seresnet50": 64, "resnest14d": 64, "mobilenetv3_small_050": 64,
    "efficientnet_lite0": 64, "xception41": 64, "regnety_004": 64, "convnext_atto": 64, "vit_tiny_patch16_224": 224,
    "deit_tiny_patch16_224": 224, "cait_xxs24_224": 224, "coatnet_nano_rw_224": 224, "levit_128s": 224,
    "mobilevit_xxs": 256, "mixer_s32_224": 224, "gmlp_ti16_224": 224, "caformer_s18": 64, "ghostnet_050": 64,
    "repvgg_a0": 64, "repvit_m0_9": 64, "hrnet_w18_small": 64, "nf_resnet50": 64, "efficientformer_l1": 224,
    "fastvit_t8": 256, "convit_tiny": 224, "pvt_v2_b0": 224, "tiny_vit_5m_224": 224, "davit_tiny": 224,
    "mambaout_femto": 224, "ecaresnet26t": 64, "convnextv2_atto": 64, "swin_tiny_patch4_window7_224": 224,
    "eva02_tiny_patch14_224": 224, "mobilevitv2_050": 256, "resmlp_12_224": 224, "poolformer_s12": 64,
    "edgenext_xx_small": 256, "crossvit_tiny_240": 240, "efficientvit_b0": 64, "mobileone_s0": 64,
}  # fmt: skip
"""Networks by their names in timm, and the size of their image."""


def image(size: int) -> Tensor:
    """One image."""
    return torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(3))


def torchvision_model(name: str) -> tuple[nn.Module, Any]:
    """A network of torchvision."""
    import torchvision

    return torchvision.models.get_model(name, weights=None, **without_weights(name)), image(TORCHVISION[name])


def without_weights(name: str) -> dict[str, Any]:
    """What networks that are built on another one have to be told."""
    built_on_another = ("fcn", "deeplab", "lraspp", "retinanet")
    return {"weights_backbone": None} if name.startswith(built_on_another) else {}


def larger() -> tuple[nn.Module, Any]:
    """EfficientNet at the size that it was published with."""
    import torchvision

    return torchvision.models.get_model("efficientnet_b0", weights=None), image(224)


def pyramid() -> tuple[nn.Module, Any]:
    """The backbone of detectors: maps of several sizes."""
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    return resnet_fpn_backbone(backbone_name="resnet18", weights=None), image(64)


def single_shot() -> tuple[nn.Module, Any]:
    """The backbone and heads' maps of SSDlite."""
    import torchvision

    model = torchvision.models.get_model("ssdlite320_mobilenet_v3_large", weights=None, weights_backbone=None)
    return model.backbone, image(128)


def video(name: str) -> tuple[nn.Module, Any]:
    """A network of torchvision that takes four images."""
    import torchvision

    x = torch.randn(1, 3, 4, VIDEO[name], VIDEO[name], generator=torch.Generator().manual_seed(3))
    return torchvision.models.get_model(name, weights=None), x


OTHERS: dict[str, Callable[[], tuple[nn.Module, Any]]] = {
    "efficientnet_b0@224": larger, "resnet18_fpn_backbone": pyramid, "ssdlite_backbone": single_shot,
    **{name: lambda n=name: video(n) for name in VIDEO},
}  # fmt: skip
"""What torchvision has no name for, or takes something else than an image."""


def timm_model(name: str) -> tuple[nn.Module, Any]:
    """A network of timm."""
    import timm

    return timm.create_model(name, pretrained=False), image(TIMM[name])
