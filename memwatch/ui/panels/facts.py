"""Names with what there is to say of them, for boxes of text."""

from __future__ import annotations

from collections.abc import Iterable

from memwatch.ui.line import Line, wrapped

Fact = tuple[str, str]
"""A name, and what there is to say."""

_LABEL = 12


def fact_lines(facts: Iterable[Fact], width: int) -> list[Line]:
    """Return each name once, with its text beside it in as many lines as it takes."""
    lines: list[Line] = []
    for name, text in facts:
        rows = wrapped(text, max(width - _LABEL - 1, 12))
        for index, row in enumerate(rows):
            lines.append([(f"{name if index == 0 else '':<{_LABEL}} ", "dim"), *row])
    return lines
