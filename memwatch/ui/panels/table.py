"""A table in fixed columns: the widths stay while the figures change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from memwatch.ui.line import Align, Line, Span, cut_line, fit, wrapped_line


class TableColumn(Struct, frozen=True):
    """A heading, a width in cells, and the side that its values stand on."""

    heading: str
    width: int
    align: Align = "right"
    needs: int = 0
    """Shown only where the table is at least this wide."""


class Cell(Struct, frozen=True):
    """A value and the name of its style."""

    text: str
    style: str = ""


LABEL_CELLS = 9
Ranked = tuple[int, Line]
"""A line and its rank: 0 stays longest where there is little room."""


def labelled(label: str, *spans: Span) -> Line:
    """Return a line that begins with a name in a column of its own."""
    return [(f"{label:<{LABEL_CELLS}} ", "dim"), *spans]


def ranked(rank: int, line: Line, width: int, indent: int = LABEL_CELLS + 1) -> Iterator[Ranked]:
    """Return a line in as many lines as it takes, all of one rank."""
    for row in wrapped_line(line, width, indent):
        yield rank, row


def fitted(lines: Sequence[Ranked], room: int) -> list[Line]:
    """Leave out what matters least until the rest fits; of one rank the later lines go first."""
    order = sorted(range(len(lines)), key=lambda index: (lines[index][0], index))
    kept = set(order[: max(room, 0)])
    return [line for index, (_, line) in enumerate(lines) if index in kept]


def table(columns: Sequence[TableColumn], rows: Sequence[Sequence[Cell]], width: int) -> list[Line]:
    """Return the heading and the rows; the first column that has width 0 takes what is left."""
    shown = [index for index, column in enumerate(columns) if column.needs <= width]
    fixed = sum(columns[index].width for index in shown) + len(shown) - 1
    elastic = max(width - fixed, 4)
    widths = {index: columns[index].width or elastic for index in shown}
    heads = [Cell(column.heading, "dim") for column in columns]
    lines = [_row(columns, shown, widths, cells) for cells in (heads, *rows)]
    return [cut_line(line, width) for line in lines]


def _row(
    columns: Sequence[TableColumn],
    shown: list[int],
    widths: dict[int, int],
    cells: Sequence[Cell],
) -> Line:
    line: Line = []
    for index in shown:
        if line:
            line.append((" ", ""))
        cell = cells[index]
        line.append((fit(cell.text, widths[index], columns[index].align), cell.style))
    return line
