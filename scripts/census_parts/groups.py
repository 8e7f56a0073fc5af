"""All rows of the census by group and name, as far as the packages that they are from are installed."""

from __future__ import annotations

import importlib.util

from . import networks, pictures, text
from .cases import Build
from .functions import FUNCTIONS
from .losses import LOSSES
from .modules import MODULES

PACKAGES = ("transformers", "torchvision", "timm")
"""Packages without whose models the census goes on."""

LARGE = ("torchvision", "timm")
"""Groups of which each model has a process of its own, whose memory it gives back."""

Groups = dict[str, dict[str, Build]]


def missing() -> list[str]:
    """The packages that are not installed."""
    return [p for p in PACKAGES if importlib.util.find_spec(p) is None]


def groups() -> Groups:
    """Every group whose package is installed."""
    absent = missing()
    found: Groups = {"torch.nn": {**MODULES, **LOSSES}, "torch functions": FUNCTIONS}
    if "transformers" not in absent:
        found |= of_transformers()
    if "torchvision" not in absent:
        found["torchvision"] = {
            **{n: lambda n=n: networks.torchvision_model(n) for n in networks.TORCHVISION},  # type: ignore[misc]
            **networks.OTHERS,
        }
    if "timm" not in absent:
        found["timm"] = {n: lambda n=n: networks.timm_model(n) for n in networks.TIMM}  # type: ignore[misc]
    return found


def of_transformers() -> Groups:
    """Models that take tokens in each way of calling them, and those that take images, sound or both."""
    found: Groups = {}
    for group, attention, masked in (
        ("transformers, ids", "sdpa", False),
        ("transformers, ids and mask", "sdpa", True),
        ("transformers, ids and mask, eager", "eager", True),
    ):
        found[group] = {
            n: lambda n=n, a=attention, m=masked: text.language(n, a, m)  # type: ignore[misc]
            for n in text.TEXT
        }
    for suffix, attention in (("", "sdpa"), (", eager", "eager")):
        found[f"transformers, embeddings{suffix}"] = {
            n: lambda n=n, a=attention: text.embedded(n, a)  # type: ignore[misc]
            for n in text.TEXT
            if n not in text.BY_IDS_ALONE
        }
        found[f"transformers, images and sound{suffix}"] = {
            **{n: lambda n=n, a=attention: pictures.picture(n, a) for n in pictures.PICTURES},  # type: ignore[misc]
            **{n: lambda n=n, a=attention: pictures.sound(n, a) for n in pictures.SOUND},  # type: ignore[misc]
            **{n: lambda b=build, a=attention: b(a) for n, build in pictures.MIXED.items()},  # type: ignore[misc]
        }
    return found
