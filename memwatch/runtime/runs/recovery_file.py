"""`recoveries.jsonl` of a run: one line a drill or restart, the newest last, beside its history."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from memwatch.domain.recovery import PastRecovery

RECOVERY_FILE = "recoveries.jsonl"
_TAIL_BYTES = 65_536
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_decode = msgspec.json.Decoder(PastRecovery).decode


def append_recovery(home: Path, done: PastRecovery) -> None:
    """Add a line to the recoveries of the run whose folder `home` is, whole; raises OSError."""
    path, line = home / RECOVERY_FILE, msgspec.json.encode(done) + b"\n"
    fd = os.open(path, _APPEND, 0o600)
    try:
        before = os.fstat(fd).st_size
        if os.write(fd, line) != len(line):  # a disk that fills; half a line would spoil the next
            os.ftruncate(fd, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(fd)


def read_recoveries(home: Path, most: int = 20) -> tuple[PastRecovery, ...]:
    """Return the newest recoveries of a run, newest first; lines that cannot be read are none."""
    return tuple(islice(_newest(home), most))


def _newest(home: Path) -> Iterator[PastRecovery]:
    with suppress(OSError), (home / RECOVERY_FILE).open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - _TAIL_BYTES, 0))
        for line in reversed(file.read().splitlines()):
            with suppress(ValueError, RecursionError):
                yield _decode(line)


class RecoveryNews:
    """Looks at the file of one run, and reads it when it has changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._seen: tuple[int, int] | None = None

    def look(self) -> tuple[PastRecovery, ...] | None:
        """Return the newest recoveries, newest first, when there may be a new one; else None."""
        try:
            status = (self._home / RECOVERY_FILE).stat()
        except OSError:
            return None
        seen = status.st_mtime_ns, status.st_size
        if seen == self._seen:
            return None
        self._seen = seen
        return read_recoveries(self._home)
