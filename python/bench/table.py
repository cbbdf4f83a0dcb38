"""Rows of the benchmark, and how they are printed."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A measured value, a value to compare it with from the same run, and the ratio that is required."""

    name: str
    value: float
    unit: str
    """``s`` for seconds, ``B`` for bytes."""
    other: str
    """Name of the compared implementation. Empty if the limit is an absolute value."""
    other_value: float
    """The compared value, or the largest allowed value if ``other`` is empty."""
    limit: float | None
    """The smallest allowed ratio of ``other_value`` to ``value``. ``None`` if there is no limit."""

    @property
    def ratio(self) -> float:
        return self.other_value / self.value

    @property
    def met(self) -> bool:
        return self.limit is None or self.ratio >= self.limit

    def cells(self) -> list[str]:
        other = f"{self.other} {amount(self.other_value, self.unit)}".strip()
        if not self.other:
            return [self.name, amount(self.value, self.unit), "", "", f"< {other}", _mark(self.met)]
        limit = "" if self.limit is None else f"≥ {self.limit:g} ×"
        value = amount(self.value, self.unit)
        return [self.name, value, other, f"{self.ratio:.2f} ×", limit, _mark(self.met)]


def _mark(met: bool) -> str:
    return "" if met else "MISSED"


def amount(value: float, unit: str) -> str:
    """A number with its unit: ``12.3 µs``, ``4.5 MB``."""
    if unit == "s":
        for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if value >= scale:
                return f"{value / scale:.3g} {name}"
        return f"{value / 1e-9:.3g} ns"
    for scale, name in ((1e6, "MB"), (1e3, "KB")):
        if value >= scale:
            return f"{value / scale:.3g} {name}"
    return f"{value:.0f} B"


def printed(rows: list[Row]) -> str:
    """The rows as a table in Markdown."""
    head = ["", "Recto", "compared with", "ratio", "limit", ""]
    cells = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths)) + " |" for line in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
