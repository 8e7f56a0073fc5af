"""What a training will cost."""

from __future__ import annotations

from dataclasses import dataclass

from ..report import Estimate, size


@dataclass(frozen=True)
class TrainingEstimate:
    """Predicted cost of a step, an epoch of ``batches`` steps, and an evaluation of one batch."""

    step: Estimate
    evaluation: Estimate
    batches: int | None = None

    def __str__(self) -> str:
        total = self.step.total
        lines = [
            str(self.step),
            f"a step: {total['seconds']:.3f} s, {size(total['wire_bytes'])} sent by a party in {total['rounds']} "
            f"rounds, {size(total['key_bytes'])} of keys",
        ]
        if self.batches is not None:
            n = self.batches
            lines.append(
                f"an epoch of {n} steps: {n * total['seconds']:.0f} s, {size(n * total['wire_bytes'])} sent, "
                f"{size(n * total['key_bytes'])} of keys"
            )
        return "\n".join(lines)
