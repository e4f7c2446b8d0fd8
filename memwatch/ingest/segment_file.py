"""One open segment: its bytes through a stream, and what befell the file between two reads.

A file is known again by its last bytes read: a record ends with its checksum, so those are as
good as a fingerprint. Where they no longer stand, the bytes before were rewritten.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Literal, NamedTuple

from memwatch.domain.record import Fault, FaultKind, Position
from memwatch.wal import codec
from memwatch.wal.segment import segment_lsn, segment_name
from memwatch.wal.stream import Items, SegmentStream

_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_ANCHOR_BYTES = 64
_LOOK_BACK_BYTES = 1 << 16

Standing = Literal["same", "other", "gone"]


class Listing(NamedTuple):
    """Segments of a log directory, by first lsn, in order."""

    regular: list[int]
    refused: list[int]
    """Those that are no regular file: a link or a pipe under a segment's name is not opened."""


def list_segments(wal_dir: Path) -> Listing:
    """Return the segments of a directory; raises OSError."""
    regular: list[int] = []
    refused: list[int] = []
    with os.scandir(wal_dir) as entries:
        for entry in entries:
            lsn = segment_lsn(entry.name)
            if lsn is not None:
                (regular if entry.is_file(follow_symlinks=False) else refused).append(lsn)
    return Listing(sorted(regular), sorted(refused))


class _Anchor(NamedTuple):
    """Bytes that must stand before an offset."""

    end: int
    tail: bytes

    def fits(self, fd: int) -> bool:
        return os.pread(fd, len(self.tail), self.end - len(self.tail)) == self.tail

    def moved(self, chunk: bytes, length: int) -> _Anchor:
        """Return the anchor `length` bytes further, the first of `chunk` being those bytes."""
        if not length:
            return self
        tail = self.tail if length < _ANCHOR_BYTES else b""
        tail += chunk[max(length - _ANCHOR_BYTES, 0) : length]
        return _Anchor(self.end + length, tail[-_ANCHOR_BYTES:])


_START = _Anchor(0, b"")


