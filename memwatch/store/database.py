"""The file of a history: opened with bounds on memory, set aside when it is damaged."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb

from memwatch.domain.clock import Clock
from memwatch.domain.errors import StoreError
from memwatch.domain.text import inert
from memwatch.store.migrations import migrate
from memwatch.store.query_text import query_text
from memwatch.store.rows import TABLES, Row

_CONFIG: dict[str, Any] = {
    "threads": 1,
    "memory_limit": "40MB",
    "max_temp_directory_size": "256MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "enable_external_access": False,
    "python_enable_replacements": False,
}
_ERRORS = (duckdb.Error, RuntimeError)  # the second: what its C++ code raises unworded
_READERS_LEAVE_S = 5.0

# How DuckDB words what it raises: it has no error codes, and one class for many things.
_IN_USE = "Could not set lock"
_HOLDER = re.compile(r"\(PID (\d+)\)")
_NEWER = ("Trying to read a database file with version number", "created with a newer")
_REFUSED = ("No space left", "Permission denied", "Too many open files", "Read-only file system")
_DAMAGED = (
    "Corrupt",
    "not a valid DuckDB database file",
    "Could not read enough bytes",
    "Failure while replaying WAL",
)


class Database:
    """One open file. `write` belongs to one thread at a time, `rows` to any."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._connection: Any = None
        self._appenders: dict[str, Any] = {}
        self._identity: tuple[int, int] | None = None
        self._cursors: set[Any] = set()
        self._changed = threading.Condition()
        self._damaged = False

    @property
    def is_open(self) -> bool:
        """Queries are answered; a failed write or checkpoint closes the file."""
        return self._connection is not None

    @property
    def damaged(self) -> bool:
        """A read or write met damage: the next `open` sets the file aside."""
        return self._damaged

    def open(self) -> None:
        """Open or create the file and bring its schema up to date; raises StoreError.

        A damaged log of changes, then a damaged file, is renamed and kept; the history begins
        anew, for the logs are its source.
        """
        self.close()
        if self._damaged:
            self._set_aside(self._wal, self.path)
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for suspect in (self._wal, self.path, None):
            try:
                connection = duckdb.connect(self.path, config=_CONFIG)
                break
            except _ERRORS as error:
                if suspect is None or not _is_damage(error):
                    raise self._worded(error) from None
                self._set_aside(suspect)
        try:
            migrate(connection, self._clock.wall_us())
            name = {"run_key": self.path.parent.name, "created_us": self._clock.wall_us()}
            connection.execute(query_text("name_run"), name)
            appenders = {table: connection.appender(table) for table in (*TABLES, "position")}
        except _ERRORS as error:
            connection.close()
            raise self._worded(error) from None
        except StoreError:
            connection.close()
            raise
        with self._changed:
            self._connection, self._appenders = connection, appenders
            self._identity = _identity(self.path)

    def close(self) -> None:
        """Close the file, interrupting readers; does nothing when it is closed."""
        with self._changed:
            connection, self._connection, self._appenders = self._connection, None, {}
            self._send_readers_away()
        if connection is not None:
            with suppress(*_ERRORS):
                connection.close()

    def verify(self) -> None:
        """See whether the open file is still the one under its path; raises StoreError if not."""
        if self._identity != _identity(self.path):
            self.close()
            raise StoreError("the file of the history was removed: it is rebuilt")

    def write(
        self, rows: Mapping[str, Sequence[Row]], void: Sequence[tuple[str, int]] = ()
    ) -> None:
        """Commit rows by table in one transaction, or nothing of it; raises StoreError.

        `void` names segments (log, first lsn) whose rows from before are deleted first.
        """
        connection = self._open_connection()
        try:
            connection.begin()
            for log, segment in void:
                self._delete(log, segment)
            for table, some in rows.items():
                self._appenders[table].append_rows(some)
                self._appenders[table].flush()
            connection.commit()
        except _ERRORS as error:
            self.close()  # rolls back; DuckDB may refuse everything on this handle from now on
            raise self._worded(error) from None

    def checkpoint(self) -> None:
        """Move the log of changes into the file; raises StoreError."""
        try:
            self._open_connection().checkpoint()
        except _ERRORS as error:
            self.close()
            raise self._worded(error) from None

    def rows(self, query: str, deadline_s: float, **parameters: object) -> list[tuple[Any, ...]]:
        """Return all rows of a named query, from any thread; raises StoreError.

        A query that takes longer than `deadline_s` is interrupted.
        """
        with self.reading() as cursor:
            timer = threading.Timer(deadline_s, cursor.interrupt)
            timer.daemon = True
            timer.start()
            try:
                found: list[tuple[Any, ...]] = cursor.execute(
                    query_text(query), parameters or None
                ).fetchall()
            except duckdb.InterruptException:
                words = f"the history did not answer in {deadline_s:g} s: ask for less"
                raise StoreError(words) from None
            except _ERRORS as error:
                raise self._worded(error) from None
            finally:
                timer.cancel()
            return found

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Give this thread a cursor of its own; raises StoreError when the file is not open."""
        with self._changed:
            cursor = self._open_connection().cursor()
            self._cursors.add(cursor)
        try:
            yield cursor
        finally:
            with self._changed:
                self._cursors.discard(cursor)
                cursor.close()
                self._changed.notify_all()

    def _send_readers_away(self) -> None:
        """Wait until no cursor is left: one would keep a failed instance alive under this path."""
        until = time.monotonic() + _READERS_LEAVE_S
        while self._cursors and time.monotonic() < until:
            for cursor in self._cursors:  # again and again: before a query runs it goes unheard
                cursor.interrupt()
            self._changed.wait(0.05)

    def _open_connection(self) -> Any:
        connection = self._connection
        if connection is None:
            raise StoreError("the history is not open")
        return connection

    def _delete(self, log: str, segment: int) -> None:
        where = {"log": log, "segment": segment}
        for statement in query_text("void_segment").split(";\n"):
            if statement.strip():
                self._connection.execute(statement, where)

    @property
    def _wal(self) -> Path:
        return self.path.with_name(self.path.name + ".wal")

    def _set_aside(self, *paths: Path) -> None:
        stamp = self._clock.wall_us()
        try:
            for path in paths:
                if path.exists():
                    path.rename(path.with_name(f"{path.name}.damaged-{stamp}"))
        except OSError as error:
            raise StoreError(f"cannot set the damaged history aside: {error.strerror}") from None
        self._damaged = False

    def _worded(self, error: Exception) -> StoreError:
        text = str(error)
        first = inert(text.partition("\n")[0], 160)
        if _is_damage(error):
            self._damaged = True
            return StoreError(f"the history is damaged, it is set aside and rebuilt: {first}")
        if _IN_USE in text:
            holder = _HOLDER.search(text)
            who = f"process {holder[1]}" if holder else "another process"
            return StoreError(f"{who} has {self.path.name} open: end it, or wait until it ends")
        if any(words in text for words in _NEWER):
            return StoreError(f"a newer memwatch wrote {self.path.name}, update this one: {first}")
        return StoreError(f"the history cannot be used: {first}")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_damage(error: Exception) -> bool:
    text = str(error)
    return any(words in text for words in _DAMAGED) and not any(w in text for w in _REFUSED)
