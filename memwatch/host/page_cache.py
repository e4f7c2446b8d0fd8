"""Pages of files that the system keeps in memory: asked to forget them, and asked what it kept."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAP_SHARED, _PROT_READ = 1, 1
_size, _offset = ctypes.c_size_t, ctypes.c_long
_MAP_FAILED = ctypes.c_void_p(-1).value
_WINDOW_BYTES = 1 << 30


def forget(files: Iterable[Path]) -> float | None:
    """Ask the system to drop what it caches of regular files; returns the share still cached.

    What was written lately is brought to the device first, as only clean pages can go. None where
    nobody can tell; a file system in memory keeps all, and says so.
    """
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return None
    paths = list(files)
    for path in paths:
        with suppress(OSError), _opened(path) as fd:
            os.fdatasync(fd)
            advise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    return cached_share(paths)


def forget_open(fd: int, length: int) -> float | None:
    """Do as `forget` does with the begin of one open file; returns the share still cached of it."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return None
    os.fdatasync(fd)
    advise(fd, 0, length, os.POSIX_FADV_DONTNEED)
    pages, resident = _resident(_libc(), fd, min(length, os.fstat(fd).st_size))
    return resident / pages if pages else None


def cached_share(files: Iterable[Path]) -> float | None:
    """Return the share of all pages of regular files that is in memory, from 0 to 1."""
    libc = _libc()
    pages = resident = 0
    for path in files:
        try:
            with _opened(path) as fd:
                found = _resident(libc, fd, os.fstat(fd).st_size)
        except OSError:
            continue
        pages, resident = pages + found[0], resident + found[1]
    return resident / pages if pages else None


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    return libc


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    fd = os.open(path, _FILE)
    try:
        yield fd
    finally:
        os.close(fd)


def _resident(libc: ctypes.CDLL, fd: int, size: int) -> tuple[int, int]:
    """Return how many pages a file has, and how many of them are in memory."""
    page = os.sysconf("SC_PAGE_SIZE")
    pages = resident = 0
    for start in range(0, size, _WINDOW_BYTES):
        length = min(size - start, _WINDOW_BYTES)
        address = libc.mmap(None, _size(length), _PROT_READ, _MAP_SHARED, fd, _offset(start))
        if address == _MAP_FAILED:
            raise OSError(ctypes.get_errno(), "mmap")
        try:
            states = (ctypes.c_ubyte * -(-length // page))()
            if libc.mincore(ctypes.c_void_p(address), _size(length), states):
                raise OSError(ctypes.get_errno(), "mincore")
        finally:
            libc.munmap(ctypes.c_void_p(address), _size(length))
        pages += len(states)
        resident += sum(state & 1 for state in states)
    return pages, resident
