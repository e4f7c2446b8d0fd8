"""One log into the history: straight from the live reader, or by catching up after a failure.

The history takes batches only in one piece: when it refused some (a full disk, a slow query) a
reader of its own fills in from the stored positions, until it has reached the live end.
"""

from __future__ import annotations

from pathlib import Path

from memwatch.domain.record import Batch, LogName
from memwatch.ingest.tailer import LogTailer
from memwatch.store.historian import Historian


class HistoryFeed:
    """Feeds one log. Used by one thread only."""

    def __init__(self, historian: Historian, log: LogName, wal_dir: Path) -> None:
        self._historian = historian
        self._log: LogName = log
        self._wal_dir = wal_dir
        self._behind = False
        self._reader: LogTailer | None = None

    def offer(self, batch: Batch) -> None:
        """Hand over what the live reader gave; never blocks."""
        if not self._behind and not self._historian.submit(batch):
            self._behind = True

    def catch_up(self) -> bool:
        """Read a piece of what was refused; True while there is more to do right now."""
        if not self._behind or not self._historian.recording:
            return False
        if self._reader is None:
            positions = self._historian.positions(self._log)
            self._reader = LogTailer(self._wal_dir, self._log, positions)
        batches = self._reader.poll()
        if not batches and not self._reader.more:
            older = self._reader.backfill()
            if older is None:
                self._behind = False
            else:
                batches = [older]
        if not all(self._historian.submit(batch) for batch in batches):
            self._drop_reader()
            return False
        if not self._behind:
            self._drop_reader()
        return self._behind

    def _drop_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
