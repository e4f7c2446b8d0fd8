"""The one writer of a log: numbers records, writes each at once, and never loses what it said.

`append` returns when the record is written; from then on it survives the death of the process.
It survives a power loss once `durable_lsn` has reached its number. A restart begins a new
segment and truncates nothing. Source: requirement R7 ("write-ahead: append, then apply").
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal

from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.past import bring_to_device, cleared, last_lsn
from memwatch.agent.receipt import UNREAD, Receipt
from memwatch.domain.clock import Clock, SystemClock
from memwatch.domain.errors import LogError
from memwatch.wal import codec
from memwatch.wal.segment import SEGMENT_BYTES, segment_name

Durability = Literal["always", "batch", "os"]
"""When records reach the device: with each append, within 50 ms, or when the system likes."""

BATCH_S: Final = 0.050
BATCH_RECORDS: Final = 256

_NEW = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_CLOSED = -1


class LogWriter:
    """Appends records to the segments of one log directory. Safe to call from any thread.

    A forked child must not write: its `append` raises LogError. Only one writer may exist for a
    directory; the caller holds the lock (`memwatch.host.lock`) that sees to it.
    """

    def __init__(  # noqa: PLR0913 -- options by name, all with a default
        self,
        wal_dir: Path,
        *,
        durability: Durability = "batch",
        clock: Clock | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        files: Files = SYSTEM_FILES,
        before_sync: Callable[[], None] = lambda: None,
        after_lsn: int = 0,
    ) -> None:
        """`after_lsn`: numbers up to it were given to records that the log may have lost since."""
        self._dir = wal_dir
        self._before_sync = before_sync
        """Brings to the device what the records point at; raises OSError."""
        self._always = durability == "always"
        self._segment_bytes = segment_bytes
        self._files = files
        self._write = files.write
        clock = clock or SystemClock()
        self._wall_us, self._boot_us = clock.wall_us, clock.boot_us
        # `_sync_lock` is taken before `_lock`, never after it: appending goes on during an fsync.
        self._sync_lock = threading.Lock()
        self._lock = threading.Lock()
        self._ready = False
        self._fd = _CLOSED
        self._segment = self._offset = self._sealed_bytes = 0
        self._retired: list[int] = []
        self._asked_lsn = self._durable_lsn = 0
        """Newest number that a sync was asked for; not below `durable_lsn`."""
        self._past_is_safe = False  # what earlier starts wrote may not be on the device
        self._failure = ""
        self._unreported = False
        self._closed = ""
        # Queues in place of events: their waiting is done in C, off the appender's way.
        self._first_pending: SimpleQueue[None] = SimpleQueue()
        self._batch_full: SimpleQueue[None] = SimpleQueue()
        try:
            wal_dir.mkdir(parents=True, exist_ok=True)
            self._last_lsn = self._asked_lsn = max(last_lsn(wal_dir), after_lsn)
        except OSError as error:
            raise LogError(f"cannot open the log in {wal_dir}: {error.strerror}") from error
        self._thread: threading.Thread | None = None
        self._begin_segment()
        _writers.add(self)
        if durability == "batch":
            self._thread = threading.Thread(
                target=self._sync_batches, name="memwatch-log-sync", daemon=True
            )
            self._thread.start()

    @property
    def last_lsn(self) -> int:
        """Number of the newest acknowledged record; 0 before the first."""
        return self._last_lsn

    @property
    def durable_lsn(self) -> int:
        """Newest number that survives a power loss; 0 before the first sync of this start."""
        return self._durable_lsn

    @property
    def segment(self) -> int:
        """First lsn of the open segment."""
        return self._segment

    @property
    def bytes_written(self) -> int:
        """Bytes of all records that this writer appended."""
        return self._sealed_bytes + self._offset

    @property
    def failed(self) -> str:
        """Why the device refused, in one sentence; empty while all is well."""
        return self._failure

    def append(
        self, kind: str, members: dict[str, Any], receipt: Receipt = UNREAD, *, sync: bool = False
    ) -> int:
        """Append a record and return its lsn; with `sync` it is on the device when this returns.

        Raises TypeError or ValueError for a record that the format cannot hold, and LogError when
        it cannot be written. In each case nothing was logged and no number was used up, but for a
        failing sync, whose record may be in the log, as with any commit that fails.
        """
        with self._lock:
            if not self._ready:
                self._make_ready()
            lsn = self._last_lsn + 1
            line = codec.encode(lsn, self._wall_us(), self._boot_us(), kind, members)
            if self._offset + len(line) > self._segment_bytes and self._offset:
                self._next_segment()
            # An interrupt before `_ready` is True again leaves bytes that nobody was told of:
            # the next append cuts them off. None comes behind `_write`, as nothing is called there.
            self._ready = False
            try:
                written = self._write(self._fd, line)
            except OSError as error:
                raise self._refused(error.strerror) from error
            if written != len(line):
                raise self._refused("the device took only a part of a record")
            self._offset += written
            self._last_lsn = lsn
            receipt.lsn = lsn
            self._ready = True
        if sync or self._always:
            self._sync(lsn)
        elif self._thread is not None:
            pending = lsn - self._asked_lsn
            if pending == 1:
                self._first_pending.put(None)
            elif pending == BATCH_RECORDS:
                self._batch_full.put(None)
        elif self._retired:
            self._sync_behind()
        return lsn

    def sync(self) -> int:
        """Bring all records to the device; returns `durable_lsn`, raises LogError."""
        self._sync(self._last_lsn)
        return self._durable_lsn

    def roll(self) -> int:
        """Seal the open segment and begin the next; returns its first lsn."""
        with self._lock:
            self._make_ready()
            if self._offset:
                self._next_segment()
            return self._segment

    def close(self) -> None:
        """Sync and close; appending afterwards raises LogError."""
        with self._lock:
            if self._closed:
                return
            self._closed, self._ready = f"the log in {self._dir} is closed", False
        self._first_pending.put(None)
        self._batch_full.put(None)
        if self._thread is not None:
            self._thread.join()
        try:
            self._sync(self._last_lsn)
        finally:
            with self._sync_lock, self._lock:
                self._retire()
                self._close_all(self._retired)

    def __enter__(self) -> LogWriter:
        """Return the writer itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the log."""
        self.close()

    # Below: called with `_lock` held, unless said otherwise.

    def _make_ready(self) -> None:
        """Repair what an earlier append left, or raise LogError."""
        if self._closed:
            raise LogError(self._closed)
        if self._unreported:
            self._unreported = False
            raise LogError(self._failure)
        if self._fd != _CLOSED:
            self._cut_back()
        if self._fd == _CLOSED:
            self._begin_segment()

    def _refused(self, why: str | None) -> LogError:
        self._cut_back()
        return LogError(
            f"cannot append to the log in {self._dir}: {why}; records acknowledged before are safe"
        )

    def _cut_back(self) -> None:
        """Remove our own unacknowledged bytes; where that fails, leave the segment for good."""
        try:
            self._files.truncate(self._fd, self._offset)
            self._ready = True
        except OSError:
            self._retire()

    def _retire(self) -> None:
        """Take leave of the open segment; the next sync closes it (an fsync may be using it)."""
        if self._fd != _CLOSED:
            self._retired.append(self._fd)
            self._sealed_bytes += self._offset
            self._fd, self._offset, self._ready = _CLOSED, 0, False

    def _next_segment(self) -> None:
        self._retire()
        self._begin_segment()

    def _begin_segment(self) -> None:
        try:
            fd = self._create()
            try:
                if self._failure:
                    self._files.fsync(fd)
                self._files.sync_directory(self._dir)
            except OSError:
                self._files.close(fd)
                raise
        except OSError as error:
            why = f"cannot begin a segment in {self._dir}: {error.strerror}"
            raise LogError(why + "; records acknowledged before are safe") from error
        self._fd, self._failure, self._ready = fd, "", True
        self._wake_thread()

    def _create(self) -> int:
        """Open a new file for the next record; a name that holds remains costs a number.

        A segment without one good record has the name that we want. If it is clear it serves; if
        not, its remains stay, and the reader counts a number for the broken line.
        """
        while True:
            lsn = self._last_lsn + 1
            path = self._dir / segment_name(lsn)
            fd = self._files.open(path, _NEW, 0o644)
            if os.fstat(fd).st_size == 0 or cleared(path, fd, self._files):
                self._segment = lsn
                return fd
            self._files.close(fd)
            self._last_lsn = lsn

    def _close_all(self, fds: list[int]) -> None:
        while fds:
            self._files.close(fds.pop())

    # Below: called without a lock.

    def _sync(self, lsn: int) -> None:
        with self._sync_lock:
            if self._durable_lsn >= lsn and not self._retired:
                return
            # Not under `_lock`, which would stall the appender. So the order matters: a segment
            # that is sealed after `fd` was read is `fd`; one sealed before is among the retired.
            upto, fd, retired = self._last_lsn, self._fd, []
            if self._retired:
                with self._lock:
                    retired, self._retired = self._retired, []
            self._asked_lsn = upto
            if self._last_lsn != upto:  # that one did not count as the first pending
                self._wake_thread()
            try:
                self._before_sync()
                if not self._past_is_safe:
                    bring_to_device(self._dir, self._files)
                    self._past_is_safe = True
                for other in retired:
                    self._files.sync_data(other)
                if fd != _CLOSED:
                    self._files.sync_data(fd)
                    if os.fstat(fd).st_nlink == 0:
                        raise FileNotFoundError(0, "its file was removed")
                self._durable_lsn = upto
            except OSError as error:
                raise self._lost_device(error) from error
            finally:
                self._close_all(retired)

    def _lost_device(self, error: OSError) -> LogError:
        """After a failing fsync the cache cannot be trusted: only a new segment helps."""
        with self._lock:
            self._failure = (
                f"the log in {self._dir} did not reach the device: {error.strerror}; "
                f"records after {self._durable_lsn} may not survive a power loss"
            )
            self._retire()
            return LogError(self._failure)

    def _disown(self) -> None:
        """In a forked child: write never again, and wait for no lock of the parent's threads."""
        self._lock, self._sync_lock = threading.Lock(), threading.Lock()
        self._closed = "this log belongs to the parent process; a forked child may not write"
        self._fd, self._ready, self._retired = _CLOSED, False, []

    def _wake_thread(self) -> None:
        if self._thread is not None:
            self._first_pending.put(None)

    def _sync_batches(self) -> None:
        while not self._closed:
            self._first_pending.get()
            with suppress(Empty):
                self._batch_full.get(timeout=BATCH_S)
            self._sync_behind()

    def _sync_behind(self) -> None:
        """Sync where nobody waits for it: the next append raises what went wrong."""
        try:
            self._sync(self._last_lsn)
        except LogError:
            with self._lock:
                self._unreported, self._ready = True, False


_writers: weakref.WeakSet[LogWriter] = weakref.WeakSet()


def _disown_all() -> None:
    for writer in list(_writers):
        writer._disown()


os.register_at_fork(after_in_child=_disown_all)
