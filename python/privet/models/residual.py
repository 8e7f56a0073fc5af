"""ResNet-20 for CIFAR-10."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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
