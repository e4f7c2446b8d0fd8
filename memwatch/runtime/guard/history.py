"""The stored history as the guard uses it: what fails there never stops the live view."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shutil import disk_usage

from memwatch.domain.clock import Clock
from memwatch.domain.errors import StoreError
from memwatch.domain.sample import GAP, Column
from memwatch.domain.snapshot import Event
from memwatch.runtime.views.event_book import EVENTS
from memwatch.runtime.views.ring import SPAN_US, Ring
from memwatch.store.historian import Bounds, Historian
from memwatch.store.reader import CoarsePoint, Reader, StoredSample

_DAY_US = 26 * 3600 * 1_000_000
_FINE_S = 2
_COARSE_S = 60
_RESERVE_SHARE = 0.02


Points = list[tuple[int, float]]
"""Wall times and values, in order."""


class History:
    """Historian and reader of one run."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self.historian = Historian(path, clock, bounds=_bounds(path.parent))
        self._reader = Reader(self.historian.database)
        self.older_experiments: dict[str, int] = {}
        """Experiments by status that only the history knows: their segments were dropped."""
        self.limit_bytes: int | None = None
        """The limit that bound when memory was recorded last."""
        self.known_until_us: int | None = None
        """Time of the newest sample of the agent that is stored."""

    def start(self) -> None:
        """Open the history and begin to write."""
        self.historian.start()

    def close(self) -> None:
        """Write what is pending and close."""
        self.historian.close()

    def prefill(self, ring: Ring) -> None:
        """Give a fresh ring the hours before the newest sample.

        Coarse for growth over a day, fine for charts. A run that is over ends in the past.
        """
        for resource, (coarse, fine) in self._courses().items():
            ring.prefill(resource, coarse, fine=False)
            ring.prefill(resource, fine, fine=True)

    def refill_growth(self, ring: Ring) -> None:
        """Let growth see what older segments held that are in the history only now."""
        for resource, (coarse, fine) in self._courses().items():
            ring.refill_growth(resource, [*coarse, *fine])

    def prefill_events(self, ring: Ring) -> None:
        """Give a ring that holds the present segment the events before it."""
        ring.prefill_events(self.events(0, self._clock.wall_us() + 1, EVENTS))

    def count_older(self, first_lsn: int) -> None:
        """Count the experiments that ended in segments below the first one on disk."""
        try:
            self.older_experiments = self._reader.experiments_before(first_lsn)
        except StoreError:
            return

    def series(
        self, resource: str, t0_us: int, t1_us: int, columns: int, gap_us: int
    ) -> list[Column]:
        """Return the stored course of a resource; all gaps when the history is out of reach."""
        try:
            return self._reader.series(resource, t0_us, t1_us, columns, gap_us)
        except StoreError:
            return [GAP] * columns

    def events(
        self, t0_us: int, t1_us: int, limit: int, kinds: tuple[str, ...] = ()
    ) -> list[Event]:
        """Return stored events; none when the history is out of reach."""
        try:
            return self._reader.events(t0_us, t1_us, limit, kinds)
        except StoreError:
            return []

    def _courses(self) -> dict[str, tuple[Points, Points]]:
        """Return the last day of each resource: coarse, then fine for the span of the ring."""
        self.historian.flush()
        try:
            until_us = self._until_us(self._reader.latest_samples())
            fine_us = until_us - SPAN_US
            day = self._reader.coarse(until_us - _DAY_US, _COARSE_S)
            hours = self._reader.coarse(fine_us, _FINE_S)
        except StoreError:
            return {}  # the status says already that the history is out of reach
        return {
            resource: (_points(day.get(resource, ()), fine_us), _points(hours.get(resource, ())))
            for resource in day.keys() | hours.keys()
        }

    def _until_us(self, latest: dict[str, StoredSample]) -> int:
        memory = latest.get("memory")
        self.limit_bytes = memory.limit if memory else None
        said = (one.t_us for name, one in latest.items() if name.startswith("tier:"))
        self.known_until_us = max(said, default=None)
        now_us = self._clock.wall_us()
        return min(max((one.t_us for one in latest.values()), default=now_us), now_us)


def _bounds(folder: Path) -> Bounds:
    """Return how much room stays free: the usual reserve, but no large part of a small disk."""
    usual = Bounds()
    try:
        part = int(disk_usage(folder).total * _RESERVE_SHARE)
    except OSError:
        return usual
    return Bounds(reserve_bytes=min(usual.reserve_bytes, part))


def _points(course: Iterable[CoarsePoint], before_us: int | None = None) -> Points:
    return [(t_us, last) for t_us, _, _, last in course if before_us is None or t_us < before_us]
