"""How many bytes of a log lie behind one of its numbers, from batches in any order.

A recovery replays what lies behind the newest checkpoint. Batches tell first number, last number
and bytes; bytes are shared out evenly among the numbers of what was read in one piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_MOST_SPANS = 32
_MOST_SEGMENTS = 64


class _Span(NamedTuple):
    first: int
    last: int
    bytes: float

    def part(self, first: int, last: int) -> _Span | None:
        """Return what lies between two numbers, both included."""
        first, last = max(first, self.first), min(last, self.last)
        if last < first:
            return None
        return _Span(first, last, self.bytes * (last - first + 1) / (self.last - self.first + 1))


class LogTail:
    """Spans of the log that were read; numbers that come again replace what they held."""

    def __init__(self) -> None:
        self._spans: list[_Span] = []
        self._segments: list[int] = []
        """First number of each, the newest."""
        self._forgotten = 0

    def add(self, first: int, last: int, size: int, segment: int) -> None:
        """Take note of `size` bytes of a segment that hold the numbers `first` to `last`."""
        if segment not in self._segments:
            self._segments = sorted([*self._segments, segment])[-_MOST_SEGMENTS:]
        kept = [part for span in self._spans for part in _around(span, first, last)]
        new = _Span(first, last, size).part(self._forgotten + 1, last)
        self._spans = _joined(sorted([*kept, new] if new else kept))

    def forget(self, lsn: int) -> None:
        """Say that nobody will ask for what lies up to `lsn` any more."""
        self._forgotten = lsn
        parts = (span.part(lsn + 1, span.last) for span in self._spans)
        self._spans = [part for part in parts if part is not None]

    def behind(self, lsn: int) -> int:
        """Return the bytes of all numbers above `lsn`."""
        parts = (span.part(lsn + 1, span.last) for span in self._spans)
        return round(sum(part.bytes for part in parts if part is not None))

    def read_behind(self, lsn: int) -> int:
        """Return the bytes that are read for all numbers above `lsn`: segments are read whole."""
        begun = [first for first in self._segments if first <= lsn + 1]
        return self.behind(begun[-1] - 1 if begun else lsn)

    @property
    def newest_segment(self) -> int:
        """First number of the newest segment."""
        return self._segments[-1] if self._segments else 1


def _around(span: _Span, first: int, last: int) -> Iterator[_Span]:
    for part in (span.part(span.first, first - 1), span.part(last + 1, span.last)):
        if part is not None:
            yield part


def _joined(spans: list[_Span]) -> list[_Span]:
    """Join spans that follow each other; too many are joined from the oldest on."""
    found: list[_Span] = []
    for span in spans:
        if found and found[-1].last + 1 == span.first:
            before = found.pop()
            span = _Span(before.first, span.last, before.bytes + span.bytes)
        found.append(span)
    while len(found) > _MOST_SPANS:
        oldest, after = found[:2]
        found[:2] = [_Span(oldest.first, after.last, oldest.bytes + after.bytes)]
    return found
