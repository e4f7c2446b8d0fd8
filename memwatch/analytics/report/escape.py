"""Text of others in Markdown: it stays text, in one line, and people still read it plain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memwatch.domain.text import inert

NONE: Final = "–"
"""What stands where nothing is known."""
_ACTING: Final = re.compile(
    r"[\\`*\[\]<>|~&@]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE
)
_FIGURE: Final = re.compile(r"[-+]?\d[\d.:]*[A-Za-z%]*( \(\d+%\))?$|–$|[\dhmsd]+$")
_LEADING: Final = re.compile(r"^(?=[#+=-])|^(\d+)(?=[.)])")


def escaped(text: str, width: int = 400) -> str:
    r"""Return text that stays text in Markdown, in one line.

    >>> escaped("<b>a|b</b> snake_case _x_ ~1M"), escaped("- 1"), escaped("1. x\ny")
    ('\\<b\\>a\\|b\\</b\\> snake_case \\_x\\_ \\~1M', '\\- 1', '1\\. x y')
    """
    plain = _ACTING.sub(lambda found: f"\\{found.group()}", inert(text, width))
    return _LEADING.sub(lambda found: f"{found.group(1) or ''}\\", plain)


def inline(text: str) -> str:
    """Return text behind other text: it begins no line."""
    return _ACTING.sub(lambda found: f"\\{found.group()}", inert(text, 600))


def table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], more: int = 0
) -> list[str]:
    """Return a table; empty without rows. Columns of figures stand to the right, empty ones go."""
    if not rows:
        return []
    used = [n for n in range(len(head)) if n == 0 or any(row[n] != NONE for row in rows)]
    head, rows = [head[n] for n in used], [[row[n] for n in used] for row in rows]
    wide = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    right = [n > 0 and all(_FIGURE.match(row[n]) for row in rows) for n in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        fitted = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, wide, right, strict=True)
        ]
        return f"| {' | '.join(fitted)} |"

    marks = [
        "-" * (n - 1) + ":" if to_right else "-" * n
        for n, to_right in zip(wide, right, strict=True)
    ]
    tail = ["", f"and {more} more"] if more > 0 else []
    return ["", f"## {title}", "", line(head), f"| {' | '.join(marks)} |", *map(line, rows), *tail]
