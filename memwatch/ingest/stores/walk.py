"""What lies in a store, by directory descriptors.

Links are not followed, nothing is opened but directories and regular files, and one look has a
bound on files and on time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from stat import S_ISREG
from typing import NamedTuple

MOST_FILES = 150_000
"""Files that one look counts; behind it, it says that there are more."""
_MOST_NAMES = 2_000
"""Files of one checkpoint that are kept by name; all are counted."""
_MOST_DEPTH = 6
_CLOCK_EVERY = 64
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_ATIME = getattr(os, "O_NOATIME", 0)


class FileFacts(NamedTuple):
    """One file of a checkpoint."""

    bytes: int
    changed_us: int


class Found:
    """What lies below one name of a store."""

    def __init__(self) -> None:
        self.files: dict[str, FileFacts] = {}
        """By path within the checkpoint, `sub/model.pt`."""
        self.bytes = 0
        self.count = 0
        self.touched_us = 0
        """Newest change of a file or of the directories."""
        self.last_us = 0
        """Newest change of a file; 0 without one."""


class TooMuchError(Exception):
    """The bound of the look is reached."""


def open_directory(name: str, parent: int | None = None) -> int:
    """Open a directory without leaving a trace of it; raises OSError."""
    return _open(name, _READ | os.O_DIRECTORY, parent)


def _open(name: str, flags: int, parent: int | None) -> int:
    try:
        return os.open(name, flags | _NO_ATIME, dir_fd=parent)
    except PermissionError:  # only the owner of a file may ask for that
        return os.open(name, flags, dir_fd=parent)


class Walk:
    """One look's way through a store; hard links are counted once in `bytes`."""

    def __init__(self, root: int, until: float, most_files: int = MOST_FILES) -> None:
        self.bytes = 0
        self._root = root
        self._until = until
        self._left = most_files
        self._seen: set[tuple[int, int]] = set()

    def top(self) -> Iterator[os.DirEntry[str]]:
        """Yield what lies at the top, links and all."""
        yield from self._entries(self._root)

    def changed_ns(self, entry: os.DirEntry[str]) -> int:
        """Return when an entry of the top changed, 0 when it is gone; the entry keeps nothing."""
        try:
            return os.stat(entry.name, dir_fd=self._root, follow_symlinks=False).st_mtime_ns
        except OSError:
            return 0

    def measure(self, entries: list[os.DirEntry[str]]) -> Found | None:
        """Return what lies below entries of the top; None when they are gone.

        Raises TooMuchError when the bound is reached before the end.
        """
        found = Found()
        there = False
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    self._descend(self._root, entry.name, "", found)
                else:
                    self._count(entry, entry.name, found)
                there = True
        return found if there else None

    def _descend(self, parent: int, name: str, path: str, found: Found, depth: int = 0) -> None:
        folder = open_directory(name, parent)
        try:
            status = os.fstat(folder)
            found.touched_us = max(found.touched_us, status.st_mtime_ns // 1000)
            for entry in self._entries(folder):
                with suppress(OSError):  # gone since it was listed, or closed to us
                    if entry.is_dir(follow_symlinks=False):
                        if depth < _MOST_DEPTH:
                            below = f"{path}{entry.name}/"
                            self._descend(folder, entry.name, below, found, depth + 1)
                    elif entry.is_file(follow_symlinks=False):
                        self._count(entry, path + entry.name, found)
        finally:
            os.close(folder)

    def _entries(self, folder: int) -> Iterator[os.DirEntry[str]]:
        with os.scandir(folder) as entries:
            for entry in entries:
                self._left -= 1
                late = self._left % _CLOCK_EVERY == 0 and time.monotonic() > self._until
                if self._left < 0 or late:
                    raise TooMuchError
                yield entry

    def _count(self, entry: os.DirEntry[str], path: str, found: Found) -> None:
        status = entry.stat(follow_symlinks=False)
        changed_us = status.st_mtime_ns // 1000
        found.count += 1
        found.bytes += status.st_size
        found.last_us = max(found.last_us, changed_us)
        found.touched_us = max(found.touched_us, changed_us)
        if len(found.files) < _MOST_NAMES:
            found.files[path] = FileFacts(status.st_size, changed_us)
        if status.st_nlink > 1:
            identity = (status.st_dev, status.st_ino)
            if identity in self._seen:
                return
            self._seen.add(identity)
        self.bytes += status.st_size


@contextmanager
def open_file(root: int, path: str) -> Iterator[int]:
    """Open a regular file below a directory for reading; raises OSError for anything else."""
    *folders, name = path.split("/")
    opened: list[int] = []
    parent = root
    try:
        for folder in folders:
            parent = open_directory(folder, parent)
            opened.append(parent)
        if not S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(f"{path!r} is no file")  # to open a pipe would wake who waits for us
        opened.append(_open(name, _READ, parent))
        if not S_ISREG(os.fstat(opened[-1]).st_mode):
            raise OSError(f"{path!r} is no file")
        yield opened[-1]
    finally:
        for fd in reversed(opened):
            os.close(fd)


def exists(root: int, name: str) -> bool:
    """Whether a directory still holds a name."""
    try:
        os.stat(name, dir_fd=root, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def file_facts(root: int, path: str) -> FileFacts | None:
    """Return what a regular file below a directory is, or None where there is none."""
    try:
        with open_file(root, path) as fd:
            status = os.fstat(fd)
    except OSError:
        return None
    return FileFacts(status.st_size, status.st_mtime_ns // 1000)


def read_file(root: int, path: str, most_bytes: int) -> bytes | None:
    """Return the content of a small file, or None when it is larger, gone or no file."""
    try:
        with open_file(root, path) as fd:
            size = os.fstat(fd).st_size
            return os.pread(fd, size, 0) if size <= most_bytes else None
    except OSError:
        return None
