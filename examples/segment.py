"""Private segmentation by a small U-Net: ``segment.py [--size 32] [--simulate]``.

The owner of the images gets a mask of each, and nobody else sees either. The images are made up: bright discs on noise.
The U-Net is trained on such for a few steps, in the clear, by its owner.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor, nn

import privet
from privet.protocols import PROTOCOLS


def images(count: int, size: int, seed: int) -> tuple[Tensor, Tensor]:
    """Images ``[count, 1, size, size]`` and masks of 0 and 1 of the same shape."""
    random = torch.Generator().manual_seed(seed)  # data, not a secret
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    centre = torch.rand(count, 2, 1, 1, generator=random) * size
    radius = (0.15 + 0.2 * torch.rand(count, 1, 1, generator=random)) * size
    masks = ((y - centre[:, 0]) ** 2 + (x - centre[:, 1]) ** 2 < radius**2).float()[:, None]
    return masks + 0.7 * torch.randn(masks.shape, generator=random), masks


def twice(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions, each with BatchNorm and ReLU."""
    layers: list[nn.Module] = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Ronneberger et al., 2015, with padding, BatchNorm and few channels."""

    def __init__(self, channels: int = 8, levels: int = 2) -> None:
        super().__init__()
        widths = [channels * 2**i for i in range(levels + 1)]
        self.down = nn.ModuleList(twice(i, o) for i, o in zip([1, *widths], widths, strict=False))
        self.pool = nn.MaxPool2d(2)
        self.wider = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.up = nn.ModuleList(twice(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """A score for each pixel, above 0 where the disc is."""
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            kept.append(x)
        x = kept.pop()
        for wider, block in zip(self.wider, self.up, strict=True):
            x = block(torch.cat([kept.pop(), wider(x)], 1))
        return self.head(x)


def trained(size: int, channels: int, levels: int, steps: int) -> UNet:
    """A U-Net after a few steps of Adam."""
    torch.manual_seed(0)
    model = UNet(channels, levels)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(steps):
        x, y = images(16, size, 1000 + step)
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(x), y).backward()
        optimizer.step()
    return model.eval()


def overlap(found: Tensor, wanted: Tensor) -> float:
    """Intersection over union."""
    return float((found & wanted).sum()) / max(1.0, float((found | wanted).sum()))


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, compile, segment; the part of the pixels that PyTorch puts on the same side."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=32, help="pixels of a side")
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60, help="of training")
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="fss")
    parser.add_argument("--security", help="semi-honest or malicious; by default the most that the protocol can")
    parser.add_argument("--simulate", action="store_true", help="run the integer plan in the clear")
    options = parser.parse_args(arguments)
    model = trained(options.size, options.channels, options.levels, options.steps)
    x, masks = images(options.images, options.size, 2)
    calibration = images(32, options.size, 3)[0]
    private = privet.compile(model, x, options.protocol, security=options.security, calibration=calibration)
    print(private.estimate().total)
    if options.simulate:
        found = private.simulate(x)
    else:
        with privet.local(private) as session:
            found = session.run(x)
            print(session.report)
    with torch.no_grad():
        plain = model(x)
    agreement = float(((found > 0) == (plain > 0)).float().mean())
    print(f"{options.images} images, agreement of pixels {agreement:.3%}", end=", ")
    for name, scores in (("plaintext", plain), ("private", found)):
        print(f"{name} overlap {overlap(scores > 0, masks > 0.5):.1%}", end=", ")
    print(f"largest difference {float((found - plain).abs().max()):.2g}")
    return agreement


if __name__ == "__main__":
    main()
