"""`drills.jsonl` of a run: one line a drill, the newest last, beside the run's history."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from memwatch.domain.recovery import PastRecovery

DRILL_FILE = "drills.jsonl"
_TAIL_BYTES = 65_536
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def append_drill(home: Path, drill: PastRecovery) -> None:
    """Add a line to the drills of the run whose folder `home` is, whole; raises OSError."""
    path, line = home / DRILL_FILE, msgspec.json.encode(drill) + b"\n"
    fd = os.open(path, _APPEND, 0o600)
    try:
        before = os.fstat(fd).st_size
        if os.write(fd, line) != len(line):  # a disk that fills; half a line would spoil the next
            os.ftruncate(fd, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(fd)


def read_drill(home: Path) -> PastRecovery | None:
    """Return the newest drill of a run, None where there is none that can be read."""
    with suppress(OSError), (home / DRILL_FILE).open("rb") as file:
        file.seek(max(os.fstat(file.fileno()).st_size - _TAIL_BYTES, 0))
        for line in reversed(file.read().splitlines()):
            with suppress(ValueError, RecursionError):
                return msgspec.json.decode(line, type=PastRecovery)
    return None


class DrillNews:
    """Looks at the file of one run, and reads it when it has changed."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._seen: tuple[int, int] | None = None

    def look(self) -> PastRecovery | None:
        """Return the newest drill when there may be a new one."""
        try:
            status = (self._home / DRILL_FILE).stat()
        except OSError:
            return None
        seen = status.st_mtime_ns, status.st_size
        if seen == self._seen:
            return None
        self._seen = seen
        return read_drill(self._home)
