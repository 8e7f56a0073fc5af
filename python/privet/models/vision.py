"""Networks of torchvision, with random weights."""

from __future__ import annotations

from torch import nn


def resnet18() -> nn.Module:
    """torchvision's ResNet-18 (He et al., 2016), 11.7M parameters, random weights; input ``[n, 3, 224, 224]``."""
    return _torchvision("resnet18")


def resnet50() -> nn.Module:
    """torchvision's ResNet-50 (bottleneck blocks, stride in the 3x3), 25.6M parameters; input ``[n, 3, 224, 224]``."""
    return _torchvision("resnet50")


def squeezenet() -> nn.Module:
    """torchvision's SqueezeNet 1.1 (Iandola et al., 2016), 1.24M parameters; input ``[n, 3, 224, 224]``.

    The dropout before the last convolution does nothing in evaluation mode.
    """
    return _torchvision("squeezenet1_1")


def vgg16() -> nn.Module:
    """torchvision's VGG-16 without BatchNorm, 138M parameters; input ``[n, 3, 224, 224]``."""
    return _torchvision("vgg16")


def _torchvision(name: str) -> nn.Module:
    try:
        from torchvision import models
    except ImportError as error:
        raise ImportError(f"'{name}' comes from torchvision; install it with: pip install torchvision") from error
    model: nn.Module = models.get_model(name, weights=None)
    return model
