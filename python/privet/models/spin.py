"""The networks that Spin (Jiang et al., arXiv:2402.02320) trains and runs: Simple, LeNet, AlexNet, VGG16m.

The layers are those of the paper's tables 6 to 9. Its 2,552,874 parameters of AlexNet are those without biases of
convolutions, so AlexNet and VGG16m have none here. It prints 7,439,306 for VGG16m and 722,848 for Simple, but its
layers have 7,242,442 and 118,282.
"""

from __future__ import annotations

from torch import nn

from .falcon import linear_layers, network_a


def spin_simple() -> nn.Sequential:
    """Spin's "Simple", 784-128-128-10, which is :func:`network_a`: 118,282 parameters."""
    return network_a()


def spin_lenet() -> nn.Sequential:
    """Spin's LeNet: MNIST, ``[n, 1, 28, 28]`` to 10 scores, 431,080 parameters.

    Beside :class:`LeNet`: average pooling. conv 20@5x5 -> avgpool 2 -> ReLU -> conv 50@5x5 -> avgpool 2 -> ReLU ->
    800-500 -> ReLU -> 500-10.
    """
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.AvgPool2d(2),
        nn.ReLU(),
        nn.Conv2d(20, 50, 5),
        nn.AvgPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        *linear_layers(800, 500, 10),
    )


def spin_alexnet() -> nn.Sequential:
    """Spin's AlexNet: CIFAR-10, ``[n, 3, 32, 32]`` to 10 scores, 2,552,874 parameters.

    Beside :func:`alexnet_cifar`: 32x32 pixels, average pooling, no BatchNorm, one convolution of 384 channels. conv
    96@11x11 stride 4 pad 9 -> avgpool 3 stride 2 -> ReLU -> conv 256@5x5 pad 1 -> avgpool 2 stride 1 -> ReLU ->
    conv 384@3x3 pad 1 -> ReLU -> conv 256@3x3 pad 1 -> ReLU -> 256-256 -> ReLU -> 256-256 -> ReLU -> 256-10.
    """
    return nn.Sequential(
        nn.Conv2d(3, 96, 11, stride=4, padding=9, bias=False),
        nn.AvgPool2d(3, stride=2),
        nn.ReLU(),
        nn.Conv2d(96, 256, 5, padding=1, bias=False),
        nn.AvgPool2d(2, stride=1),
        nn.ReLU(),
        nn.Conv2d(256, 384, 3, padding=1, bias=False),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1, bias=False),
        nn.ReLU(),
        nn.Flatten(),
        *linear_layers(256, 256, 256, 10),
    )


VGG16M = ((64, 64), (128, 128), (256, 256), (512, 512), (512,))


def spin_vgg16m() -> nn.Sequential:
    """Spin's VGG16m ("modified"): CIFAR-10, ``[n, 3, 32, 32]`` to 10 scores, 7,242,442 parameters.

    Nine convolutions of 3x3 with ReLUs, in blocks 64-64, 128-128, 256-256, 512-512, 512. A block ends with an average
    pooling of 2x2, before its last ReLU. Then 512-256 -> ReLU -> 256-256 -> ReLU -> 256-10.
    """
    layers: list[nn.Module] = []
    previous = 3
    for block in VGG16M:
        for i, channels in enumerate(block):
            layers.append(nn.Conv2d(previous, channels, 3, padding=1, bias=False))
            if i == len(block) - 1:
                layers.append(nn.AvgPool2d(2))
            layers.append(nn.ReLU())
            previous = channels
    return nn.Sequential(*layers, nn.Flatten(), *linear_layers(512, 256, 256, 10))
