"""`recoveries.jsonl` of a run: one line a drill or restart, the newest last, beside its history."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from stat import S_ISREG

import msgspec

from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.analytics.recovery.sound import sound
from memwatch.domain.recovery import PastRecovery

RECOVERY_FILE = "recoveries.jsonl"
MOST = 20
"""Recoveries that are told of a run."""
_TAIL_BYTES = 131_072
_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe under that name keeps nobody waiting
_READ = os.O_RDONLY | _SAFE
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | _SAFE
_decode = msgspec.json.Decoder(PastRecovery).decode


def append_recovery(home: Path, done: PastRecovery, files: Files = SYSTEM_FILES) -> None:
    """Add a line to the recoveries of the run whose folder `home` is, whole; raises OSError."""
    path, line = home / RECOVERY_FILE, msgspec.json.encode(done) + b"\n"
    fd = files.open(path, _APPEND, 0o600)
    try:
        before = _size(fd)
        if before and os.pread(fd, 1, before - 1) != b"\n":  # a power loss left half a line
            line = b"\n" + line
        _write_whole(files, fd, line, before)
    finally:
        files.close(fd)


def _write_whole(files: Files, fd: int, line: bytes, before: int) -> None:
    """Write all or nothing: half a line would spoil the next."""
    if files.write(fd, line) != len(line):  # a disk that fills
        files.truncate(fd, before)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), RECOVERY_FILE)


def read_recoveries(home: Path, most: int = MOST) -> tuple[PastRecovery, ...]:
    """Return the newest recoveries of a run, newest first; lines that cannot be read are none."""
    return tuple(islice(_newest(home), most))


def _newest(home: Path) -> Iterator[PastRecovery]:
    for line in reversed(_tail(home / RECOVERY_FILE).splitlines()):
        try:
            done = sound(_decode(line))
        except (ValueError, RecursionError):
            continue
        if done is not None:
            yield done


def _tail(path: Path) -> bytes:
    try:
        fd = os.open(path, _READ)
    except OSError:
        return b""
    try:
        return os.pread(fd, _TAIL_BYTES, max(_size(fd) - _TAIL_BYTES, 0))
    except OSError:
        return b""
    finally:
        os.close(fd)


def _size(fd: int) -> int:
    """Return the size of an open file; raises OSError for anything that is none."""
    status = os.fstat(fd)
    if not S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no file")
    return status.st_size


class RecoveryNews:
    """Looks at the file of one run, and reads it when it has changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._seen: tuple[int, int, int] | None = None

    def look(self) -> tuple[PastRecovery, ...] | None:
        """Return all recoveries at its end, newest first, when there may be a new one; else None.

        These are more than are told, so that a restart is known behind many drills.
        """
        try:
            status = (self._home / RECOVERY_FILE).lstat()
        except OSError:
            return None
        seen = status.st_mtime_ns, status.st_size, status.st_ino
        if seen == self._seen:
            return None
        self._seen = seen
        return tuple(_newest(self._home))
