"""The convolutional networks that Orca trains (Jawalkar, Gupta, Basu, Chandran, Gupta, Sharma, IEEE S&P 2024).

Layers as in its public code (``mpc-msri/EzPC``, ``GPU-MPC/experiments/orca/cnn.h``), where pooling follows the ReLU.
CNN2 is the network with two convolutions of Gupta, Agrawal, Gopalakrishnan and Narayanan (ICML 2015).
"""

from __future__ import annotations

from torch import nn


def cnn2() -> nn.Sequential:
    """CNN2: MNIST, ``[n, 1, 28, 28]`` to 10 scores, 37,610 parameters ("36k").

    conv 8@5x5 -> ReLU -> maxpool 2 -> conv 16@5x5 -> ReLU -> maxpool 2 -> 256-128 -> ReLU -> 128-10.
    """
    return nn.Sequential(
        nn.Conv2d(1, 8, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def cnn3() -> nn.Sequential:
    """CNN3: CIFAR-10, ``[n, 3, 32, 32]`` to 10 scores, 210,442 parameters.

    Three times conv 64@5x5 pad 1 -> ReLU -> maxpool 3 stride 2, which leaves one pixel; then 64-10.
    """
    layers: list[nn.Module] = []
    for before in (3, 64, 64):
        layers += [nn.Conv2d(before, 64, 5, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, 10))
