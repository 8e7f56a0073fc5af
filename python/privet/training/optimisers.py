"""PyTorch's optimisers as graph operations, with the formulas of ``docs/training.md``, "Optimisers".

Settings are read from a real ``torch.optim`` object; what changes from step to step (learning rates, corrections)
becomes public numbers, which :meth:`Optimiser.publics` computes for a step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from .._ops_pointwise import add_scalar, mul_scalar, unary
from ..errors import UnsupportedOptimiser
from ._lowering import TrainingLowering
from ._ops_norm import add, mul, sub

LOSS_SCALE = 16.0
"""What gradients are multiplied by throughout: small ones keep four more bits."""

SECOND_MOMENT_FRACTION = 48
"""Fraction bits of Adam's second moments."""

LEAST_EPS = 2.0**-24
"""Its square is one unit of a second moment."""

LONGEST = 100_000
"""Steps after which Adam's corrections are taken to be 1, for the limit of its rates."""


@dataclass(frozen=True)
class Group:
    """One of the optimiser's parameter groups: its number, its settings, and the names of its parameters."""

    index: int
    settings: Mapping[str, Any]
    names: tuple[str, ...]

    def called(self, what: str) -> str:
        """The name of a public number of this group: ``rate``, ``rate.1``, ..."""
        return what if self.index == 0 else f"{what}.{self.index}"

    def number(self, key: str) -> float:
        """A setting as a number."""
        return float(self.settings[key])


class Optimiser:
    """An optimiser's update of states, and its public numbers."""

    def __init__(self, torch_optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]) -> None:
        self.source = torch_optimizer
        self.names = {id(p): name for name, p in reversed(list(parameters.items()))}
        self.groups = [
            Group(i, g, tuple(self.names[id(p)] for p in g["params"] if id(p) in self.names))
            for i, g in enumerate(torch_optimizer.param_groups)
        ]
        for group in self.groups:
            self.check(group.settings)
        self.begun = max((int(s["step"]) for s in torch_optimizer.state.values() if "step" in s), default=0)
        """Steps that the torch optimiser has done already, where it counts them."""
        self.highest = [
            max(float(g.settings["lr"]), float(g.settings.get("initial_lr", 0.0)), 2.0**-20) for g in self.groups
        ]
        """The largest learning rate of each group that steps may have."""

    def check(self, settings: Mapping[str, Any]) -> None:
        """Refuse settings without a counterpart, by name."""
        for key in ("maximize", "amsgrad", "differentiable"):
            if settings.get(key):
                raise UnsupportedOptimiser(f"{type(self.source).__name__} with {key}=True; leave it at False")

    def update(self, lo: TrainingLowering, group: Group, name: str, gradient: int, scale: float) -> int:
        """The node of a parameter's next value; other states are entered into ``lo.updates``."""
        raise NotImplementedError

    def rates(self, group: Group, step: int, lr: float) -> dict[str, float]:
        """The group's public numbers in a step, counted from 1, at a learning rate."""
        raise NotImplementedError

    def publics(self, step: int, rates: Sequence[float] | None = None) -> dict[str, float]:
        """All public numbers of a step, counted from 1, at learning rates by group: by default the optimiser's now."""
        found: dict[str, float] = {}
        for group in self.groups:
            if group.names:
                lr = float(self.source.param_groups[group.index]["lr"]) if rates is None else rates[group.index]
                found.update(self.rates(group, self.begun + step, lr))
        return found

    def apply(self, lo: TrainingLowering, gradients: Mapping[str, int]) -> None:
        """Append the updates of all parameters that have a gradient."""
        lo.at("optimizer")
        for group in self.groups:
            limits = self.limits(group)
            lo.publics.update({key: lo.public(key, limit) for key, limit in limits.items()})
            for name in group.names:
                if name in gradients:
                    lo.updates[name] = self.update(lo, group, name, gradients[name], LOSS_SCALE)

    def limits(self, group: Group) -> dict[str, float]:
        """The largest that each public number of a group can be, for learning rates up to the highest."""
        steps = sorted({*range(1, 64), *(2**i for i in range(6, 17)), LONGEST})
        tables = [self.rates(group, t, self.highest[group.index]) for t in steps]
        return {key: max(max(abs(t[key]) for t in tables), 2.0**-20) for key in tables[0]}

    def remembered(self, name: str, key: str, scale: float = 1.0) -> Tensor:
        """What the torch optimiser remembers of a parameter, as the graph holds it; zero at first."""
        (parameter,) = (p for g in self.source.param_groups for p in g["params"] if self.names.get(id(p)) == name)
        kept = self.source.state.get(parameter, {}).get(key)
        zero = torch.zeros(parameter.shape, dtype=parameter.dtype)
        return zero if kept is None else kept.detach().cpu() * scale


