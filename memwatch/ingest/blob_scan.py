"""How many persisted values lie in a run directory, and how much they hold: a bounded look.

A value's file is written once and never changed, so its directory tells by its own time whether any
came or went. Of very many the first are measured and stand for all: their names are hashes, so
that any some of them are a fair sample.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

_MOST_NAMES = 1_000_000
_MOST_SIZES = 4_096
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Blobs(Struct, frozen=True):
    """What was found."""

    count: int = 0
    bytes: int = 0
    """Estimated from a part of them where `measured` is less than `count`."""
    measured: int = 0
    changed_ns: int = 0
    """Time of the directory's last change; 0 where there is none."""


NO_BLOBS: Final = Blobs()


def scan_blobs(folder: Path, before: Blobs = NO_BLOBS) -> Blobs:
    """Count the values of a folder; `before` is returned where it did not change since.

    Raises OSError, but not for a folder that is none.
    """
    try:
        fd = os.open(folder, _DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return NO_BLOBS
    try:
        changed_ns = os.fstat(fd).st_mtime_ns
        if before.changed_ns == changed_ns:
            return before
        return _count(fd, changed_ns)
    finally:
        os.close(fd)


def _count(fd: int, changed_ns: int) -> Blobs:
    sizes = count = measured = 0
    with os.scandir(fd) as entries:
        for entry in islice(entries, _MOST_NAMES):
            if entry.name.startswith(".") or not entry.is_file(follow_symlinks=False):
                continue
            count += 1
            if measured < _MOST_SIZES and (size := _size(entry)) is not None:
                measured += 1
                sizes += size
    total = round(sizes / measured * count) if measured else 0
    return Blobs(count, total, measured, changed_ns)


def _size(entry: os.DirEntry[str]) -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # gone since it was listed
        return None
