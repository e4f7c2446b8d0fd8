"""The thread that writes the history: both logs, with the positions up to which they are in it.

Rows and positions are committed together, and reading goes on at the positions that were
committed: a crash at any instant, a full disk, a file that vanished lose and repeat nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path
from shutil import disk_usage
from typing import NamedTuple

import msgspec
from msgspec import Struct

from memwatch.domain.clock import Clock
from memwatch.domain.errors import StoreError
from memwatch.domain.record import Batch, LogName, Position
from memwatch.domain.units import bytes_text
from memwatch.store.database import Database
from memwatch.store.intake import LOGS, HandedOver, Intake, Reached, Segment
from memwatch.store.rows import RowFold, Tools

_DEADLINE_S = 30.0
_CLOSE_S = 30.0


class Bounds(Struct, frozen=True, kw_only=True):
    """What the historian may use."""

    reserve_bytes: int = 1_000_000_000
    """Disk that stays free: nothing is recorded below it."""
    pending_rows: int = 20_000
    """Rows held in memory; beyond, batches are refused until these are written."""
    checkpoint_s: float = 180.0
    """DuckDB's own log of changes is folded into its file this often."""


class _Status(NamedTuple):
    error: str | None = None
    since_us: int | None = None


class Historian:
    """Writes batches into `history.duckdb`, one transaction each period."""

    def __init__(
        self, path: Path, clock: Clock, period_s: float = 5.0, bounds: Bounds | None = None
    ) -> None:
        self.database = Database(path, clock)
        self._clock = clock
        self._period_s = period_s
        self._bounds = bounds or Bounds()
        self._lock = threading.Lock()  # over the intake; never held for input or output
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memwatch-historian", daemon=True)
        self._status = _Status("not started", clock.wall_us())
        self._intake = Intake({}, RowFold(), LOGS)
        self._seq = 0
        self._checkpoint_due_us = 0
        self.paused = ""
        """Why the file is closed for a while, by our own decision."""

    # -- for the thread that reads logs --------------------------------------------------------

    @property
    def recording(self) -> bool:
        """Batches are taken; False from a failure until writing works again."""
        return self._status.error is None

    @property
    def error(self) -> str | None:
        """Why nothing is recorded, in one sentence."""
        return self._status.error

    @property
    def since_us(self) -> int | None:
        """Wall time since which nothing is recorded."""
        return self._status.since_us

    def submit(self, batch: Batch) -> bool:
        """Take a batch; never waits for the disk.

        False means that neither this batch nor a later one of its log is taken until `positions`
        was asked, and reading goes on from there: after a failure, when too much waits, and in
        the beginning when the history holds a part of this log. What is known already is taken
        as nothing.
        """
        with self._lock:
            intake = self._intake
            if not self.recording:
                return False
            if intake.count >= self._bounds.pending_rows:
                taken = intake.refuse(batch.log)
            else:
                taken = intake.take(batch, self._clock.wall_us())
            urgent = intake.count >= self._bounds.pending_rows // 4
        if urgent:
            self._wake.set()
        return taken

    def positions(self, log: LogName) -> dict[int, Position]:
        """Return, by segment, where the next batch of a log must begin; absent means its start.

        Nothing is known while nothing is recorded.
        """
        with self._lock:
            return self._intake.positions(log)

    # -- life cycle ------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the history and begin to write; a failure is told by `error` and tried again."""
        with self._writing:
            self._recover(())
        self._thread.start()

    def flush(self) -> None:
        """Write now what was taken; returns when it is committed, or `error` says why not."""
        with self._writing:
            self._beat()

    def pause(self, why: str) -> None:
        """Write what was taken and close the file, until `resume`: it takes memory."""
        with self._writing:
            if self.recording:
                self._beat()
            self.paused = why
            self.database.close()
            self._fail(why)

    def resume(self) -> None:
        """Open the file again; what came meanwhile is read from the logs."""
        with self._writing:
            self.paused = ""
            self._recover(LOGS)

    def close(self) -> None:
        """Write what was taken, end the thread and close the file."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_S)
        with self._writing:
            if self.recording:
                self._beat()
            self.database.close()
            self._fail("the history is closed")

    # -- the writer --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._wake.wait(self._period_s)
                self._wake.clear()
                if not self._stop.is_set():
                    self.flush()
        finally:
            if not self._stop.is_set():  # a defect of ours: said, not hidden
                self._fail("the historian ended unexpectedly")

    def _beat(self) -> None:
        if self.paused:
            return
        if self.database.damaged:
            self._fail("the history is damaged")
        if not self.recording:
            self._recover(LOGS)
            return
        try:
            self.database.verify()
            self._refuse_full_disk()
            with self._lock:
                handed = self._intake.hand_over()
            if handed is not None:
                self._write(handed)
            if self._clock.boot_us() >= self._checkpoint_due_us:
                self._checkpoint()
        except StoreError as error:
            self._fail(str(error))

    def _write(self, handed: HandedOver) -> None:
        self._seq += 1
        positions = []
        for (log, segment), (place, tools) in handed.reached.items():
            open_tools = msgspec.json.encode(tools).decode()
            positions.append((self._seq, log, segment, place.offset, place.next_lsn, open_tools))
        self.database.write(handed.pending.tables() | {"position": positions}, handed.void)

    def _checkpoint(self) -> None:
        self._checkpoint_due_us = self._clock.boot_us() + round(self._bounds.checkpoint_s * 1e6)
        self.database.checkpoint()

    def _refuse_full_disk(self) -> None:
        try:
            free = disk_usage(self.database.path.parent).free
        except OSError as error:
            raise StoreError(f"the folder of the history is gone: {error.strerror}") from None
        if free < self._bounds.reserve_bytes:
            reserve = bytes_text(self._bounds.reserve_bytes)
            raise StoreError(
                f"the disk has {bytes_text(free)} left, {reserve} stay free: make room"
            )

    # -- failure and recovery ----------------------------------------------------------------------

    def _fail(self, why: str) -> None:
        """Stop taking batches and drop those that wait: they are read from the logs again."""
        with self._lock:
            since_us = self._status.since_us or self._clock.wall_us()
            self._status = _Status(why, since_us)
            self._intake = Intake({}, RowFold(), LOGS)

    def _recover(self, behind: tuple[LogName, ...]) -> None:
        """Open the file if need be and see whether it can be written."""
        try:
            if self.database.damaged or not self.database.is_open:
                self.database.open()
            self._refuse_full_disk()
            self._checkpoint()
            intake = self._load(behind)
        except StoreError as error:
            self._fail(str(error))
            return
        with self._lock:
            self._intake = intake
            self._status = _Status()

    def _load(self, behind: tuple[LogName, ...]) -> Intake:
        rows = self.database.rows
        ((self._seq,),) = rows("position_seq", _DEADLINE_S)
        stored: dict[Segment, Reached] = {}
        for log, segment, offset, next_lsn, open_tools in rows("positions", _DEADLINE_S):
            tools = msgspec.json.decode(open_tools, type=Tools)
            stored[log, segment] = Reached(Position(segment, offset, next_lsn), tools)
        faults = rows("fault_texts", _DEADLINE_S, count=RowFold.MAX_FAULTS)
        resources = (name for (name,) in rows("resource_names", _DEADLINE_S))
        fold = RowFold(resources, ((log, text) for log, text in faults))
        return Intake(stored, fold, {*behind, *(log for log, _ in stored)})
