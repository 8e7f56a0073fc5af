"""Plaintext definitions of the networks used in examples, tests and benchmarks.

Each docstring states the exact layers, since published timings for "LeNet" or "AlexNet" differ by an order of
magnitude with the variant meant.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LeNet(nn.Module):
    """LeNet of Falcon (Wagh et al., PoPETs 2021) and SecureML's successors: 431,080 parameters.

    1x28x28 -> conv 20@5x5 -> maxpool 2 -> ReLU -> conv 50@5x5 -> maxpool 2 -> ReLU -> 800-500 -> ReLU -> 500-10.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(800, 500)
        self.fc2 = nn.Linear(500, 10)

    def forward(self, x: Tensor) -> Tensor:
        """``[n, 1, 28, 28]`` to ``[n, 10]`` scores."""
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        scores: Tensor = self.fc2(x)
        return scores


def mlp() -> nn.Sequential:
    """The three-layer perceptron of SecureML and Falcon: 784-128-128-10 with ReLU; input ``[n, 1, 28, 28]``."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )


def alexnet_cifar() -> nn.Sequential:
    """AlexNet for CIFAR-10 as in Falcon; input ``[n, 3, 33, 33]`` (32x32 images with one row and column more).

    conv 96@11x11 stride 4 pad 9 -> maxpool 3 stride 2 -> ReLU -> BatchNorm -> conv 256@5x5 pad 1 ->
    maxpool 3 stride 2 -> ReLU -> BatchNorm -> conv 384@3x3 pad 1 -> ReLU -> conv 384@3x3 pad 1 -> ReLU ->
    conv 256@3x3 pad 1 -> ReLU -> 256-256 -> ReLU -> 256-256 -> ReLU -> 256-10.
    """
    return nn.Sequential(
        nn.Conv2d(3, 96, 11, stride=4, padding=9),
        nn.MaxPool2d(3, stride=2),
        nn.ReLU(),
        nn.BatchNorm2d(96),
        nn.Conv2d(96, 256, 5, padding=1),
        nn.MaxPool2d(3, stride=2),
        nn.ReLU(),
        nn.BatchNorm2d(256),
        nn.Conv2d(256, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def vgg16_cifar() -> nn.Sequential:
    """VGG16 for CIFAR-10 as in Falcon; input ``[n, 3, 32, 32]``.

    Thirteen 3x3 convolutions (pad 1) of 64, 64, P, 128, 128, P, 256, 256, 256, P, 512, 512, 512, P, 512, 512, 512, P
    channels, P = maxpool 2; every convolution followed by ReLU (after the pooling where one follows);
    then 512-4096 -> ReLU -> 4096-4096 -> ReLU -> 4096-1000 (Falcon's code keeps ImageNet's thousand classes).
    """
    layers: list[nn.Module] = []
    previous = 3
    for block in ([64, 64], [128, 128], [256, 256, 256], [512, 512, 512], [512, 512, 512]):
        for i, channels in enumerate(block):
            layers.append(nn.Conv2d(previous, channels, 3, padding=1))
            if i == len(block) - 1:
                layers.append(nn.MaxPool2d(2))
            layers.append(nn.ReLU())
            previous = channels
    head = [nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers, nn.Flatten(), *head)


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with BatchNorm and a shortcut without parameters (option A of He et al., 2016)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.grow = after - before

    def shortcut(self, x: Tensor) -> Tensor:
        """Every second pixel, and zero channels on both sides, where the block changes the shape."""
        if not self.grow:
            return x
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.grow // 2, self.grow - self.grow // 2))

    def forward(self, x: Tensor) -> Tensor:
        """relu(bn(conv(relu(bn(conv(x))))) + shortcut(x))."""
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.shortcut(x))


class ResNet20(nn.Module):
    """ResNet-20 for CIFAR-10 (He et al., 2016, section 4.2): 269,722 parameters; input ``[n, 3, 32, 32]``.

    conv 16@3x3 -> BatchNorm -> ReLU -> three stages of three :class:`BasicBlock` with 16, 32 and 64 channels (the
    second and third stage start with stride 2) -> mean over the 8x8 pixels -> 64-10.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, 1)
        self.layer2 = self._stage(16, 32, 2)
        self.layer3 = self._stage(32, 64, 2)
        self.linear = nn.Linear(64, 10)

    @staticmethod
    def _stage(before: int, after: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            BasicBlock(before, after, stride), BasicBlock(after, after, 1), BasicBlock(after, after, 1)
        )

    def forward(self, x: Tensor) -> Tensor:
        """``[n, 3, 32, 32]`` to ``[n, 10]`` scores."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        scores: Tensor = self.linear(torch.mean(x, (2, 3)))
        return scores


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
