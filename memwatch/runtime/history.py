"""The stored history as the guard uses it: what fails there never stops the live view."""

from __future__ import annotations

from pathlib import Path

from memwatch.domain.clock import Clock
from memwatch.domain.errors import StoreError
from memwatch.domain.sample import GAP, Column
from memwatch.domain.snapshot import Event
from memwatch.runtime.ring import SPAN_US, Ring
from memwatch.store.historian import Historian
from memwatch.store.reader import Reader

_DAY_US = 26 * 3600 * 1_000_000
_FINE_S = 2
_COARSE_S = 60
_EVENTS = 200


class History:
    """Historian and reader of one run."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self.historian = Historian(path, clock)
        self._reader = Reader(self.historian.database)
        self.older_experiments: dict[str, int] = {}
        """Experiments by status that only the history knows: their segments were dropped."""

    def start(self) -> None:
        """Open the history and begin to write."""
        self.historian.start()

    def close(self) -> None:
        """Write what is pending and close."""
        self.historian.close()

    def prefill(self, ring: Ring) -> None:
        """Give a fresh ring the last hours: coarse for growth over a day, fine for charts."""
        self.historian.flush()
        now_us = self._clock.wall_us()
        try:
            for span_us, bucket_s, fine in ((_DAY_US, _COARSE_S, False), (SPAN_US, _FINE_S, True)):
                for resource, points in self._reader.coarse(now_us - span_us, bucket_s).items():
                    ring.prefill(resource, ((t_us, last) for t_us, _, _, last in points), fine=fine)
            events = self._reader.events(now_us - SPAN_US, now_us, _EVENTS)
            ring.prefill_events(event for event in events if event.origin == "guard")
        except StoreError:
            return  # the status says already that the history is out of reach

    def series(
        self, resource: str, t0_us: int, t1_us: int, columns: int, gap_us: int
    ) -> list[Column]:
        """Return the stored course of a resource; all gaps when the history is out of reach."""
        try:
            return self._reader.series(resource, t0_us, t1_us, columns, gap_us)
        except StoreError:
            return [GAP] * columns

    def events(self, t0_us: int, t1_us: int, limit: int) -> list[Event]:
        """Return stored events; none when the history is out of reach."""
        try:
            return self._reader.events(t0_us, t1_us, limit)
        except StoreError:
            return []