class SGD(Optimiser):
    """``torch.optim.SGD``: momentum, dampening, Nesterov, weight decay."""

    def rates(self, group: Group, step: int, lr: float) -> dict[str, float]:
        """The rate, over the loss scale; and where there is dampening, whether this is the first step."""
        found = {group.called("rate"): lr / LOSS_SCALE}
        if group.settings["momentum"] and group.settings["dampening"]:
            begun = any("momentum_buffer" in s for s in self.source.state.values())
            first = step == 1 and not begun
            found[group.called("damp")] = 1.0 if first else 1.0 - group.number("dampening")
        return found

    def update(self, lo: TrainingLowering, group: Group, name: str, gradient: int, scale: float) -> int:
        """``w - rate d`` with d the momentum, or the gradient itself."""
        w, g = lo.states[name], gradient
        decay, momentum = group.number("weight_decay"), group.number("momentum")
        if decay:
            g = add(lo, g, mul_scalar(lo, w, scale * decay))
        d = g
        if momentum:
            key = f"optimizer.{name}.momentum_buffer"
            b = lo.state(key, self.remembered(name, "momentum_buffer", scale))
            damp = group.called("damp")
            b_next = add(lo, mul_scalar(lo, b, momentum), mul(lo, g, lo.publics[damp]) if damp in lo.publics else g)
            lo.updates[key] = b_next
            d = add(lo, g, mul_scalar(lo, b_next, momentum)) if group.settings["nesterov"] else b_next
        return sub(lo, w, mul(lo, d, lo.publics[group.called("rate")]))


class Adam(Optimiser):
    """``torch.optim.Adam``, and ``AdamW`` where weights decay by themselves."""

    def decoupled(self, group: Group) -> bool:
        """Whether weights decay apart from the gradient, as in AdamW."""
        return bool(group.settings.get("decoupled_weight_decay", isinstance(self.source, torch.optim.AdamW)))

    def rates(self, group: Group, step: int, lr: float) -> dict[str, float]:
        """The rate with both corrections, and AdamW's decay."""
        beta1, beta2 = (float(b) for b in group.settings["betas"])
        found = {group.called("rate"): lr * math.sqrt(1.0 - beta2**step) / (1.0 - beta1**step)}
        if group.settings["weight_decay"] and self.decoupled(group):
            found[group.called("decay")] = lr * group.number("weight_decay")
        return found

    def update(self, lo: TrainingLowering, group: Group, name: str, gradient: int, scale: float) -> int:
        """``w - rate m / sqrt(v + eps^2)``; both moments carry the loss scale, which cancels."""
        w, g = lo.states[name], gradient
        decay, decoupled = group.number("weight_decay"), self.decoupled(group)
        beta1, beta2 = (float(b) for b in group.settings["betas"])
        eps = max(scale * group.number("eps"), LEAST_EPS)
        if decay and not decoupled:
            g = add(lo, g, mul_scalar(lo, w, scale * decay))
        first, second = (f"optimizer.{name}.{key}" for key in ("exp_avg", "exp_avg_sq"))
        m = lo.state(first, self.remembered(name, "exp_avg", scale))
        v = lo.state(second, self.remembered(name, "exp_avg_sq", scale * scale), frac=SECOND_MOMENT_FRACTION)
        m_next = add(lo, m, mul_scalar(lo, sub(lo, g, m), 1.0 - beta1))
        v_next = add(lo, v, mul_scalar(lo, sub(lo, mul(lo, g, g), v), 1.0 - beta2))
        lo.updates[first], lo.updates[second] = m_next, v_next
        # Powers of two move the point only: the root sees 18 more bits of v, and gives back 9.
        root = mul_scalar(lo, add_scalar(lo, v_next, eps * eps), 2.0**18)
        inverse = unary(lo, {"kind": "smooth", "function": "rsqrt"}, root)
        change = mul(lo, mul(lo, mul_scalar(lo, m_next, 2.0**9), inverse), lo.publics[group.called("rate")])
        if decay and decoupled:
            return sub(lo, sub(lo, w, change), mul(lo, w, lo.publics[group.called("decay")]))
        return sub(lo, w, change)


KINDS: dict[type[torch.optim.Optimizer], type[Optimiser]] = {
    torch.optim.SGD: SGD,
    torch.optim.Adam: Adam,
    torch.optim.AdamW: Adam,
}
"""The optimisers that there are."""


def optimiser_of(torch_optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]) -> Optimiser:
    """The private counterpart of an optimiser over the named parameters.

    Raises :class:`UnsupportedOptimiser` for other kinds and settings, and where none of the parameters is in it.
    """
    made = KINDS.get(type(torch_optimizer))
    if made is None:
        known = ", ".join(k.__name__ for k in KINDS)
        raise UnsupportedOptimiser(f"no private {type(torch_optimizer).__name__}; this version has {known}")
    found = made(torch_optimizer, parameters)
    if not any(g.names for g in found.groups):
        raise UnsupportedOptimiser("the optimizer has no parameter of this model; make it with model.parameters()")
    return found