class SegmentFile:
    """Reads one segment and notices when it was cut, rewritten or replaced.

    All methods may raise OSError; a later call goes on where the failed one began.
    """

    def __init__(self, wal_dir: Path, lsn: int, max_line_bytes: int = codec.MAX_LINE_BYTES) -> None:
        self.lsn = lsn
        self._max_line_bytes = max_line_bytes
        self._path = wal_dir / segment_name(lsn)
        self._fd, self._identity = _open_regular(self._path)
        self._stream = SegmentStream(Position(lsn), max_line_bytes)
        self._read_to = self._line_start = _START

    def close(self) -> None:
        """Give the file back."""
        os.close(self._fd)

    @property
    def position(self) -> Position:
        """Where a later reader goes on."""
        return self._stream.position

    @property
    def torn_bytes(self) -> int:
        """Bytes of the incomplete line at the end."""
        return self._stream.torn_bytes

    def standing(self) -> Standing:
        """Say whether the name still leads to this file."""
        try:
            status = self._path.lstat()
        except FileNotFoundError:
            return "gone"
        return "same" if (status.st_dev, status.st_ino) == self._identity else "other"

    def resume(self, place: Position) -> Items:
        """Go on at a stored place: there a line ends that has the number before, or is broken.

        A place that no longer fits the file is a fault, and the file is read from its start:
        its records come again, and the fault's `lsn` says from which number on. That a writer
        cut off the torn end behind the last record is none: no record went with it.
        """
        size = os.fstat(self._fd).st_size
        if place.offset > size > 0 and self._last_line(size) == (size, place.next_lsn):
            self._restart(Position(self.lsn, size, place.next_lsn), self._anchor_at(size))
            return []
        if place.offset > size:
            self._restart(Position(self.lsn), _START)
            detail = f"{place.offset - size} bytes shorter than what was read: read again"
            return [self._fault("truncated", 0, detail, self.lsn)]
        if place.offset and self._last_line(place.offset) != (place.offset, place.next_lsn):
            return [self._rewritten(place.offset)]
        self._restart(place, self._anchor_at(place.offset))
        return []

    def take_over(self, old: SegmentFile) -> Items:
        """Go on in this file where the reader of its predecessor under this name stands."""
        offset = old.position.offset
        if os.fstat(self._fd).st_size >= offset and old._line_start.fits(self._fd):
            self._restart(old.position, old._line_start)
            return [self._fault("replaced", offset, "another file with the same content")]
        return [self._rewritten(offset)]

    def read(self, most_bytes: int) -> tuple[Items, bool]:
        """Return what the next bytes give, and whether the end of the file is reached."""
        size = os.fstat(self._fd).st_size
        offset = self._read_to.end
        if size < offset:
            return self._cut(size), False
        if not self._read_to.fits(self._fd):
            return self._changed_below(), False
        if size == offset:
            return [], True
        chunk = os.pread(self._fd, min(most_bytes, size - offset), offset)
        items = self._stream.feed(chunk)
        before, self._read_to = self._read_to, self._read_to.moved(chunk, len(chunk))
        if (completed := self.position.offset - offset) > 0:
            self._line_start = before.moved(chunk, completed)
        return items, offset + len(chunk) >= size

    def seal(self, successor: int) -> Items:
        """Say that the segment is complete: the next one begins with `successor`."""
        return self._stream.seal(successor)

    def _anchor_at(self, end: int) -> _Anchor:
        start = max(end - _ANCHOR_BYTES, 0)
        return _Anchor(end, os.pread(self._fd, end - start, start))

    def _changed_below(self) -> Items:
        """Start again at the last line, or at the start, as far as bytes below were rewritten."""
        place = self.position
        if self._line_start.fits(self._fd):
            self._restart(place, self._line_start)
            return [self._fault("truncated", place.offset, "the incomplete line was rewritten")]
        return [self._rewritten(place.offset)]

    def _cut(self, size: int) -> Items:
        """Go on behind the last line of the shorter file, if its number says that we read it."""
        place, anchor = self.position, self._line_start
        if place.offset == size and anchor.fits(self._fd):  # an incomplete line, and no more
            self._restart(place, anchor)
            return []
        detail = f"the file became {self._read_to.end - size} bytes shorter"
        if place.offset > size or not anchor.fits(self._fd):
            end, next_lsn = self._last_line(size)
            if next_lsn is None or place.next_lsn is None or next_lsn > place.next_lsn:
                end, next_lsn = 0, self.lsn
            place = Position(self.lsn, end, next_lsn)
            anchor = self._anchor_at(end)
        self._restart(place, anchor)
        return [self._fault("truncated", place.offset, detail, place.next_lsn)]

    def _rewritten(self, offset: int) -> Fault:
        self._restart(Position(self.lsn), _START)
        detail = f"other content before offset {offset}: read again from its start"
        return self._fault("replaced", 0, detail, self.lsn)

    def _restart(self, place: Position, anchor: _Anchor) -> None:
        self._stream = SegmentStream(place, self._max_line_bytes)
        self._read_to = self._line_start = anchor

    def _last_line(self, size: int) -> tuple[int, int | None]:
        """Return the offset behind the last complete line before `size`, and the lsn due there.

        None is due behind a broken line, as with the positions of a stream.
        """
        span: int = _LOOK_BACK_BYTES
        while True:
            start = max(size - span, 0)
            lines, feed, _ = os.pread(self._fd, size - start, start).rpartition(b"\n")
            before = lines.rfind(b"\n")
            if start == 0 or before >= 0 or span > 2 * self._max_line_bytes:
                break
            span *= 8
        if not feed:
            return 0, None
        stream = SegmentStream(Position(self.lsn, 1), self._max_line_bytes)
        stream.feed(lines[before + 1 :] + feed)
        return start + len(lines) + 1, stream.position.next_lsn

    def _fault(self, kind: FaultKind, offset: int, detail: str, lsn: int | None = None) -> Fault:
        return Fault(kind, self.lsn, offset, 0, detail, lsn)


def _open_regular(path: Path) -> tuple[int, tuple[int, int]]:
    fd = os.open(path, _OPEN_FLAGS)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return fd, (status.st_dev, status.st_ino)
