"""What a run will cost, what it did cost, and how far its result is from PyTorch."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ._processes import render


def table(head: list[str], rows: list[list[str]]) -> str:
    """Text columns, the first to the left and the others to the right."""
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]

    def line(cells: list[str]) -> str:
        rest = [c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join([cells[0].ljust(widths[0]), *rest]).rstrip()

    return "\n".join([line(head), "  ".join("-" * w for w in widths), *(line(r) for r in rows)])


def size(count: float) -> str:
    """Bytes with a decimal unit: ``12.3 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError("the last unit always returns")


@dataclass(frozen=True)
class Estimate:
    """Predicted cost of one run: bytes, rounds, key bytes, memory and seconds, layer by layer.

    ``data`` is the planner's JSON: ``layers`` and ``nodes`` with their ``cost`` and ``seconds``, ``total``, of this
    ``whole_run`` for what belongs to no layer (verification), and ``session`` for what sharing the weights costs once.
    A cost has ``wire_bytes`` (sent by one party to the others),
    ``client_bytes``, ``rounds``, ``key_bytes``, ``aes`` calls, ``comparisons`` and ``macs``.
    """

    data: dict[str, Any]

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Cost by layer, in the order of the model."""
        return list(self.data["layers"])

    @property
    def total(self) -> dict[str, Any]:
        """Cost of the whole run, with ``seconds`` and ``memory_bytes``."""
        return {**self.data["total"], "seconds": self.data["seconds"], "memory_bytes": self.data["memory_bytes"]}

    @property
    def alternatives(self) -> list[dict[str, Any]]:
        """The plan as it is, and with the forms of comparisons that each named network asks for.

        Each has ``compiled_for``, ``comparisons``, ``key_bytes``, ``rounds``, ``lan_s`` and ``wan_s``. Empty where the
        protocol knows one form only.
        """
        return list(self.data.get("alternatives", []))

    @property
    def preparations(self) -> list[dict[str, Any]]:
        """Every way in which the parties may prepare a run among themselves, where there are several.

        Each has ``set`` (what the deployment sets for it), ``wire_bytes`` of a party, ``lan_s`` and ``wan_s``.
        """
        return list(self.data.get("preparations", []))

    def __str__(self) -> str:
        operations: dict[str, list[str]] = {}
        for node in self.data.get("nodes", []):
            names = operations.setdefault(node["layer"], [])
            if node["op"] not in names:
                names.append(node["op"])
        rows = [
            cost_row(row["layer"] or "-", ", ".join(operations.get(row["layer"], [])), row["cost"], row["seconds"])
            for row in self.layers
        ]
        beside = self.data.get("whole_run", {})
        if any(beside.values()):
            seconds = self.data["seconds"] - sum(row["seconds"] for row in self.layers)
            rows.append(cost_row("verification", "", beside, seconds))
        rows.append(cost_row("total", "", self.total, self.total["seconds"]))
        text = table(["layer", "operations", "sent", "rounds", "keys", "seconds"], rows)
        text += f"\nmemory {size(self.total['memory_bytes'])} a party"
        if rates := self.data.get("rates_from"):
            text += f"\ntimes go by {rates}"
        return text + alternatives_table(self.alternatives) + preparations_table(self.preparations)


def alternatives_table(alternatives: list[dict[str, Any]]) -> str:
    """What other networks would choose; nothing where there is nothing to choose."""
    if not alternatives:
        return ""
    rows = [
        [
            a["compiled_for"],
            size(a["key_bytes"]),
            str(a["rounds"]),
            f"{a['lan_s']:.4f}",
            f"{a['wan_s']:.4f}",
            a["comparisons"],
        ]
        for a in alternatives
    ]
    return "\n\n" + table(["compiled for", "keys", "rounds", "s on lan", "s on wan", "comparisons"], rows)


def preparations_table(preparations: list[dict[str, Any]]) -> str:
    """Other ways of preparing a run; nothing where there is one."""
    if not preparations:
        return ""
    rows = [[p["set"], size(p["wire_bytes"]), f"{p['lan_s']:.4f}", f"{p['wan_s']:.4f}"] for p in preparations]
    return "\n\n" + table(["a run prepared with", "sent", "s on lan", "s on wan"], rows)


def cost_row(layer: str, operations: str, cost: dict[str, Any], seconds: float) -> list[str]:
    """One line of an estimate's table."""
    return [layer, operations, size(cost["wire_bytes"]), str(cost["rounds"]), size(cost["key_bytes"]), f"{seconds:.4f}"]


@dataclass(frozen=True)
class LayerDifference:
    """How far one layer's value in the integer plan is from the model's."""

    layer: str
    operation: str
    max_abs: float
    mean_abs: float
    scale: float
    """Largest magnitude of the model's own value."""


