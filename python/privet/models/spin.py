"""The networks that Spin (Jiang et al., arXiv:2402.02320) trains and runs: Simple, LeNet, AlexNet, VGG16m.

Spin prints their layers in its tables 6 to 9, which were not at hand when this was written; its code is not public.
The definitions here are those of Piranha (Watson, Wagh, Popa, USENIX Security 2022; ``files/models`` there), which
has networks of these names on the same data sets. Where Spin's tables say otherwise, they are right and this file has
to follow. As in ``falcon``, the ReLU behind the last layer of that code is left out.
"""

from __future__ import annotations

from torch import nn

from .falcon import LeNet, linear_layers, network_a, vgg16_features


def spin_simple() -> nn.Sequential:
    """Spin's "Simple", taken to be Piranha's smallest network, which is :func:`network_a`: 118,282 parameters."""
    return network_a()


def spin_lenet() -> LeNet:
    """Spin's LeNet, taken to be Piranha's, which is :class:`LeNet`: 431,080 parameters."""
    return LeNet()


def spin_alexnet() -> nn.Sequential:
    """Spin's AlexNet, taken to be Piranha's: CIFAR-10, ``[n, 3, 32, 32]`` to 10 scores, 3,881,354 parameters.

    Beside :func:`alexnet_cifar`: 32x32 pixels, average pooling, no BatchNorm. conv 96@11x11 stride 4 pad 9 -> avgpool 3
    stride 2 -> ReLU -> conv 256@5x5 pad 1 -> avgpool 2 stride 1 -> ReLU -> conv 384@3x3 pad 1 -> ReLU ->
    conv 384@3x3 pad 1 -> ReLU -> conv 256@3x3 pad 1 -> ReLU -> 256-256 -> ReLU -> 256-256 -> ReLU -> 256-10.
    """
    return nn.Sequential(
        nn.Conv2d(3, 96, 11, stride=4, padding=9),
        nn.AvgPool2d(3, stride=2),
        nn.ReLU(),
        nn.Conv2d(96, 256, 5, padding=1),
        nn.AvgPool2d(2, stride=1),
        nn.ReLU(),
        nn.Conv2d(256, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        *linear_layers(256, 256, 256, 10),
    )


def spin_vgg16m() -> nn.Sequential:
    """Spin's VGG16m ("modified"), taken to be Piranha's VGG16: CIFAR-10, ``[n, 3, 32, 32]`` to 10 scores.

    14,914,378 parameters. Beside :func:`vgg16_cifar`: average pooling, and a head of 512-256 -> ReLU -> 256-256 ->
    ReLU -> 256-10.
    """
    return nn.Sequential(
        *vgg16_features(nn.AvgPool2d),
        nn.Flatten(),
        *linear_layers(512, 256, 256, 10),
    )
