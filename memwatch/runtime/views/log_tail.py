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
        self._forgotten = 0

    def add(self, first: int, last: int, size: int) -> None:
        """Take note of `size` bytes that hold the numbers `first` to `last`."""
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


class Segments:
    """Bytes of the newest segments, as far as they were read; recovery reads them whole."""

    def __init__(self) -> None:
        self._bytes: dict[int, int] = {}

    def add(self, first: int, end: int) -> None:
        """Take note that the segment that begins with `first` was read up to a byte."""
        self._bytes[first] = max(end, self._bytes.get(first, 0))
        while len(self._bytes) > _MOST_SEGMENTS:
            del self._bytes[min(self._bytes)]

    @property
    def newest_bytes(self) -> int:
        """Of the newest one."""
        return self._bytes[max(self._bytes)] if self._bytes else 0

    def behind(self, lsn: int) -> int:
        """Return the bytes of those that hold numbers above `lsn`."""
        begun = max((first for first in self._bytes if first <= lsn + 1), default=0)
        return sum(size for first, size in self._bytes.items() if first >= begun)


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
