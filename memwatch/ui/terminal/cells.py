"""What the terminal shows, cell by cell: turns full output into the bytes that change something.

Textual writes whole pieces of lines, each run with its full style and a reset. Over SSH that is
most of what a monitor sends. Here the same output is drawn into cells first, and only those that
differ from what the terminal shows already are sent, with the shortest change of style. What is
no text, no style and no move of the cursor goes through as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from rich.cells import cell_len

from memwatch.ui.terminal.pen import Cell, Pen, Piece, is_narrow, pieces_of
from memwatch.ui.terminal.sgr import PLAIN, Style, change, parsed

_TOKENS = re.compile(
    r"\x1b\[(?P<row>\d+);(?P<column>\d+)H"
    r"|\x1b\[(?P<style>[\d;]*)m"
    r"|(?P<newline>\r?\n)"
    r"|(?P<other>\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[^\[\]])|[\x00-\x1f])"
)
_ALTERNATE = "\x1b[?1049"
_SYNC_BEGIN, _SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
_BRIDGED = 4
"""Unchanged cells in one style between two changes that cost less than a move over them."""


class CellScreen:
    """The cells of one terminal, as wanted and as shown."""

    def __init__(self) -> None:
        self._wanted: dict[int, list[Cell | None]] = {}
        self._shown: dict[int, list[Cell | None]] = {}
        self._touched: set[int] = set()
        self._size = (sys.maxsize, sys.maxsize)
        self._at = (0, 0)
        self._style = PLAIN
        self._out: list[str] = []
        self._pen = Pen()
        self._sync_wanted = False
        self._sync_open = False

    def forget(self) -> None:
        """Take nothing for granted about what the terminal shows: the next output is sent whole."""
        self._shown.clear()
        self._pen = Pen()

    def resize(self, columns: int, rows: int) -> None:
        """Follow a terminal of another size, which may show anything now.

        A terminal draws what lies beyond its edge onto the edge: neither what an earlier layout
        left there nor a late frame of it may be sent.
        """
        self._size = (columns, rows)
        self._wanted.clear()
        self.forget()

    def feed(self, data: str) -> str:
        """Take output that is meant for the terminal; return what must be sent."""
        start = 0
        for token in _TOKENS.finditer(data):
            if token.start() > start:
                self._write(data[start : token.start()])
            start = token.end()
            if token["row"] is not None:
                self._at = (int(token["row"]) - 1, int(token["column"]) - 1)
            elif token["style"] is not None:
                self._style = parsed(token["style"])
            elif token["newline"] is not None:
                self._at = (self._at[0] + 1, 0)
            else:
                self._pass(token["other"])
        if start < len(data):
            self._write(data[start:])
        self._flush()
        out, self._out = "".join(self._out), []
        return out

    # -- drawing into cells ------------------------------------------------------------------

    def _write(self, text: str) -> None:
        row, column = self._at
        columns, rows = self._size
        if row >= rows:
            return
        cells = self._wanted.setdefault(row, [])
        self._touched.add(row)
        if is_narrow(text):
            text = text[: max(columns - column, 0)]
            _put(cells, column, text, len(text), self._style)
            column += len(text)
        else:
            column = self._write_wide(cells, column, text, columns)
        self._at = (row, column)

    def _write_wide(self, cells: list[Cell | None], column: int, text: str, columns: int) -> int:
        """Write text whose characters may take two cells or none; return the column behind it."""
        for character in text:
            width = cell_len(character)
            if width == 0:
                _combine(cells, column, character)
                continue
            if column + width > columns:
                break
            _put(cells, column, character, width, self._style)
            column += width
        return column

    def _pass(self, sequence: str) -> None:
        """Send a sequence that is no drawing, after what was drawn before it."""
        if sequence == _SYNC_BEGIN:
            self._sync_wanted = True
            return
        self._flush()
        if sequence == _SYNC_END:
            self._sync_wanted = False
            if self._sync_open:
                self._sync_open = False
                self._out.append(sequence)
            return
        if sequence.startswith(_ALTERNATE):
            self._out.append(change(None, PLAIN))
            self.forget()
            self._wanted.clear()
        self._out.append(sequence)

    # -- sending what differs ----------------------------------------------------------------

    def _flush(self) -> None:
        pieces: list[Piece] = []
        for row in sorted(self._touched):
            wanted = self._wanted[row]
            shown = self._shown.setdefault(row, [])
            if len(shown) < len(wanted):
                shown += [None] * (len(wanted) - len(shown))
            for first, end in _changes(wanted, shown):
                pieces += pieces_of(row, first, wanted[first:end], at_edge=end >= len(wanted))
            shown[: len(wanted)] = wanted
        self._touched.clear()
        if not pieces:
            return
        if self._sync_wanted and not self._sync_open:
            self._sync_open = True
            self._out.append(_SYNC_BEGIN)
        output, self._pen = self._pen.written(pieces)
        self._out.append(output)


def _blank(style: Style) -> Style:
    """Return the style of a blank cell: of two that look the same, the same."""
    return style if style.shows_on_blank else Style((), "", style.background)


def _put(cells: list[Cell | None], column: int, text: str, width: int, style: Style) -> None:
    """Set the cells of narrow text, or of one wide character.

    A wide character that loses one half to it leaves a blank in the other.
    """
    end = column + width
    if len(cells) < end:
        cells += [None] * (end - len(cells))
    if width and column and (here := _right_half(cells[column])):
        cells[column - 1] = (" ", _blank(here))
    if end < len(cells) and (behind := _right_half(cells[end])):
        cells[end] = (" ", _blank(behind))
    blank = _blank(style)
    cells[column : column + len(text)] = [(c, blank if c == " " else style) for c in text]
    if width > len(text):
        cells[column + 1] = ("", style)


def _right_half(cell: Cell | None) -> Style | None:
    """Return the style of a cell that is the right half of a wide character."""
    return cell[1] if cell is not None and not cell[0] else None


def _combine(cells: list[Cell | None], column: int, mark: str) -> None:
    """Put a character without a width of its own onto the one before it."""
    for index in range(column - 1, max(column - 3, -1), -1):
        cell = cells[index] if index < len(cells) else None
        if cell is not None and cell[0]:
            cells[index] = (cell[0] + mark, cell[1])
            return


def _changes(wanted: list[Cell | None], shown: list[Cell | None]) -> Iterator[tuple[int, int]]:
    """Return the runs of cells to send, near ones joined; no run begins inside a wide character."""
    differing = [
        index
        for index, (new, old) in enumerate(zip(wanted, shown, strict=False))
        if new is not None and new != old
    ]
    if not differing:
        return
    first = last = differing[0]
    for index in differing[1:]:
        if not _is_bridge(wanted, last, index):
            yield _whole(wanted, first, last)
            first = index
        last = index
    yield _whole(wanted, first, last)


def _is_bridge(cells: list[Cell | None], last: int, following: int) -> bool:
    """Return whether the cells between two changes cost less to send than to jump over."""
    if following - last - 1 > _BRIDGED:
        return False
    cell = cells[last]
    style = cell[1] if cell is not None and cell[0] else None
    return style is not None and all(
        one is not None and _costs_no_style(one, style) for one in cells[last + 1 : following]
    )


def _costs_no_style(cell: Cell, style: Style) -> bool:
    if cell[1] == style:
        return bool(cell[0])
    same_ground = cell[1].background == style.background
    return cell[0] == " " and same_ground and not (cell[1].shows_on_blank or style.shows_on_blank)


def _whole(cells: list[Cell | None], first: int, last: int) -> tuple[int, int]:
    head = cells[first]
    if head is not None and not head[0] and first:
        first -= 1
    end = last + 1
    if end < len(cells) and (tail := cells[end]) is not None and not tail[0]:
        end += 1
    return first, end
