"""Painted lines: spans of text, each with the name of a style.

Panels speak of meaning ("warn", "dim"), a theme speaks of colour. Widths are cells of a terminal,
not characters: a wide character takes two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from rich.cells import cell_len, set_cell_size

Span = tuple[str, str]
"""Text and the name of its style."""
Line = list[Span]
Align = Literal["left", "right"]


def width_of(line: Iterable[Span]) -> int:
    """Return the cells that a line takes."""
    return sum(cell_len(text) for text, _ in line)


def text_of(line: Iterable[Span]) -> str:
    """Return the text of a line without its styles."""
    return "".join(text for text, _ in line)


def cut(text: str, width: int) -> str:
    """Return text in at most `width` cells; what is cut off shows as an ellipsis.

    >>> [cut("workspace", 5), cut("记忆体", 4), cut("abc", 3), cut("abc", 0)]
    ['work…', '记…', 'abc', '']
    """
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…"


def fit(text: str, width: int, align: Align = "left") -> str:
    """Return text in exactly `width` cells.

    >>> [fit("ab", 4), fit("ab", 4, "right"), fit("记忆体", 4)]
    ['ab  ', '  ab', '记… ']
    """
    shown = cut(text, width)
    padding = " " * (width - cell_len(shown))
    return shown + padding if align == "left" else padding + shown


def cut_line(line: Line, width: int) -> Line:
    """Return a line in at most `width` cells."""
    kept: Line = []
    room = width
    for text, style in line:
        cells = cell_len(text)
        if cells > room:
            if room > 0:
                kept.append((cut(text, room), style))
            return kept
        kept.append((text, style))
        room -= cells
    return kept


def spread(left: Line, right: Line, width: int) -> Line:
    """Return one line with `right` at its right end; the left part gives way."""
    room = width - width_of(right)
    if room < 2:
        return cut_line(left, width)
    shown = cut_line(left, room - 1)
    return [*shown, (" " * (room - width_of(shown)), ""), *right]


def joined(parts: Sequence[Line], between: Span = (" │ ", "dim")) -> Line:
    """Return the parts that say something as one line."""
    line: Line = []
    for part in parts:
        if part:
            line += [between, *part] if line else part
    return line


def wrapped(text: str, width: int, style: str = "") -> list[Line]:
    """Return a text as lines of at most `width` cells, cut between words."""
    lines: list[Line] = []
    row = ""
    for word in text.split():
        longer = f"{row} {word}" if row else word
        if cell_len(longer) > width and row:
            lines.append([(cut(row, width), style)])
            row = word
        else:
            row = longer
    lines.append([(cut(row, width), style)])
    return lines


def wrapped_line(line: Line, width: int, indent: int = 0) -> list[Line]:
    """Return a line in its styles as lines of at most `width` cells, all but the first indented.

    >>> [text_of(row) for row in wrapped_line([("fix ", "dim"), ("a full checkpoint", "")], 10, 4)]
    ['fix a full', '    check…']
    """
    rows: list[Line] = [[]]
    begun = False  # the row has a word
    for text, style in line:
        for piece in _PIECES.findall(text):
            word = piece if begun or len(rows) == 1 else piece.lstrip()
            if begun and width_of(rows[-1]) + cell_len(word.rstrip()) > width:
                rows.append([(" " * indent, "")] if indent else [])
                word = word.lstrip()
            rows[-1].append((word, style))
            begun = bool(text_of(rows[-1]).strip())
    return [cut_line(row, width) for row in rows]


_PIECES = re.compile(r"\s*\S+|\s+")
_ASCII = str.maketrans(
    "–—…×│┃─━┄┴└┘┌┐▏▸·•→←↑↓±≤≥−█▓▒░╱■▲⏎⇧\N{REPLACEMENT CHARACTER}",
    "--~x||-=-+++++|>.*><^v~<>-#=+:/o*<^?",
)


def ascii_text(text: str) -> str:
    """Return text in ASCII alone, taking as many cells as before.

    >>> ascii_text("3–4 min │ 记忆 é")
    '3-4 min | ???? ?'
    """
    if text.isascii():
        return text
    plain = text.translate(_ASCII)
    if plain.isascii():
        return plain
    return "".join(c if c.isascii() else "?" * cell_len(c) for c in plain)
