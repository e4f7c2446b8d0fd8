"""Bytes -> complete lines with their offsets; a torn end waits, an over-long line is skipped."""

from __future__ import annotations

from typing import NamedTuple

from memwatch.wal.codec import MAX_LINE_BYTES


class Line(NamedTuple):
    """A complete line, without its line feed."""

    offset: int
    text: bytes


class Overlong(NamedTuple):
    """A line over the limit: `length` bytes from `offset` were skipped, line feed included."""

    offset: int
    length: int


class Framer:
    """Cuts a stream of chunks into lines, whatever the chunking.

    Memory stays under the line limit plus one chunk, however long a line claims to be.
    """

    def __init__(self, offset: int = 0, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._start = offset
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._skipped = 0
        self._max = max_line_bytes

    @property
    def offset(self) -> int:
        """Offset of the first byte that belongs to no complete line yet."""
        return self._start

    @property
    def torn_bytes(self) -> int:
        """Length of the incomplete line at the end."""
        return self._pending_bytes + self._skipped

    def skip_torn(self) -> None:
        """Step over the incomplete line: nothing will complete it."""
        self._start += self.torn_bytes
        self._pending, self._pending_bytes, self._skipped = [], 0, 0

    def feed(self, chunk: bytes) -> list[Line | Overlong]:
        """Take the next bytes; return the lines that they complete."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._hold(first)
            return []
        found = [self._complete(first)]
        last = rest.pop()
        start = self._start
        for text in rest:
            length = len(text) + 1
            found.append(Line(start, text) if length <= self._max else Overlong(start, length))
            start += length
        self._start = start
        self._hold(last)
        return found

    def _hold(self, piece: bytes) -> None:
        if self._skipped or self._pending_bytes + len(piece) >= self._max:
            self._skipped += self._pending_bytes + len(piece)
            self._pending, self._pending_bytes = [], 0
        elif piece:
            self._pending.append(piece)
            self._pending_bytes += len(piece)

    def _complete(self, end: bytes) -> Line | Overlong:
        length = self.torn_bytes + len(end) + 1
        found: Line | Overlong
        if self._skipped or length > self._max:
            found = Overlong(self._start, length)
        else:
            found = Line(self._start, b"".join((*self._pending, end)))
        self._start += length
        self._pending, self._pending_bytes, self._skipped = [], 0, 0
        return found
