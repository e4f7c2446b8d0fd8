"""The guard's own log into the history: read again and again by whichever thread takes in."""

from __future__ import annotations

import time
from pathlib import Path

from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.guard.history_feed import HistoryFeed
from memwatch.store.historian import Historian

_EVERY_S = 2.0


class OwnLog:
    """Follows `guard.wal`. Used by one thread only."""

    def __init__(self, wal_dir: Path, historian: Historian) -> None:
        self._wal_dir = wal_dir
        self._historian = historian
        self._tailer: LogTailer | None = None
        self._feed = HistoryFeed(historian, "guard", wal_dir)
        self._due = 0.0

    def read(self) -> None:
        """Bring the log into the history, from where the history stands."""
        if self._tailer is None:
            positions = self._historian.positions("guard")
            self._tailer = LogTailer(self._wal_dir, "guard", positions)
        tailer = self._tailer
        while True:
            for batch in tailer.poll():
                self._feed.offer(batch)
            if tailer.more:
                continue
            older = tailer.backfill()
            if older is None:
                return
            self._feed.offer(older)

    def keep_up(self) -> None:
        """Read when it is due."""
        now = time.monotonic()
        if now >= self._due:
            self._due = now + _EVERY_S
            self.read()
            self._feed.catch_up()
