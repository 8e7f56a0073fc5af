"""The losses of torch.nn, as outputs of a model: of private targets, and of targets that the model holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .cases import Build, ids, layer, noise, unit, use

SCORES, OTHERS, THIRD = noise(3, 8), noise(3, 8, seed=5), noise(3, 8, seed=6)
SHARES = torch.softmax(OTHERS, -1)
CLASSES = torch.tensor([1, 7, 0])
SIGNS = torch.tensor([1.0, -1.0, 1.0])
SEVERAL = torch.tensor([[3, 0, -1, 1, 2, 4, 5, 6], [7, -1, 0, 1, 2, 3, 4, 5], [1, 2, 3, -1, 0, 4, 5, 6]])
TARGETS = torch.tensor([[1, 2, 2], [3, 1, 4]])


def held(make: Callable[[], nn.Module], *targets: Tensor, of: Callable[..., Any] | None = None) -> Build:
    """A loss whose targets are constants of the model."""
    inputs = (SCORES,) if of is None else (SCORES, OTHERS)
    return use(of or (lambda m, x: m(x, *targets)), make, *inputs)


LOSSES: dict[str, Build] = {
    "L1Loss": layer(nn.L1Loss, SCORES, OTHERS),
    "MSELoss": layer(nn.MSELoss, SCORES, OTHERS),
    "HuberLoss": layer(nn.HuberLoss, SCORES, OTHERS),
    "SmoothL1Loss": layer(nn.SmoothL1Loss, SCORES, OTHERS),
    "SoftMarginLoss": layer(nn.SoftMarginLoss, SCORES, OTHERS.sign()),
    "MarginRankingLoss": layer(nn.MarginRankingLoss, SCORES[:, 0], OTHERS[:, 0], SIGNS),
    "HingeEmbeddingLoss": layer(nn.HingeEmbeddingLoss, SCORES, OTHERS.sign()),
    "CosineEmbeddingLoss": layer(nn.CosineEmbeddingLoss, SCORES, OTHERS, SIGNS),
    "TripletMarginLoss": layer(nn.TripletMarginLoss, SCORES, OTHERS, THIRD),
    "TripletMarginWithDistanceLoss": layer(nn.TripletMarginWithDistanceLoss, SCORES, OTHERS, THIRD),
    "KLDivLoss": use(lambda m, x, y: m(x.log_softmax(-1), y), lambda: nn.KLDivLoss(reduction="batchmean"),
                     SCORES, SHARES),
    "BCELoss": layer(nn.BCELoss, unit(3, 8), SHARES),
    "BCEWithLogitsLoss": layer(nn.BCEWithLogitsLoss, SCORES, SHARES),
    "BCEWithLogitsLoss(pos_weight)": layer(lambda: nn.BCEWithLogitsLoss(pos_weight=unit(8)), SCORES, SHARES),
    "PoissonNLLLoss": layer(nn.PoissonNLLLoss, SCORES, OTHERS.abs()),
    "GaussianNLLLoss": layer(nn.GaussianNLLLoss, SCORES, OTHERS, unit(3, 8)),
    "CrossEntropyLoss(probs)": layer(nn.CrossEntropyLoss, SCORES, SHARES),
    "CrossEntropyLoss(int)": layer(nn.CrossEntropyLoss, SCORES, CLASSES),
    "NLLLoss(int)": use(lambda m, x, y: m(x.log_softmax(-1), y), nn.NLLLoss, SCORES, CLASSES),
    "MultiLabelSoftMarginLoss": layer(nn.MultiLabelSoftMarginLoss, SCORES, (OTHERS > 0).float()),
    "MultiMarginLoss(int)": layer(nn.MultiMarginLoss, SCORES, CLASSES),
    "MultiLabelMarginLoss(int)": layer(nn.MultiLabelMarginLoss, SCORES, SEVERAL),
    "CTCLoss(int)": use(lambda m, x, y: m(x.log_softmax(-1), y, torch.tensor([6, 6]), torch.tensor([3, 3])),
                        nn.CTCLoss, noise(6, 2, 5), TARGETS),
    "L1Loss(const)": held(nn.L1Loss, OTHERS),
    "MSELoss(const)": held(nn.MSELoss, OTHERS),
    "HingeEmbeddingLoss(const)": held(nn.HingeEmbeddingLoss, OTHERS.sign()),
    "CosineEmbeddingLoss(const)": held(nn.CosineEmbeddingLoss, of=lambda m, x, y: m(x, y, SIGNS)),
    "CrossEntropyLoss(const int)": held(nn.CrossEntropyLoss, CLASSES),
    "CrossEntropyLoss(const, weights, smoothing)": held(
        lambda: nn.CrossEntropyLoss(unit(8), label_smoothing=0.1), CLASSES),
    "CrossEntropyLoss(const, ignore_index)": held(lambda: nn.CrossEntropyLoss(ignore_index=0), CLASSES),
    "NLLLoss(const int)": use(lambda m, x: m(x.log_softmax(-1), CLASSES), nn.NLLLoss, SCORES),
    "MultiMarginLoss(const)": held(nn.MultiMarginLoss, CLASSES),
    "MultiLabelMarginLoss(const)": held(nn.MultiLabelMarginLoss, SEVERAL),
    "CTCLoss(const)": use(lambda m, x: m(x.log_softmax(-1), TARGETS, torch.tensor([6, 6]), torch.tensor([3, 3])),
                          nn.CTCLoss, noise(6, 2, 5)),
    "AdaptiveLogSoftmaxWithLoss(const)": use(
        lambda m, x: m(x, CLASSES).loss, lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8]), SCORES),
    "CrossEntropyLoss(int, unreduced)": layer(lambda: nn.CrossEntropyLoss(reduction="none"), SCORES, ids(8, 3)),
}  # fmt: skip
