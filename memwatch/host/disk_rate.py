"""How fast a disk is with the system's memory out of the way: bounded in bytes and in time.

What is written is a file of ours without a name, gone with its descriptor, whatever happens. A
rate of reading is told only where the pages were really gone before (`host.page_cache`): on a file
system in memory, or where another one holds them, it is None. Source: metrics, Recovery.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG
from typing import Protocol

from memwatch.domain.clock import Clock
from memwatch.domain.recovery import DiskRate
from memwatch.domain.units import bytes_text
from memwatch.host.deadline import ask
from memwatch.host.page_cache import forget_open

MOST_BYTES = 32_000_000
_LEAST_BYTES = 1_000_000
"""Of less the rate would be that of one request."""
_PIECE_BYTES = 1 << 19
"""Read and written at once, as a recovery reads."""
_BLOCK_BYTES = 512
_COLD_SHARE = 0.02
_PATIENCE_TIMES = 10
"""A device that keeps us waiting for so many deadlines is none to measure."""
_SCRATCH = os.O_RDWR | os.O_CLOEXEC
_NO_NAMELESS = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Calls(Protocol):
    """The system calls that write (`memwatch.agent.files.Files`)."""

    @property
    def open(self) -> Callable[..., int]: ...
    @property
    def close(self) -> Callable[[int], None]: ...
    @property
    def write(self) -> Callable[..., int]: ...
    @property
    def fsync(self) -> Callable[[int], None]: ...
    @property
    def unlink(self) -> Callable[[Path], None]: ...


def measure(
    folder: Path,
    clock: Clock,
    files: Calls,
    *,
    most_bytes: int = MOST_BYTES,
    deadline_s: float = 2.0,
) -> DiskRate | None:
    """Return the rates of the device below a folder of ours, by a scratch file in it.

    None where it cannot be written, or does not answer.
    """
    return ask(
        f"rate of {folder}",
        lambda: _write_and_read(folder, clock, files, most_bytes, deadline_s),
        deadline_s * _PATIENCE_TIMES,
    )


def measure_reading(
    path: Path, clock: Clock, *, most_bytes: int = MOST_BYTES, deadline_s: float = 2.0
) -> DiskRate | None:
    """Return the rate of reading one file of our own user; nothing is written.

    None for what is no such file, is too short, or cannot be made cold.
    """
    return ask(
        f"rate of {path}",
        lambda: _read_only(path, clock, most_bytes, deadline_s),
        deadline_s * _PATIENCE_TIMES,
    )


def _write_and_read(
    folder: Path, clock: Clock, files: Calls, most_bytes: int, deadline_s: float
) -> DiskRate | None:
    fd = _scratch(folder, files)
    try:
        began = time.monotonic()
        written = _write(fd, files, most_bytes, began + deadline_s / 2)
        files.fsync(fd)
        took_s = time.monotonic() - began
        if written < min(_LEAST_BYTES, most_bytes) or took_s <= 0:
            return None
        read = _cold_rate(fd, written, deadline_s / 2)
    finally:
        files.close(fd)
    how = f"{bytes_text(written)} of our own, written" + (" and read cold" if read else "")
    return DiskRate(
        read_bytes_per_s=read,
        write_bytes_per_s=written / took_s,
        t_us=clock.wall_us(),
        how=how,
    )


def _scratch(folder: Path, files: Calls) -> int:
    """Open a file without a name, else one that loses its name at once; raises OSError."""
    nameless: int = getattr(os, "O_TMPFILE", 0)
    if nameless:
        try:
            return files.open(folder, _SCRATCH | nameless, 0o600)
        except OSError as error:
            if error.errno not in _NO_NAMELESS:
                raise
    path = folder / f".rate.{os.getpid()}.draft"
    fd = files.open(path, _SCRATCH | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        files.unlink(path)
    except OSError:
        files.close(fd)
        raise
    return fd


def _write(fd: int, files: Calls, most_bytes: int, until: float) -> int:
    """Write what no file system makes smaller; returns how much came down in time."""
    piece, written = os.urandom(_PIECE_BYTES), 0
    while written < most_bytes and time.monotonic() < until:
        written += files.write(fd, piece[: most_bytes - written])
    return written


def _read_only(path: Path, clock: Clock, most_bytes: int, deadline_s: float) -> DiskRate | None:
    fd = os.open(path, _FILE)
    try:
        status = os.fstat(fd)
        held = status.st_blocks * _BLOCK_BYTES  # what is not on the disk is read from nowhere
        size = min(status.st_size, most_bytes) if held * 4 >= status.st_size else 0
        if not S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or size < _LEAST_BYTES:
            return None
        rate = _cold_rate(fd, size, deadline_s)
    finally:
        os.close(fd)
    how = f"{bytes_text(size)} of a checkpoint, read cold"
    return DiskRate(read_bytes_per_s=rate, t_us=clock.wall_us(), how=how) if rate else None


def _cold_rate(fd: int, size: int, deadline_s: float) -> float | None:
    """Return bytes per second of a file from its begin, None where it does not come cold."""
    cached = forget_open(fd, size)
    if cached is None or cached > _COLD_SHARE:
        return None
    began, read = time.monotonic(), 0
    while read < size and time.monotonic() < began + deadline_s:
        piece = os.pread(fd, min(_PIECE_BYTES, size - read), read)
        if not piece:
            break
        read += len(piece)
    took_s = time.monotonic() - began
    return read / took_s if read and took_s > 0 else None
