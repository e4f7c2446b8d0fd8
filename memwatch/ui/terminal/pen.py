"""Pieces of one style -> the shortest output that puts them on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memwatch.ui.terminal.sgr import Style, change

Cell = tuple[str, Style]
"""A character ("" = right half of a wide one) and its style."""


_UNSURE = re.compile(r"[^\x20-\x7e\u2500-\u25ff]")
"""All but ASCII and what charts are drawn with."""


def is_narrow(text: str) -> bool:
    """Return whether each character takes one cell, on any terminal."""
    return not _UNSURE.search(text)


_MUCH = 400
"""Cells that are no longer a few figures."""


class Piece(NamedTuple):
    """Text in one style, side by side in one row."""

    row: int
    column: int
    text: str
    style: Style
    end: int
    """Column behind it; -1 where one cannot be sure of the cursor: at the edge, where it may wait
    behind the last cell, and behind text that not all terminals give the same width."""

    @property
    def is_blank(self) -> bool:
        """Nothing but background."""
        return not self.style.shows_on_blank and self.text.isspace()


class Pen(NamedTuple):
    """Where the terminal's cursor stands and in which style it writes; None = not known."""

    at: tuple[int, int] | None = None
    style: Style | None = None

    def written(self, pieces: Sequence[Piece]) -> tuple[str, Pen]:
        """Return the output for pieces in order of place, and the pen after it.

        They are written in their order, or style by style when that is shorter: a style costs
        more than a move when many small things change all over the screen. Where much is drawn,
        it appears in the order of reading.
        """
        in_order = self._output(pieces)
        if sum(len(piece.text) for piece in pieces) > _MUCH:
            return in_order
        by_style = self._output(sorted(pieces, key=_order_by_style(pieces, self.style).__getitem__))
        return min(in_order, by_style, key=lambda output: len(output[0]))

    def _output(self, pieces: Iterable[Piece]) -> tuple[str, Pen]:
        at, style = self
        out: list[str] = []
        for piece in pieces:
            out.append(_move(at, piece.row, piece.column))
            wanted = _as_written(piece, style)
            out += (change(style, wanted), piece.text)
            style = wanted
            at = None if piece.end < 0 else (piece.row, piece.end)
        return "".join(out), Pen(at, style)


def pieces_of(row: int, column: int, cells: Sequence[Cell | None], at_edge: bool) -> list[Piece]:
    """Cut cells that stand side by side into pieces of one style; blanks join either side."""
    pieces: list[Piece] = []
    start, text = column, ""
    style: Style | None = None
    for offset, cell in enumerate(cells):
        if cell is None or not cell[0]:
            continue
        shared = cell[1] if style is None else _joined(text, style, cell)
        if style is not None and shared is None:
            pieces.append(Piece(row, start, text, style, _end(text, column + offset)))
            start, text, shared = column + offset, "", cell[1]
        text, style = text + cell[0], shared
    if style is not None:
        end = -1 if at_edge else _end(text, column + len(cells))
        pieces.append(Piece(row, start, text, style, end))
    return pieces


def _end(text: str, column: int) -> int:
    return column if is_narrow(text) else -1


def _joined(text: str, style: Style, cell: Cell) -> Style | None:
    """Return the style that text and a further cell can share, or None."""
    character, other = cell
    if style == other:
        return style
    if style.background != other.background or style.shows_on_blank or other.shows_on_blank:
        return None
    if character == " ":
        return style
    return other if text.isspace() else None


def _as_written(piece: Piece, now: Style | None) -> Style:
    """Return the style to write in: what has no ink takes the present colour."""
    if now is None or not piece.is_blank:
        return piece.style
    if now.shows_on_blank:
        return Style((), now.foreground, piece.style.background)
    return Style(now.attributes, now.foreground, piece.style.background)


def _order_by_style(pieces: Sequence[Piece], now: Style | None) -> dict[Piece, tuple[int, int]]:
    """Return a place for each piece: the present style first, blanks last."""
    ranks: dict[Style | None, int] = {now: 0}
    for piece in pieces:
        if not piece.is_blank:
            ranks.setdefault(piece.style, len(ranks))
    last = len(ranks)
    return {
        piece: (last if piece.is_blank else ranks[piece.style], place)
        for place, piece in enumerate(pieces)
    }


def _move(at: tuple[int, int] | None, row: int, column: int) -> str:
    """Return the shortest way from one cell to another: by its address, or by steps."""
    absolute = f"\x1b[{row + 1};{column + 1}H"
    if at is None:
        return absolute
    down, right = row - at[0], column - at[1]
    steps = _steps(down, "B", "A") + ("\b" * -right if -4 < right < 0 else _steps(right, "C", "D"))
    return min(absolute, steps, key=len)


def _steps(distance: int, forward: str, back: str) -> str:
    if not distance:
        return ""
    count = str(abs(distance)) if abs(distance) > 1 else ""
    return f"\x1b[{count}{forward if distance > 0 else back}"