@dataclass(frozen=True)
class Comparison:
    """Layer-by-layer and output differences between the integer plan (in the clear) and PyTorch in float64."""

    layers: list[LayerDifference]
    outputs: list[LayerDifference]
    beyond: list[tuple[str, float]] = field(default_factory=list)
    """Layers with values beyond their calibrated range and its headroom: by which factor; first come first."""

    @property
    def max_abs(self) -> float:
        """Largest difference of any output."""
        return max((o.max_abs for o in self.outputs), default=0.0)

    def __str__(self) -> str:
        rows = [
            [d.layer or "-", d.operation, f"{d.max_abs:.3g}", f"{d.mean_abs:.3g}", f"{d.scale:.3g}"]
            for d in [*self.layers, *self.outputs]
        ]
        text = table(["layer", "operation", "largest difference", "mean", "largest value"], rows)
        far = "".join(f"\n'{layer}' is {factor:.3g} times beyond its range" for layer, factor in self.beyond)
        return text + far


@dataclass(frozen=True)
class RunReport:
    """What one or several runs did cost and what they told to whom.

    ``data`` is the JSON that ``privet report`` turns into a page: ``totals``, ``layers``, ``parties``, ``openings``.
    """

    data: dict[str, Any]

    @property
    def totals(self) -> dict[str, Any]:
        """``online_s``, ``offline_s``, ``bytes_sent``, ``rounds``, ``key_bytes`` of the party with the most."""
        return dict(self.data["totals"])

    @property
    def verification(self) -> dict[str, Any] | None:
        """What proving and checking cost: ``seconds``, ``bytes_sent``, ``rounds``; none where nothing is verified."""
        found = self.data.get("verification")
        return None if found is None else dict(found)

    def learned(self) -> dict[str, list[str]]:
        """What each process learned; nothing but sizes and timing where the list is empty."""
        return {p["place"]: list(p.get("learned", [])) for p in self.data["parties"]}

    def with_accuracy(self, **accuracy: float) -> RunReport:
        """The same report with a comparison to the plaintext model (``samples``, ``plaintext``, ``private``, ...)."""
        return RunReport({**copy.deepcopy(self.data), "accuracy": accuracy})

    def to_json(self) -> str:
        """As ``privet report`` reads it."""
        return json.dumps(self.data, indent=1)

    def save_html(self, path: str | Path) -> Path:
        """Write one HTML page with plots by layer, and the JSON beside it; gives the page's path."""
        page = Path(path)
        data = page.with_suffix(".json")
        data.write_text(self.to_json())
        render(data, page)
        return page

    def __str__(self) -> str:
        t = self.totals
        lines = [
            f"{self.data['plan']}, batch {self.data['batch']}, {self.data['protocol']} ({self.data['security']}) "
            f"over {self.data['transport']}",
            f"online {t['online_s']:.3f} s, offline {t['offline_s']:.3f} s, sent {size(t['bytes_sent'])} "
            f"in {t['rounds']} rounds" + (f", keys {size(t['key_bytes'])}" if t["key_bytes"] else ""),
        ]
        if self.verification is not None:
            v = self.verification
            lines.append(f"of these verification {v['seconds']:.3f} s, {size(v['bytes_sent'])} in {v['rounds']} rounds")
        for place, what in self.learned().items():
            lines.append(f"{place} learned: {'; '.join(what) or 'sizes and timing only'}")
        return "\n".join(lines)


def merge(reports: list[RunReport]) -> RunReport:
    """One report for several runs of the same plan: costs add up, rows too, memory is the largest."""
    if not reports:
        raise ValueError("no reports to merge")
    merged = copy.deepcopy(reports[0].data)
    for report in reports[1:]:
        data = report.data
        if data["plan_hash"] != merged["plan_hash"]:
            raise ValueError("the reports are of different plans")
        merged["batch"] += data["batch"]
        for key in merged["totals"]:
            merged["totals"][key] += data["totals"][key]
        for key in merged.get("verification", {}):
            merged["verification"][key] += data["verification"][key]
        for mine, other in zip(merged["layers"], data["layers"], strict=True):
            for key in ("seconds", "bytes_sent", "rounds", "key_bytes"):
                mine[key] += other[key]
        for mine, other in zip(merged["parties"], data["parties"], strict=True):
            mine["bytes_sent"] = mine.get("bytes_sent", 0) + other.get("bytes_sent", 0)
            peaks = [p["peak_rss_bytes"] for p in (mine, other) if p.get("peak_rss_bytes") is not None]
            if peaks:
                mine["peak_rss_bytes"] = max(peaks)
        for key in ("masked", "masked_bits"):
            merged["openings"][key] += data["openings"][key]
        merged["openings"]["revealed"] += data["openings"]["revealed"]
    return RunReport(merged)
