"""The thread that reads logs: file events are a hint, a sweep each second is the truth."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from memwatch.domain.record import Batch
from memwatch.host.process import Identity
from memwatch.ingest.tailer import LogTailer
from memwatch.ingest.watcher import Watcher
from memwatch.runtime.guard.history_feed import HistoryFeed
from memwatch.runtime.guard.own_log import OwnLog
from memwatch.runtime.lasting import lasting
from memwatch.runtime.views.ring import Ring
from memwatch.store.historian import Historian
from memwatch.wal.segment import WAL_DIR, segments

_SWEEP_S = 1.0
_MISSED_S = 2.0
_OLDER_S = 0.05
"""How long older segments are read before the live end is looked at again: a look lists the
directory, and in one of many small segments that takes longer than to read one of them."""


class IngestLoop:
    """Reads the agent's log into ring and history, and the guard's own log into the history."""

    def __init__(
        self,
        run_dir: Path,
        own: OwnLog,
        ring: Ring,
        historian: Historian,
        on_news: Callable[[], None],
    ) -> None:
        self._wal_dir = wal_dir = run_dir / WAL_DIR
        self._ring = ring
        self._on_news = on_news
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._tailer = LogTailer(wal_dir, "agent")
        self._feed = HistoryFeed(historian, "agent", wal_dir)
        self._historian = historian
        self._own = own
        ack_dir = run_dir / "control" / "ack"
        self.watcher = Watcher([run_dir, wal_dir, ack_dir], self._wake)
        self._thread = threading.Thread(target=self._run, name="memwatch-ingest", daemon=True)
        self._older_read = False
        self._unfolded: deque[Batch] = deque()
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why this loop failed; it goes on."""
        self.on_caught_up: Callable[[], None] = lambda: None
        """Told once when older segments were read to their end."""
        self.on_writer: Callable[[Identity], None] = lambda _: None
        """Never told: run.json and its lock name the agent's process."""
        self.on_batch: Callable[[Batch], None] = lambda _: None
        """Told each batch of the agent's log, old ones as well."""

    @property
    def position(self) -> str:
        """Where reading stands, in words."""
        place = self._tailer.position
        return f"segment {place.segment} offset {place.offset}" if place else "no segment yet"

    @property
    def backfill_share(self) -> float | None:
        """Share of older segments that is read; None when all are."""
        return self._tailer.backfill_share

    @property
    def error(self) -> str | None:
        """What the system refused at the last read."""
        return self._tailer.error

    @property
    def first_lsn(self) -> int:
        """First number that is on disk now; 1 when none is."""
        try:
            with os.scandir(self._wal_dir) as entries:
                names = [entry.name for entry in entries]
        except OSError:
            return 1
        return min(segments(names), default=1)

    def open(self) -> None:
        """Begin to read where nothing was read yet; called once, with a history that is open.

        All that is on disk is read anew. Of what is gone the history says what was read of it:
        only the rest is a loss.
        """
        first = self.first_lsn
        read = self._historian.positions("agent").items()
        gone = {segment: place for segment, place in read if segment < first}
        self._tailer.close()
        self._tailer = LogTailer(self._wal_dir, "agent", gone)

    def read_present(self) -> None:
        """Read the newest segment to its end: called once before the first snapshot."""
        while self._read_live():
            pass

    def read_missed(self, known_until_us: int) -> None:
        """Read older segments that were written while no guard was there, newest first.

        Called once before the first snapshot; what takes too long is read later, as the past.
        """
        until = time.monotonic() + _MISSED_S
        while time.monotonic() < until:
            batch = self._tailer.backfill()
            if batch is None:
                return
            self._take_older(batch, news=True)
            if batch.records and batch.records[0].t_us <= known_until_us:
                return

    def read_own_log(self) -> None:
        """Bring the guard's own log into the history, from where the history stands."""
        self._own.read()

    def start(self) -> None:
        """Begin to follow."""
        self.watcher.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop following and read what is there one last time."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self.watcher.stop()
        self.read_present()
        self.read_own_log()

    def _run(self) -> None:
        lasting("reading the log", self._follow, self._stop, self.on_failure)

    def _follow(self) -> None:
        while not self._stop.is_set():
            if not self._pass():
                self._wake.wait(_SWEEP_S)
                self._wake.clear()

    def _pass(self) -> bool:
        busy = self._read_live() or self._read_older()
        busy |= self._feed.catch_up()
        if self._older_read and not busy and self.backfill_share is None:
            self._older_read = False
            self.on_caught_up()
        self._own.keep_up()
        return busy

    def _read_live(self) -> bool:
        read = self._tailer.poll()
        self._unfolded += read
        while self._unfolded:  # one that cannot be folded costs those behind it nothing
            batch = self._unfolded.popleft()
            self._feed.offer(batch)
            self._ring.take(batch)
            self.on_batch(batch)
        if read:
            self._on_news()
        return self._tailer.more

    def _read_older(self) -> bool:
        until = time.monotonic() + _OLDER_S
        while (batch := self._tailer.backfill()) is not None:
            self._take_older(batch)
            if time.monotonic() > until:
                break
        return batch is not None

    def _take_older(self, batch: Batch, *, news: bool = False) -> None:
        self._feed.offer(batch)
        self._ring.take(batch, news=news)
        self.on_batch(batch)
        self._older_read = True
