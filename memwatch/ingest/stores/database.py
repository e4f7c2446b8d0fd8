"""A database of SQLite that belongs to somebody else: opened so that nothing of it can change.

Read-only is not enough: `mode=ro` alone still creates a missing `-wal`, and rewrites the `-shm`
that a killed process left behind. So three cases, decided by what lies there:

- the log holds something and its index is there (or both just lie there: somebody is connected):
  `mode=ro&readonly_shm=1`; locks are shared, and held only while a statement runs;
- there is no log, or an empty one that nobody has open: everything is in the main file. It is read
  with `immutable=1`, which touches no other file and takes no lock. What was read counts only when
  nobody was about to write before (a lock of SQLite tells, however its program keeps a journal),
  nothing had changed so lately that one more change could have the same time, and all of that is
  still so afterwards;
- a log without its index: opening would have to create one. It is refused.

Source: https://sqlite.org/wal.html#read_only_databases, https://sqlite.org/uri.html
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from stat import S_ISREG
from urllib.parse import quote

from memwatch.ingest.stores.looking import UnseenError

_LONGEST_VALUE = 64 << 20
"""Of a value that a statement touches: hostile text cannot fill our memory."""
_STEPS_PER_CHECK = 2_000
_TICK_NS = 50_000_000
"""Two changes of a file within a tick of the system's coarse clock have the same time."""
_LOCKS_AT, _LOCKS = 0x40000000, 512
"""Where SQLite puts its locks: who holds one for writing there is in the middle of a change."""
_FLOCK = "hhqqi0q"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BEING_WRITTEN = "its program is writing it; it is looked at again later"

Mark = tuple[int, ...]


@contextmanager
def open_untouched(path: Path, until: float) -> Iterator[sqlite3.Connection]:
    """Open the database at an absolute path; statements fail when the monotonic clock passes.

    Raises UnseenError with the reason, for errors of statements inside the block as well.
    """
    before = _at_rest(path, until)
    how = "immutable=1" if before else "readonly_shm=1"
    try:
        with closing(_connect(path, how)) as base:
            base.execute("pragma query_only=1")
            base.execute("pragma trusted_schema=0")
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            base.text_factory = _text
            base.set_progress_handler(lambda: time.monotonic() > until, _STEPS_PER_CHECK)
            yield base
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        _refuse_changed(path, before)
        raise UnseenError(_why(error, until)) from None
    _refuse_changed(path, before)


def _at_rest(path: Path, until: float) -> Mark | None:
    """Return what the main file is like when all is in it and nobody writes; None with a log."""
    if not _is_quiet(path):
        return None
    mark = _mark(path)
    age_ns = abs(time.time_ns() - max(mark[-2:]))
    if age_ns < _TICK_NS and time.monotonic() + _TICK_NS / 1e9 < until:
        time.sleep((_TICK_NS - age_ns) / 1e9)
        if _mark(path) != mark:
            raise UnseenError(_BEING_WRITTEN)
    if _is_locked(path):
        raise UnseenError(_BEING_WRITTEN)
    return mark


def _refuse_changed(path: Path, before: Mark | None) -> None:
    """Refuse what was read without a lock when somebody may have written meanwhile."""
    if before and (before != _mark(path) or not _is_quiet(path) or _is_locked(path)):
        raise UnseenError(
            "it was opened by its program while it was read; it is looked at again later"
        )


def _is_locked(path: Path) -> bool:
    """Whether a process is about to write: asked of the system, without taking a lock."""
    ask = getattr(fcntl, "F_OFD_GETLK", None)  # of Linux
    if ask is None:
        return False
    fd = os.open(path, _READ)
    try:
        about = struct.pack(_FLOCK, fcntl.F_RDLCK, os.SEEK_SET, _LOCKS_AT, _LOCKS, 0)
        kind: int = struct.unpack(_FLOCK, fcntl.fcntl(fd, ask, about))[0]
    except OSError:  # a file system that knows no locks: then its program has none either
        return False
    finally:
        os.close(fd)
    return kind != fcntl.F_UNLCK


def _connect(path: Path, how: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path))}?mode=ro&{how}"
    return sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _mark(path: Path) -> Mark:
    status = path.stat()
    if not S_ISREG(status.st_mode):
        raise UnseenError("it is no file")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _size(path: Path, suffix: str) -> int | None:
    try:
        status = os.lstat(f"{path}{suffix}")
    except FileNotFoundError:
        return None
    if not S_ISREG(status.st_mode):
        raise UnseenError(f"what is called {suffix} beside it is no file")
    return status.st_size


def _is_hot(path: Path) -> bool:
    """Whether the journal beside it begins with more than nothing: some leave an empty one."""
    fd = os.open(f"{path}-journal", _READ)
    try:
        return os.read(fd, 1) != b"\0"
    finally:
        os.close(fd)


def log_bytes(path: Path) -> int:
    """Return the size of the write-ahead log beside a database, 0 where there is none."""
    return _size(path, "-wal") or 0


def _is_quiet(path: Path) -> bool:
    """Whether everything is in the main file, and nobody is connected."""
    if _size(path, "-journal") and _is_hot(path):
        raise UnseenError("a change in it is not finished (a journal lies beside it)")
    log, index = _size(path, "-wal"), _size(path, "-shm")
    if log is not None and index is not None:
        return False
    if log:
        raise UnseenError(
            "its log (-wal) lies there without its index (-shm), and reading it would write one; "
            "open and close it once with its own program"
        )
    return True


def _why(error: Exception, until: float) -> str:
    if time.monotonic() > until:
        return "it is too large to be counted in time"
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_READONLY", "SQLITE_PROTOCOL")):
        return "it is busy; it is looked at again later"
    return f"it cannot be read as a database: {error}"
