"""A long table with a cursor: figures above it, as many rows as there is room, one of them marked.

Pure: what keys do to the cursor are functions of it. It stays on its row when rows come and go.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from memwatch.ui.line import Line, cut_line
from memwatch.ui.panels.table import Cell, Ranked, TableColumn, fitted, table

SHORT_TIME = 60
"""Below this width the seconds of a time give way."""
_LEAST_ROWS = 5
_MARK = 2


class SheetRow(Struct, frozen=True):
    """One row and the name that it keeps."""

    id: str
    cells: tuple[Cell, ...]


class Sheet(Struct, frozen=True, kw_only=True):
    """What a long table shows."""

    above: tuple[Ranked, ...] = ()
    columns: tuple[TableColumn, ...] = ()
    rows: tuple[SheetRow, ...] = ()
    nothing: str = ""
    """Said where there are no rows."""


class Cursor(Struct, frozen=True, kw_only=True):
    """The row that is marked, and the first one in sight."""

    id: str = ""
    """Empty: the first row, whichever it is."""
    at: int = 0
    first: int = 0


def placed(cursor: Cursor, sheet: Sheet, height: int) -> Cursor:
    """Return the cursor on its row, wherever that is by now, and in sight.

    A row that is gone leaves it at its place.
    """
    last = max(len(sheet.rows) - 1, 0)
    at = next((i for i, row in enumerate(sheet.rows) if row.id == cursor.id), cursor.at)
    at = min(at, last) if cursor.id else 0
    room = rows_in(sheet, height)
    first = min(max(cursor.first, at - room + 1), at, max(len(sheet.rows) - room, 0))
    return replace(cursor, at=at, first=max(first, 0))


def moved(cursor: Cursor, sheet: Sheet, step: int) -> Cursor:
    """Return the cursor so many rows further down, at most at the last one."""
    if not sheet.rows:
        return cursor
    at = min(max(cursor.at + step, 0), len(sheet.rows) - 1)
    return replace(cursor, at=at, id=sheet.rows[at].id if at or cursor.id else "")


def rows_in(sheet: Sheet, height: int) -> int:
    """Return how many rows have room in so many lines, their heading left out."""
    return max(height - len(_above(sheet, height)) - 1, 1)


def sheet_lines(sheet: Sheet, cursor: Cursor, width: int, height: int) -> list[Line]:
    """Return figures, heading and the rows in sight; `cursor` was placed for this height."""
    above = _above(sheet, height)
    if not sheet.rows:
        lines = [*above, [(sheet.nothing, "dim")]]
        return [cut_line(line, width) for line in lines[:height]]
    shown = sheet.rows[cursor.first : cursor.first + rows_in(sheet, height)]
    head, *body = table(sheet.columns, [row.cells for row in shown], width - _MARK)
    marked: list[Line] = [[("  ", ""), *head]]
    for index, line in enumerate(body, cursor.first):
        here = index == cursor.at
        marked.append([("▸ " if here else "  ", "key"), *line])
    return [cut_line(line, width) for line in (*above, *marked)][:height]


def _above(sheet: Sheet, height: int) -> list[Line]:
    """Return the figures that leave the table some rows, what matters least going first."""
    wanted = min(len(sheet.rows), _LEAST_ROWS, max(height - 3, 1)) + 1
    return fitted(sheet.above, height - wanted)
