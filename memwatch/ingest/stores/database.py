"""A database of SQLite that belongs to somebody else: opened so that nothing of it can change.

Read-only is not enough: `mode=ro` alone still creates a missing `-wal`, and rewrites the `-shm`
that a killed process left behind. So three cases, decided by what lies there:

- the log holds something and its index is there (or both just lie there: somebody is connected):
  `mode=ro&readonly_shm=1`; locks are shared, and held only while a statement runs;
- there is no log, or an empty one that nobody has open: everything is in the main file. It is read
  with `immutable=1`, which touches no other file and takes no lock, and what was read counts only
  when the file is the same afterwards and there still is no log;
- a log without its index: opening would have to create one. It is refused.

Source: https://sqlite.org/wal.html#read_only_databases, https://sqlite.org/uri.html
"""

from __future__ import annotations

import os
import sqlite3
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

Mark = tuple[int, ...]


@contextmanager
def open_untouched(path: Path, until: float) -> Iterator[sqlite3.Connection]:
    """Open the database at an absolute path; statements fail when the monotonic clock passes.

    Raises UnseenError with the reason, for errors of statements inside the block as well.
    """
    before = _mark(path)
    quiet = _is_quiet(path)
    how = "immutable=1" if quiet else "readonly_shm=1"
    try:
        with closing(_connect(path, how)) as base:
            base.execute("pragma query_only=1")
            base.execute("pragma trusted_schema=0")
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            base.text_factory = _text
            base.set_progress_handler(lambda: time.monotonic() > until, _STEPS_PER_CHECK)
            yield base
    except (sqlite3.Error, OverflowError) as error:
        raise UnseenError(_why(error, until)) from None
    if quiet and (before != _mark(path) or not _is_quiet(path)):
        raise UnseenError(
            "it was opened by its program while it was read; it is looked at again later"
        )


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


def log_bytes(path: Path) -> int:
    """Return the size of the write-ahead log beside a database, 0 where there is none."""
    return _size(path, "-wal") or 0


def _is_quiet(path: Path) -> bool:
    """Whether everything is in the main file, and nobody is connected."""
    if _size(path, "-journal"):
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
