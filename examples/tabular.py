"""Private predictions from a table: ``tabular.py [--model trees] [--simulate]``.

A clinic has rows of numbers and categories, a company a model that says how likely a readmission is. The rows here
are made up, by a rule with noise. ``logistic`` embeds the categories and is a linear layer with a sigmoid; ``trees``
are gradient-boosted. Of both the owner of the rows learns the result alone, and the owner of the model nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor, nn

import privet
from privet.protocols import PROTOCOLS

NUMBERS, CATEGORIES = 6, (8, 5)
"""Columns of numbers, and how many values each column of categories has."""


def table(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Numbers ``[rows, 6]``, ward and age group ``[rows]`` each, and what is to be predicted, 0 or 1."""
    random = torch.Generator().manual_seed(seed)  # data, not a secret
    numbers = torch.randn(rows, NUMBERS, generator=random)
    ward, age = (torch.randint(0, n, (rows,), generator=random) for n in CATEGORIES)
    score = numbers[:, 0] - numbers[:, 1] * (numbers[:, 2] > 0) + 0.5 * (ward % 3) - 0.7 * (age == 2)
    score = score - 0.4 + 0.3 * torch.randn(rows, generator=random)
    return numbers, ward, age, (score > 0).float()


class Logistic(nn.Module):
    """Categories embedded, then logistic regression."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 3) for n in CATEGORIES)
        self.linear = nn.Linear(NUMBERS + 3 * len(CATEGORIES), 1)

    def forward(self, numbers: Tensor, ward: Tensor, age: Tensor) -> Tensor:
        """Probabilities ``[rows]``."""
        embedded = [look_up(ids) for look_up, ids in zip(self.tables, (ward, age), strict=True)]
        return torch.sigmoid(self.linear(torch.cat([numbers, *embedded], 1))).squeeze(1)


class Trees(nn.Module):
    """Gradient-boosted trees in which all nodes of a level ask the same question, as CatBoost's do.

    A level is one comparison, whose bit chooses a half of the leaves. Which column it reads is the owner's secret,
    too: it is a row of a matrix.
    """

    def __init__(self, trees: int = 24, depth: int = 3) -> None:
        super().__init__()
        columns = NUMBERS + len(CATEGORIES)
        self.rates = nn.ModuleList(nn.Embedding(n, 1) for n in CATEGORIES)
        self.reads = nn.Parameter(torch.zeros(trees * depth, columns), requires_grad=False)
        self.above = nn.Parameter(torch.zeros(trees * depth), requires_grad=False)
        self.leaves = nn.Parameter(torch.zeros(trees, 2**depth), requires_grad=False)
        self.first = nn.Parameter(torch.zeros(()), requires_grad=False)
        self.depth = depth

    def columns(self, numbers: Tensor, ward: Tensor, age: Tensor) -> Tensor:
        """Numbers, and instead of each category how often it goes with a 1."""
        return torch.cat([numbers, *(rate(ids) for rate, ids in zip(self.rates, (ward, age), strict=True))], 1)

    def forward(self, numbers: Tensor, ward: Tensor, age: Tensor) -> Tensor:
        """Probabilities ``[rows]``."""
        columns = self.columns(numbers, ward, age)
        bits = (nn.functional.linear(columns, self.reads) > self.above).reshape(len(numbers), -1, self.depth)
        values = self.leaves.expand(len(numbers), -1, -1)
        for level in range(self.depth):
            low, high = values.chunk(2, 2)
            values = torch.where(bits[:, :, level : level + 1], high, low)
        return torch.sigmoid(values.squeeze(2).sum(1) + self.first)


def fit_logistic(model: Logistic, rows: Sequence[Tensor], target: Tensor, steps: int = 150) -> None:
    """By Adam on all rows."""
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy(model(*rows), target).backward()
        optimizer.step()


@torch.no_grad()
def fit_trees(model: Trees, rows: Sequence[Tensor], target: Tensor, rate: float = 0.5) -> None:
    """Each tree level by level takes the question that explains most of what the trees before it left."""
    for i, table_of in enumerate(model.rates):
        for value in range(CATEGORIES[i]):
            table_of.weight[value] = target[rows[1 + i] == value].mean()
    columns = model.columns(*rows)
    steps = torch.linspace(0.1, 0.9, 9)
    questions = [(c, float(t)) for c in range(columns.shape[1]) for t in columns[:, c].quantile(steps).unique()]

    def total(leaf: Tensor, of: Tensor) -> Tensor:
        return torch.zeros(2**model.depth).index_add(0, leaf, of)

    score = torch.zeros_like(target) + torch.logit(target.mean())
    model.first.copy_(score[0])
    for tree in range(len(model.leaves)):
        p = torch.sigmoid(score)
        gradient, weight = target - p, p * (1 - p)
        leaf = torch.zeros_like(target, dtype=torch.int64)
        for level in range(model.depth):

            def gain(question: tuple[int, float], leaf: Tensor = leaf, g: Tensor = gradient) -> float:
                split = 2 * leaf + (columns[:, question[0]] > question[1])
                return float((total(split, g) ** 2 / (total(split, torch.ones_like(g)) + 1)).sum())

            column, limit = max(questions, key=gain)
            model.reads[tree * model.depth + level, column] = 1.0
            model.above[tree * model.depth + level] = limit
            leaf = 2 * leaf + (columns[:, column] > limit)
        model.leaves[tree] = rate * total(leaf, gradient) / (total(leaf, weight) + 1)
        score += model.leaves[tree][leaf]


def trained(name: str, trees: int = 24, depth: int = 3) -> nn.Module:
    """A model of the company's own rows."""
    torch.manual_seed(0)
    *rows, target = table(2000, 1)
    if name == "logistic":
        model: nn.Module = Logistic()
        fit_logistic(model, rows, target)
    else:
        model = Trees(trees, depth)
        fit_trees(model, rows, target)
    return model.eval()


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, compile, predict; the part of the rows that is classified as by PyTorch."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=["logistic", "trees"], default="logistic")
    parser.add_argument("--trees", type=int, default=24)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--protocol", choices=sorted(PROTOCOLS), default="rep3")
    parser.add_argument("--security", help="semi-honest or malicious; by default the most that the protocol can")
    parser.add_argument("--simulate", action="store_true", help="run the integer plan in the clear")
    options = parser.parse_args(arguments)
    model = trained(options.model, options.trees, options.depth)
    *rows, target = table(options.rows, 2)
    *calibration, _ = table(256, 3)
    private = privet.compile(model, rows, options.protocol, security=options.security, calibration=calibration)
    print(private.estimate().total)
    if options.simulate:
        found = private.simulate(*rows)
    else:
        with privet.local(private) as session:
            found = session.run(*rows)
            print(session.report)
    with torch.no_grad():
        plain = model(*rows)
    agreement = float(((found > 0.5) == (plain > 0.5)).float().mean())
    accuracy = float(((found > 0.5) == (target > 0.5)).float().mean())
    print(f"{options.model}: {options.rows} rows, agreement {agreement:.2%}, accuracy {accuracy:.2%}", end=", ")
    print(f"largest difference {float((found - plain).abs().max()):.2g}")
    return agreement


if __name__ == "__main__":
    main()
