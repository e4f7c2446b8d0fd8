"""Torn ends of sealed segments: what a death in the middle of a write left behind the last line.

Cut before an increment is written (R7). Only bytes behind the last line feed go, and only where
the line before says that no number went with them: the next segment begins right behind it.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from memwatch.agent.files import Files
from memwatch.wal import codec
from memwatch.wal.segment import segment_name, segments

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK_BYTES = 1 << 16


class Tail(NamedTuple):
    """An end to be cut off."""

    path: Path
    offset: int
    """Where the last line ends."""
    bytes: int


def torn_tails(wal_dir: Path, seen: set[int]) -> list[Tail]:
    """Return the torn ends of sealed segments that are not in `seen`, and note them there.

    Sealed segments do not change, so each is looked at once. Raises OSError.
    """
    firsts = segments(path.name for path in wal_dir.iterdir())
    tails = []
    for first, successor in pairwise(firsts):
        if first not in seen:
            tail = _tail(wal_dir / segment_name(first), successor)
            if tail is not None:
                tails.append(tail)
            else:
                seen.add(first)
    return tails


def cut(files: Files, tail: Tail) -> None:
    """Cut an end off, durably; raises OSError."""
    fd = files.open(tail.path, _WRITE)
    try:
        files.truncate(fd, tail.offset)
        files.fsync(fd)
    finally:
        files.close(fd)


def _tail(path: Path, successor: int) -> Tail | None:
    fd = os.open(path, _READ)
    try:
        size = os.fstat(fd).st_size
        if not size or os.pread(fd, 1, size - 1) == b"\n":
            return None
        line, end = _last_line(fd, size)
    finally:
        os.close(fd)
    try:
        whole = codec.decode(line).lsn == successor - 1
    except codec.DamagedLineError:
        return None
    return Tail(path, end, size - end) if whole else None


def _last_line(fd: int, size: int) -> tuple[bytes, int]:
    """Return the last complete line and the offset behind it; nothing and 0 where there is none."""
    held, start = b"", size
    while start and len(held) < 2 * codec.MAX_LINE_BYTES + _BLOCK_BYTES:
        length = min(_BLOCK_BYTES, start)
        start -= length
        held = os.pread(fd, length, start) + held
        lines, feed, _ = held.rpartition(b"\n")
        before = lines.rfind(b"\n")
        if feed and (before >= 0 or not start):
            return lines[before + 1 :], start + len(lines) + 1
    return b"", 0
