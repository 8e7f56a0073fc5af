"""What a training did: losses step by step, evaluations, and both beside PyTorch's own."""

from __future__ import annotations

import html
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Evaluation:
    """How the model did on the evaluation's rows after a step."""

    step: int
    rows: int
    loss: float
    accuracy: float | None
    """The share of rows whose largest score is the label's; none where targets are no class indices."""


@dataclass
class LossCurve:
    """Losses of consecutive steps; an empty one where nobody may see them."""

    name: str
    first: int = 1
    losses: list[float] = field(default_factory=list)

    def smooth(self, window: int) -> list[float]:
        """The mean of up to ``window`` steps before and at each step."""
        found = []
        for i in range(len(self.losses)):
            part = self.losses[max(0, i + 1 - window) : i + 1]
            found.append(sum(part) / len(part))
        return found


@dataclass
class History:
    """One training: its steps, losses and evaluations, and those of plaintext training where it was asked for."""

    steps: int = 0
    seconds: float = 0.0
    curve: LossCurve = field(default_factory=lambda: LossCurve("private"))
    evaluations: list[Evaluation] = field(default_factory=list)
    plaintext: LossCurve | None = None
    plaintext_evaluations: list[Evaluation] = field(default_factory=list)
    stopped: bool = False
    """Whether ``stop`` ended it before its last step."""

    @property
    def losses(self) -> list[float]:
        """The loss of every step, before its update; empty where it is not revealed."""
        return self.curve.losses

    def differences(self) -> list[float]:
        """How far each step's loss is from plaintext training's."""
        if self.plaintext is None:
            return []
        return [abs(a - b) for a, b in zip(self.curve.losses, self.plaintext.losses, strict=True)]

    def to_json(self) -> str:
        """Everything, for files."""
        return json.dumps({"version": 1, **asdict(self)}, indent=1)

    def save_html(self, path: str | Path) -> Path:
        """Write one page with the loss curves, and the JSON beside it; gives the page's path."""
        page = Path(path)
        page.with_suffix(".json").write_text(self.to_json())
        page.write_text(plot(self))
        return page

    def __str__(self) -> str:
        lines = [f"{self.steps} steps in {self.seconds:.1f} s" + (", stopped early" if self.stopped else "")]
        for curve in (self.curve, self.plaintext):
            if curve is not None and curve.losses:
                lines.append(f"{curve.name} loss: {curve.losses[0]:.4f} at first, {curve.losses[-1]:.4f} at last")
        for name, found in (("private", self.evaluations), ("plaintext", self.plaintext_evaluations)):
            for e in found:
                score = "" if e.accuracy is None else f", accuracy {100 * e.accuracy:.2f}%"
                lines.append(f"{name} after step {e.step}: loss {e.loss:.4f}{score} on {e.rows} rows")
        return "\n".join(lines)


COLOURS = {"private": "#1f6f8b", "plaintext": "#d1495b"}
WIDTH, HEIGHT, MARGIN = 860, 380, 46


def plot(history: History) -> str:
    """A page with an SVG of the loss curves: each step faint, the mean of a twentieth of the steps strong."""
    curves = [c for c in (history.curve, history.plaintext) if c is not None and c.losses]
    if not curves:
        return page(f"<pre>{html.escape(str(history))}</pre>")
    longest = max(len(c.losses) for c in curves)
    highest = max(max(c.losses) for c in curves) or 1.0

    def points(values: list[float]) -> str:
        step = (WIDTH - 2 * MARGIN) / max(longest - 1, 1)
        rise = (HEIGHT - 2 * MARGIN) / highest
        return " ".join(f"{MARGIN + i * step:.1f},{HEIGHT - MARGIN - v * rise:.1f}" for i, v in enumerate(values))

    parts = [
        f'<line x1="{MARGIN}" y1="{HEIGHT - MARGIN}" x2="{WIDTH - MARGIN}" y2="{HEIGHT - MARGIN}" stroke="#999"/>',
        f'<line x1="{MARGIN}" y1="{MARGIN}" x2="{MARGIN}" y2="{HEIGHT - MARGIN}" stroke="#999"/>',
        f'<text x="{MARGIN}" y="{MARGIN - 12}">{highest:.3g}</text>',
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - MARGIN + 20}" text-anchor="end">step {longest}</text>',
    ]
    for i, curve in enumerate(curves):
        colour = COLOURS.get(curve.name, "#555")
        line = f'<polyline fill="none" stroke="{colour}"'
        parts.append(f'{line} stroke-opacity="0.25" points="{points(curve.losses)}"/>')
        parts.append(f'{line} stroke-width="2" points="{points(curve.smooth(max(1, longest // 20)))}"/>')
        parts.append(f'<text x="{MARGIN + 120 + 140 * i}" y="{MARGIN - 12}" fill="{colour}">{curve.name}</text>')
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">{"".join(parts)}</svg>'
    return page(f"{svg}<pre>{html.escape(str(history))}</pre>")


def page(body: str) -> str:
    """A self-contained page."""
    return f'<!doctype html><meta charset="utf-8"><title>Training</title><body style="max-width:60em">{body}</body>\n'
