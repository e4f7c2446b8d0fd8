"""What only the guard knows, written to `guard.wal` before it is shown or acted on.

A full disk does not stop the live view: the recorder says since when nothing is recorded, tries
again by itself, and writes the gap down as soon as it can.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import Clock
from memwatch.domain.errors import LogError
from memwatch.domain.record import Record

RETRY_US = 5_000_000

OpenLog = Callable[[], LogWriter]


class Recorder:
    """Appends records to the guard's own log. Thread-safe."""

    def __init__(self, wal_dir: Path, clock: Clock, open_log: OpenLog | None = None) -> None:
        self._clock = clock
        self._open = open_log or (lambda: LogWriter(wal_dir, clock=clock))
        self._lock = threading.Lock()
        self._log: LogWriter | None = None
        self._since_us: int | None = None
        self._why = ""
        self._full = False
        self._retry_us = 0
        self.on_gap: Callable[[Record], None] = lambda _: None
        """Told the record of a gap once it is written."""
        self.make_room: Callable[[], bool] = lambda: False
        """Gives up a reserve for what is done on a full disk; True when there is room now."""
        self._start()

    @property
    def since_us(self) -> int | None:
        """Wall time since which nothing is recorded; None while all is."""
        return self._since_us

    @property
    def why(self) -> str:
        """Why nothing is recorded."""
        return self._why

    @property
    def bytes_written(self) -> int:
        """Bytes that this recorder appended."""
        return self._log.bytes_written if self._log else 0

    @property
    def last_lsn(self) -> int:
        """Newest number of the log; 0 when it could not be opened."""
        return self._log.last_lsn if self._log else 0

    def append(
        self, kind: str, members: dict[str, Any], *, sync: bool = False, acting: bool = False
    ) -> Record:
        """Record; returns what was to be written, with lsn 0 while the disk refuses.

        With `sync` it is on the device when this returns; nobody else waits for that. `acting`:
        something is only done when this is written, so it is tried at once and may use the
        reserve, which a full disk would not leave to it if samples had it.
        """
        record = self._append(kind, members, acting)
        if not sync or not record.lsn or self._synced():
            return record
        if acting and self._full and self.make_room():
            record = self._append(kind, members, acting)
            if not record.lsn or self._synced():
                return record
        with self._lock:
            self._failed(record.t_us, record.m_us)
        return Record(0, record.t_us, record.m_us, kind, members)

    def heal(self) -> None:
        """Try again when it is time: with nothing to append, nobody else would find out."""
        with self._lock:
            if self._since_us is not None:
                self._resumed(self._clock.wall_us(), self._clock.boot_us())

    def close(self) -> None:
        """Sync and close."""
        with self._lock:
            if self._log is not None:
                try:
                    self._log.close()
                except LogError as error:
                    self._why = _words(error)

    def _start(self) -> None:
        try:
            self._log = self._open()
        except LogError as error:
            self._why = _words(error)
            self._failed(self._clock.wall_us(), self._clock.boot_us())

    def _append(self, kind: str, members: dict[str, Any], acting: bool) -> Record:
        with self._lock:
            now_us, boot_us = self._clock.wall_us(), self._clock.boot_us()
            if acting:
                self._retry_us = boot_us
            tried = self._since_us is None or boot_us >= self._retry_us
            lsn = self._write(kind, members, now_us, boot_us) if tried else None
            if lsn is None and acting and self._full and self.make_room():
                self._retry_us = boot_us
                lsn = self._write(kind, members, now_us, boot_us)
            if lsn is None and tried:
                self._failed(now_us, boot_us)
            return Record(lsn or 0, now_us, boot_us, kind, members)

    def _write(self, kind: str, members: dict[str, Any], now_us: int, boot_us: int) -> int | None:
        if self._since_us is not None and not self._resumed(now_us, boot_us):
            return None
        return self._try(kind, members)

    def _try(self, kind: str, members: dict[str, Any]) -> int | None:
        try:
            if self._log is None:
                self._log = self._open()
            return self._log.append(kind, members)
        except LogError as error:
            self._note(error)
            return None

    def _synced(self) -> bool:
        """Wait for the device, without the lock: what others append meanwhile does not."""
        try:
            if self._log is not None:
                self._log.sync()
        except LogError as error:
            with self._lock:
                self._note(error)
            return False
        return True

    def _note(self, error: LogError) -> None:
        self._why, self._full = _words(error), _is_full(error)

    def _failed(self, now_us: int, boot_us: int) -> None:
        if self._since_us is None:
            self._since_us = now_us
        self._retry_us = boot_us + RETRY_US

    def _resumed(self, now_us: int, boot_us: int) -> bool:
        if boot_us < self._retry_us:
            return False
        gap = {"from_us": self._since_us, "until_us": now_us, "why": self._why}
        lsn = self._try("gap", gap)
        if lsn is None:
            self._failed(now_us, boot_us)
            return False
        self._since_us, self._why = None, ""
        self.on_gap(Record(lsn, now_us, boot_us, "gap", gap))
        return True


def _is_full(error: LogError) -> bool:
    """Say whether more room would help; a record of which only a part was taken has no cause."""
    cause = error.__cause__
    return not isinstance(cause, OSError) or cause.errno in (errno.ENOSPC, errno.EDQUOT)


def _words(error: LogError) -> str:
    """Return what a person must know: why, without the place that all records go to."""
    cause = error.__cause__
    if isinstance(cause, OSError) and cause.strerror:
        return f"guard.wal: {cause.strerror}"
    return f"guard.wal: {str(error).rpartition(': ')[2].partition(';')[0]}"
