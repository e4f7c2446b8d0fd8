"""One table for all benchmarks: what was asked, what was reached, against what reference."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One figure; `reference` was measured in the same run, `asked` and `strive` are in words."""

    what: str
    value: float
    unit: str
    reference: float | None
    asked: str
    strive: str


def print_table(rows: Iterable[Row]) -> None:
    """Print the rows as aligned text."""
    head = ("what", "reached", "reference", "ratio", "asked", "strive for")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = zip(line, widths, strict=True)
        print("  ".join(cell.ljust(width) for cell, width in cells).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    reference = "" if row.reference is None else f"{row.reference:,.4g} {row.unit}"
    ratio = f"{row.value / row.reference:.2f}x" if row.reference else ""
    value = f"{row.value:,.0f}" if row.value >= 10_000 else f"{row.value:.4g}"
    return (row.what, f"{value} {row.unit}", reference, ratio, row.asked, row.strive)
