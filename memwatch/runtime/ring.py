"""What is known now and for the last two hours, in memory: the source of engine and live charts.

Everything is kept on one axis that does not run backwards: CLOCK_BOOTTIME of this boot. Wall
times are translated with the present offset of the two clocks, so that a step of the wall clock
moves labels and never makes a rate. Records of an earlier boot are placed by their wall time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable

from msgspec.structs import replace

from memwatch.analytics.growth import Growth, Slope
from memwatch.analytics.narrate import event_of, event_of_fault
from memwatch.analytics.run_state import RunState, tier_samples
from memwatch.analytics.series import TimeSeries
from memwatch.config.schema import Profile
from memwatch.domain.clock import Clock
from memwatch.domain.record import Batch, Record
from memwatch.domain.sample import GAP, Column, DiskSample, TierSample, TreeSample
from memwatch.domain.snapshot import Event

SPAN_US = 2 * 3600 * 1_000_000
EVENTS = 512
_TIER_GAP_US = 75_000_000  # the agent samples at least each minute


class Ring:
    """Folds batches and samples; answers what a snapshot and a chart ask. Thread-safe."""

    def __init__(self, profile: Profile, clock: Clock, boot_id: str) -> None:
        self.lock = threading.RLock()
        self.state = RunState()
        self.tree: TreeSample | None = None
        self.disk: DiskSample | None = None
        self.tail_bytes = 0
        self.changed = 0
        """Counts what came in: a snapshot is stale when it moved."""
        self._tail_from_lsn = 0
        self._profile = profile
        self._clock = clock
        self._boot_id = boot_id
        self._offset_us = clock.wall_us() - clock.boot_us()
        self._series: dict[str, TimeSeries] = {}
        self._growth: dict[str, Growth] = {}
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._event_seq = 0
        self._fed_us = 0

    # -- taking in ---------------------------------------------------------------------------

    def take(self, batch: Batch) -> None:
        """Fold a batch of the agent's log."""
        with self.lock:
            self.state.fold(batch.records)
            self.state.fold_faults(batch.faults)
            self._count_tail(batch)
            for record in batch.records:
                if record.kind == "sample" and batch.live:
                    self._take_tiers(record)
                self._tell(event_of(record) if batch.live else None)
            for fault in batch.faults:
                self._tell(event_of_fault(fault, self._clock.wall_us()))
            self.changed += 1

    def take_tree(self, sample: TreeSample) -> int | None:
        """Take a look at the process tree; returns unaccounted bytes, None without tiers."""
        with self.lock:
            self.tree = sample
            self.changed += 1
            if not sample.processes:
                return None
            self._add("memory", sample.m_us, sample.used_bytes)
            self._add("processes", sample.m_us, sample.processes)
            unaccounted = self._unaccounted(sample)
            if unaccounted is not None:
                self._add("unaccounted", sample.m_us, unaccounted)
            return unaccounted

    def take_disk(self, sample: DiskSample) -> None:
        """Take a look at the file system."""
        with self.lock:
            self.disk = sample
            self._add("disk_free", self._clock.boot_us(), sample.free_bytes)
            self.changed += 1

    def take_guard(self, record: Record) -> None:
        """Take a record that the guard wrote itself: its events are shown at once."""
        with self.lock:
            self._tell(event_of(record))
            self.changed += 1

    def prefill(self, resource: str, points: Iterable[tuple[int, float]], fine: bool) -> None:
        """Take stored history, (wall time, value) in order: growth always, charts when `fine`."""
        with self.lock:
            growth = self._growth.setdefault(resource, self._new_growth())
            for t_us, value in points:
                at_us = t_us - self._offset_us
                growth.add(at_us, value)
                self._fed_us = max(self._fed_us, at_us)
                if fine:
                    self._add(resource, at_us, value)

    def prefill_events(self, events: Iterable[Event]) -> None:
        """Take stored events of the guard's own log, in order."""
        with self.lock:
            for event in events:
                self._tell(event)

    def feed_growth(self) -> None:
        """Let the growth windows see the value that each resource holds now (each tick)."""
        with self.lock:
            self._offset_us = self._clock.wall_us() - self._clock.boot_us()
            now_us = self._clock.boot_us()
            if now_us <= self._fed_us or self.tree is None or not self.tree.alive:
                return
            self._fed_us = now_us
            for resource, series in self._series.items():
                value = series.value_at(now_us, self.max_gap_us(resource))
                if value is not None:
                    self._growth.setdefault(resource, self._new_growth()).add(now_us, value)

    # -- asking ------------------------------------------------------------------------------

    def slopes(self, resource: str) -> list[Slope | None]:
        """Growth of a resource per window."""
        growth = self._growth.get(resource)
        return growth.slopes() if growth else [None] * len(self._profile.windows.growth_s)

    def first_us(self, resource: str) -> int | None:
        """Return the wall time of the oldest sample held of a resource."""
        with self.lock:
            series = self._series.get(resource)
            first = series.first if series else None
            return None if first is None else self.to_wall(first)

    def columns(self, resource: str, t0_us: int, t1_us: int, count: int) -> list[Column]:
        """Return the course of a resource between two wall times, as far as it is held here."""
        with self.lock:
            series = self._series.get(resource)
            if series is None:
                return [GAP] * count
            start, end = self.to_axis(t0_us), self.to_axis(t1_us)
            return series.columns(start, end, count, self.max_gap_us(resource))

    def series_of(self, resource: str) -> TimeSeries | None:
        """Return the samples of a resource on the boot axis."""
        return self._series.get(resource)

    def to_axis(self, t_us: int) -> int:
        """Translate a wall time to the boot axis."""
        return t_us - self._offset_us

    def to_wall(self, at_us: int) -> int:
        """Translate the boot axis to wall time."""
        return at_us + self._offset_us

    @property
    def event_seq(self) -> int:
        """Sequence number of the newest event."""
        return self._event_seq

    def events(self, after: int, limit: int) -> list[Event]:
        """Return the newest events with a number above `after` (all, when it is ahead of us)."""
        with self.lock:
            since = after if after <= self._event_seq else 0
            return [event for event in self._events if event.seq > since][-limit:]

    def first_event_us(self) -> int | None:
        """Return the time of the oldest event held."""
        with self.lock:
            return min((event.t_us for event in self._events), default=None)

    # -- inside ------------------------------------------------------------------------------

    def _new_growth(self) -> Growth:
        return Growth(self._profile.windows.growth_s)

    def _add(self, resource: str, at_us: int, value: float) -> None:
        series = self._series.get(resource)
        if series is None:
            series = self._series[resource] = TimeSeries(SPAN_US)
        series.add(at_us, value)

    def _take_tiers(self, record: Record) -> None:
        tiers = record.members.get("tiers")
        if not isinstance(tiers, dict):
            return
        at_us = self._axis_of(record)
        for name, sample in tier_samples(tiers).items():
            if sample.bytes is not None:
                self._add(f"tier:{name}", at_us, sample.bytes)
            if sample.entries is not None:
                self._add(f"entries:{name}", at_us, sample.entries)

    def _axis_of(self, record: Record) -> int:
        start = self.state.start
        same_boot = start is None or start.boot_id in ("", self._boot_id)
        return record.m_us if same_boot else record.t_us - self._offset_us

    def _unaccounted(self, sample: TreeSample) -> int | None:
        tiers: dict[str, TierSample] = self.state.tiers
        if not tiers or not sample.alive:
            return None
        return sample.used_bytes - sum(tier.bytes or 0 for tier in tiers.values())

    def _count_tail(self, batch: Batch) -> None:
        """Keep count of log bytes behind the newest committed checkpoint, by share of records."""
        if not batch.records:
            return
        newest = newest_commit_lsn(self.state)
        if newest > self._tail_from_lsn:
            self._tail_from_lsn, self.tail_bytes = newest, 0
        last = batch.records[-1].lsn
        behind = min(last - newest, len(batch.records))
        if behind > 0:
            size = max(batch.end.offset - batch.start.offset, 0)
            self.tail_bytes += size * behind // len(batch.records)

    def _tell(self, event: Event | None) -> None:
        if event is not None:
            self._event_seq += 1
            self._events.append(replace(event, seq=self._event_seq))

    def max_gap_us(self, resource: str) -> int:
        """Return the longest time between two samples that is no gap in the recording."""
        if resource.startswith(("tier:", "entries:")):
            return _TIER_GAP_US
        probe = self._profile.probe
        period_s = probe.disk_s if resource == "disk_free" else probe.period_s
        return round(max(3.5 * period_s, 3.0) * 1e6)


def newest_commit_lsn(state: RunState) -> int:
    """Return the lsn of the newest committed checkpoint; 0 when there is none."""
    return max(
        (state.checkpoint_lsn[c.id] for c in state.checkpoints.values() if c.state == "committed"),
        default=0,
    )
