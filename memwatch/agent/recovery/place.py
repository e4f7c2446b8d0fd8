"""The files of a run directory, read and nothing else: no link is followed, no name leads out.

Everything that a file does not give comes as DamagedError, one sentence that names the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from memwatch.agent.recovery.report import Progress
from memwatch.domain.errors import DamagedError

PIECE_BYTES = 1 << 19
"""Read at once: it is hashed and decoded while it is still in the processor's cache."""

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _ROOT | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_NAMES = 100_000


class Place:
    """A run directory. Names are given as parts: folder, then file."""

    def __init__(self, path: Path, progress: Callable[[Progress], None] | None = None) -> None:
        self.path = path
        self._progress = progress
        self._done = self._total = 0

    def expect(self, count: int) -> None:
        """Say that so many more bytes will be read."""
        self._total += count

    def names(self, *folder: str) -> list[str]:
        """Return the names in a folder, sorted; none where there is no such folder."""
        try:
            fd = self._folder(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _damaged(folder, error) from None
        try:
            with os.scandir(fd) as entries:
                return sorted(entry.name for entry in islice(entries, _MOST_NAMES))
        except OSError as error:
            raise _damaged(folder, error) from None
        finally:
            os.close(fd)

    def open(self, *parts: str) -> BinaryIO:
        """Open a regular file, unbuffered."""
        try:
            folder = self._folder(parts[:-1])
            try:
                fd = os.open(parts[-1], _FILE, dir_fd=folder)
            finally:
                os.close(folder)
            if not S_ISREG(os.fstat(fd).st_mode):
                os.close(fd)
                raise DamagedError(f"{'/'.join(parts)} is no regular file: not opened")
        except (OSError, ValueError) as error:
            raise _damaged(parts, error) from None
        return os.fdopen(fd, "rb", buffering=0)

    def size(self, *parts: str) -> int:
        """Return the size of a regular file."""
        with self.open(*parts) as file:
            return os.fstat(file.fileno()).st_size

    def small(self, *parts: str, most_bytes: int) -> bytes:
        """Return a whole file that is not over `most_bytes`."""
        with self.open(*parts) as file:
            pieces, left = [], most_bytes + 1
            while left and (piece := _read(file, min(left, PIECE_BYTES), parts)):
                pieces.append(piece)
                left -= len(piece)
        if not left:
            raise DamagedError(f"{'/'.join(parts)} is over {most_bytes} bytes")
        return b"".join(pieces)

    def pieces(self, file: BinaryIO, *parts: str, told: bool = True) -> Iterator[bytes]:
        """Read an open file to its end; with `told` it counts as progress."""
        while piece := _read(file, PIECE_BYTES, parts):
            yield piece
            if told and self._progress is not None:
                self._done += len(piece)
                total = max(self._total, self._done)
                self._progress(Progress(self._done, total, "/".join(parts)))

    def _folder(self, parts: tuple[str, ...]) -> int:
        fd = os.open(self.path, _ROOT)
        for part in parts:
            try:
                inner = os.open(part, _FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd


def _read(file: BinaryIO, count: int, parts: tuple[str, ...]) -> bytes:
    try:
        return file.read(count)
    except OSError as error:
        raise _damaged(parts, error) from None


def _damaged(parts: tuple[str, ...], error: OSError | ValueError) -> DamagedError:
    name = "/".join(parts)
    if isinstance(error, FileNotFoundError):
        return DamagedError(f"{name} is missing")
    why = getattr(error, "strerror", None) or str(error)
    return DamagedError(f"{name} cannot be read: {why}")
