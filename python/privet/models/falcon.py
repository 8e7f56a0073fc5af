"""The evaluation set of Falcon (Wagh, Tople, Benhamouda, Kushilevitz, Mittal, Rabin, PoPETs 2021).

Layers as in its public code (``snwagh/falcon-public``, ``selectNetwork`` in ``src/secondary.cpp``), with two
differences: most networks there have a ReLU after the last linear layer, which is no part of a classifier and is left
out; and BatchNorm there counts every element of a sample as a feature, where here a channel is one, as usual.
"""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn


def network_a() -> nn.Sequential:
    """Network A, the perceptron of SecureML: MNIST, ``[n, 1, 28, 28]`` to 10 scores, 118,282 parameters.

    784-128 -> ReLU -> 128-128 -> ReLU -> 128-10.
    """
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    )


mlp = network_a


def network_b() -> nn.Sequential:
    """Network B, of Chameleon ("Sarda" in the code): MNIST, ``[n, 1, 28, 28]`` to 10 scores, 99,135 parameters.

    conv 5@2x2 stride 2 -> ReLU -> 980-100 -> ReLU -> 100-10.
    """
    return nn.Sequential(
        nn.Conv2d(1, 5, 2, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(980, 100), nn.ReLU(), nn.Linear(100, 10)
    )


def network_c() -> nn.Sequential:
    """Network C, of MiniONN: MNIST, ``[n, 1, 28, 28]`` to 10 scores, 33,542 parameters.

    conv 16@5x5 -> maxpool 2 -> ReLU -> conv 16@5x5 -> maxpool 2 -> ReLU -> 256-100 -> ReLU -> 100-10.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(16, 16, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 100),
        nn.ReLU(),
        nn.Linear(100, 10),
    )


class LeNet(nn.Module):
    """LeNet: MNIST, ``[n, 1, 28, 28]`` to 10 scores, 431,080 parameters.

    conv 20@5x5 -> maxpool 2 -> ReLU -> conv 50@5x5 -> maxpool 2 -> ReLU -> 800-500 -> ReLU -> 500-10.
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


def alexnet_cifar() -> nn.Sequential:
    """AlexNet for CIFAR-10: ``[n, 3, 33, 33]`` (a row and column more) to 10 scores, 3,882,058 parameters.

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
        *linear_layers(256, 256, 256, 10),
    )


def alexnet_tiny() -> nn.Sequential:
    """AlexNet for Tiny-ImageNet: ``[n, 3, 56, 56]`` (crops of 64x64) to 200 scores, 15,303,176 parameters.

    conv 64@7x7 pad 3 -> conv 64@5x5 pad 2 -> maxpool 2 -> ReLU -> BatchNorm -> conv 128@5x5 pad 2 -> maxpool 2 ->
    ReLU -> BatchNorm -> conv 256@3x3 pad 1 -> conv 256@3x3 pad 1 -> maxpool 2 -> ReLU -> 12544-1024 -> ReLU ->
    1024-1024 -> ReLU -> 1024-200. Nothing stands between the two first, and the two last, convolutions, as in the code.
    """
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, padding=3),
        nn.Conv2d(64, 64, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.BatchNorm2d(64),
        nn.Conv2d(64, 128, 5, padding=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.BatchNorm2d(128),
        nn.Conv2d(128, 256, 3, padding=1),
        nn.Conv2d(256, 256, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        *linear_layers(12544, 1024, 1024, 200),
    )


def vgg16_cifar() -> nn.Sequential:
    """VGG16 for CIFAR-10: ``[n, 3, 32, 32]`` to 1000 scores (the code keeps ImageNet's classes), 37,694,248 parameters.

    Thirteen 3x3 convolutions (pad 1) of 64, 64, P, 128, 128, P, 256, 256, 256, P, 512, 512, 512, P, 512, 512, 512, P
    channels, P = maxpool 2; every convolution followed by ReLU (after the pooling where one follows);
    then 512-4096 -> ReLU -> 4096-4096 -> ReLU -> 4096-1000.
    """
    return nn.Sequential(*vgg16_features(), nn.Flatten(), *linear_layers(512, 4096, 4096, 1000))


def vgg16_tiny() -> nn.Sequential:
    """VGG16 for Tiny-ImageNet: ``[n, 3, 64, 64]`` to 200 scores, 23,517,192 parameters.

    The convolutions of :func:`vgg16_cifar`, which leave 2x2 pixels of 512 channels; then 2048-2048 -> ReLU ->
    2048-2048 -> ReLU -> 2048-200.
    """
    return nn.Sequential(*vgg16_features(), nn.Flatten(), *linear_layers(2048, 2048, 2048, 200))


VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def vgg16_features() -> list[nn.Module]:
    """VGG16's convolutions with their ReLUs; a block ends with a max pooling of 2x2, before its last ReLU."""
    layers: list[nn.Module] = []
    previous = 3
    for block in VGG16:
        for i, channels in enumerate(block):
            layers.append(nn.Conv2d(previous, channels, 3, padding=1))
            if i == len(block) - 1:
                layers.append(nn.MaxPool2d(2))
            layers.append(nn.ReLU())
            previous = channels
    return layers


def linear_layers(*widths: int) -> list[nn.Module]:
    """Linear layers with ReLU between."""
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return layers[:-1]
