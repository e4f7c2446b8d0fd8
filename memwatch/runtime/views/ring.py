"""What is known now and for the last two hours, in memory: the source of engine and live charts.

Everything is kept on one axis that does not run backwards: CLOCK_BOOTTIME of this boot. Records
of this boot state it; wall times (labels, stored history, records of another boot) are translated
with the present offset of the two clocks. So a step of the wall clock moves labels and never
makes a rate or an age.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from msgspec.structs import replace

from memwatch.analytics.growth import Growth, Slope
from memwatch.analytics.narrate import event_of
from memwatch.analytics.phases import PhaseChanges
from memwatch.analytics.run_state import RunState, tier_samples
from memwatch.analytics.series import TimeSeries
from memwatch.analytics.told import Instant
from memwatch.config.schema import Profile
from memwatch.domain.checkpoints import StoreLook
from memwatch.domain.clock import Clock
from memwatch.domain.record import Batch, Record
from memwatch.domain.sample import GAP, HELD_S, Column, DiskSample, TreeSample
from memwatch.domain.snapshot import Event
from memwatch.ingest.checkpoint_scan import OnDisk
from memwatch.runtime.views.event_book import EventBook
from memwatch.runtime.views.log_tail import LogTail, Segments

SPAN_US = 2 * 3600 * 1_000_000
_OF_DISK = ("disk_free", "run_bytes")


class Ring:
    """Folds batches and samples; answers what a snapshot and a chart ask. Thread-safe."""

    def __init__(self, profile: Profile, clock: Clock, boot_id: str) -> None:
        self.lock = threading.RLock()
        self.state = RunState()
        self.tree: TreeSample | None = None
        self.disk: DiskSample | None = None
        self.changed = 0
        """Counts what came in: a snapshot is stale when it moved."""
        self.slower = 1
        """The process tree is looked at so many times less often than the profile says."""
        self.run_boot_id = ""
        """Boot of the agent's newest start, as run.json says; its log may say it later or never."""
        self.on_disk: OnDisk | None = None
        """Which checkpoints lay on disk at the last look; None before it."""
        self.store: StoreLook | None = None
        """The last look at a checkpoint store of another program; None for a run of ours."""
        self.segments = Segments()
        self._tail = LogTail()
        self._long_tail = LogTail()
        """Behind the full checkpoint before the newest one, should that be gone."""
        self._phases = PhaseChanges()
        self._profile = profile
        self._clock = clock
        self._boot_id = boot_id
        self._offset_us = clock.wall_us() - clock.boot_us()
        self._series: dict[str, TimeSeries] = {}
        self._growth: dict[str, Growth] = {}
        self._events = EventBook()
        self._followed_since = 0

    # -- taking in ---------------------------------------------------------------------------

    def take(self, batch: Batch, *, news: bool | None = None) -> None:
        """Fold a batch of the agent's log; older segments may come after newer ones.

        Its events are told when they are news: at the live end, unless said otherwise.
        """
        with self.lock:
            self.state.fold(batch.records)
            self.state.fold_faults(batch.faults)
            self._count_tail(batch)
            told = batch.live if news is None else news
            phases = self._phases if batch.live else PhaseChanges()
            for record in batch.records:
                if record.kind == "sample":
                    self._take_tiers(record)
                elif told:
                    self._events.tell(phases.event_of(record))
                    self._events.tell(event_of(record))
            for fault in batch.faults:
                self._events.tell_fault(fault, batch.records, self._clock.wall_us())
            self.changed += 1

    def take_tree(self, sample: TreeSample) -> int | None:
        """Take a look at the process tree; returns unaccounted bytes, None without tiers."""
        with self.lock:
            if not self._follows(sample):
                self._followed_since = sample.m_us
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
            now_us = self._clock.boot_us()
            self._add("disk_free", now_us, sample.free_bytes)
            if sample.run_bytes is not None:
                self._add("run_bytes", now_us, sample.run_bytes)
            self.changed += 1

    def take_checkpoints(self, found: OnDisk) -> None:
        """Take a look at the checkpoints on disk."""
        with self.lock:
            self.on_disk = found
            self.changed += 1

    def take_store(self, look: StoreLook) -> None:
        """Take a look at a checkpoint store of another program."""
        with self.lock:
            self.store = look
            self.changed += 1

    @property
    def store_bytes(self) -> int | None:
        """What the files of another program's store hold; None for a run of ours."""
        return None if self.store is None else self.store.total_bytes

    def take_guard(self, record: Record) -> None:
        """Take a record that the guard wrote itself: its events are shown at once."""
        event = event_of(record)
        with self.lock:
            self._events.tell(replace(event, origin="guard") if event else None)
            self.changed += 1

    def touch(self) -> None:
        """Say that something else than the ring changed what a snapshot shows."""
        with self.lock:
            self.changed += 1

    def prefill(self, resource: str, points: Iterable[tuple[int, float]], *, fine: bool) -> None:
        """Take stored history, (wall time, value) in order: growth always, charts when `fine`.

        What a clock that was set back since puts into the future is left out.
        """
        with self.lock:
            growth = self._growth.setdefault(resource, self._new_growth())
            now_us = self.mind_clock()
            for t_us, value in points:
                at_us = self.to_axis(t_us)
                if at_us > now_us:
                    break
                growth.add(at_us, value)
                if fine:
                    self._add(resource, at_us, value)

    def refill_growth(self, resource: str, points: Iterable[tuple[int, float]]) -> None:
        """Begin a resource's growth anew from stored history, (wall time, value) in order."""
        growth = self._new_growth()
        for t_us, value in points:
            growth.add(self.to_axis(t_us), value)
        with self.lock:
            self._growth[resource] = growth

    def prefill_events(self, stored: Iterable[Event]) -> None:
        """Put stored events before those that were just read: once, before anyone looks.

        Between the two there may be some that come into the history only later.
        """
        with self.lock:
            self._events.prefill(stored, self._clock.wall_us())

    def feed_growth(self) -> None:
        """Let the growth windows see the value that each resource holds now (each tick)."""
        with self.lock:
            now_us = self.mind_clock()
            if self.tree is None or not self.tree.alive:
                return
            for resource, series in self._series.items():
                value = series.value_at(now_us, self.max_gap_us(resource))
                if value is not None:
                    self._growth.setdefault(resource, self._new_growth()).add(now_us, value)

    def mind_clock(self) -> int:
        """Note the present offset of the two clocks; returns the present on the axis."""
        now_us = self._clock.boot_us()
        self._offset_us = self._clock.wall_us() - now_us
        return now_us

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

    def resources(self, prefix: str) -> list[str]:
        """Return the names of what has samples and begins so, in order."""
        return sorted(name for name in self._series if name.startswith(prefix))

    def to_axis(self, t_us: int) -> int:
        """Translate a wall time to the boot axis."""
        return t_us - self._offset_us

    def to_wall(self, at_us: int) -> int:
        """Translate the boot axis to wall time."""
        return at_us + self._offset_us

    def axis_of(self, instant: Instant) -> int:
        """Return where a record's instant lies on the axis."""
        start = self.state.start
        boot_id = start.boot_id if start else self.run_boot_id
        of_newest_start = start is None or instant.lsn >= start.lsn
        if of_newest_start and boot_id in ("", self._boot_id):
            return instant.m_us
        return self.to_axis(instant.t_us)

    def tail_bytes(self, lsn: int) -> int:
        """Return the bytes of the log behind a record that a checkpoint covers."""
        newest = self.state.saved.covered_lsn
        return (self._tail if lsn >= newest else self._long_tail).behind(lsn)

    @property
    def event_seq(self) -> int:
        """Sequence number of the newest event."""
        return self._events.seq

    def events(self, after: int, limit: int, kinds: tuple[str, ...] = ()) -> list[Event]:
        """Return the newest events with a number above `after` (all, when it is ahead of us)."""
        with self.lock:
            return self._events.newest(after, limit, kinds)

    def events_since(self) -> int | None:
        """Return the wall time from which on all events are held; None while there are none.

        Faults of older segments come late and prove nothing.
        """
        with self.lock:
            return self._events.since()

    def events_between(self, t0_us: int, t1_us: int, kinds: tuple[str, ...] = ()) -> list[Event]:
        """Return the events held of [t0_us, t1_us), in order of time."""
        with self.lock:
            return self._events.between(t0_us, t1_us, kinds)

    def followed_us(self, now_at_us: int) -> int:
        """Return how long the tree of this start was measured without a gap."""
        start = self.state.start
        began = self.axis_of(start.at) if start else 0
        return now_at_us - max(self._followed_since, began) if self.tree else 0

    # -- inside ------------------------------------------------------------------------------

    def _follows(self, sample: TreeSample) -> bool:
        before = self.tree
        if before is None or not before.alive:
            return False
        return sample.m_us - before.m_us <= self.max_gap_us("memory")

    def _new_growth(self) -> Growth:
        return Growth(self._profile.windows.growth_s)

    def _add(self, resource: str, at_us: int, value: float) -> None:
        series = self._series.get(resource)
        if series is None:
            series = self._series[resource] = TimeSeries(SPAN_US)
        series.insert(at_us, value)

    def _take_tiers(self, record: Record) -> None:
        tiers = record.members.get("tiers")
        if not isinstance(tiers, dict):
            return
        at_us = self.axis_of(Instant(record.lsn, record.t_us, record.m_us))
        for name, sample in tier_samples(tiers).items():
            if sample.bytes is not None:
                self._add(f"tier:{name}", at_us, sample.bytes)
            if sample.entries is not None:
                self._add(f"entries:{name}", at_us, sample.entries)
            if sample.tokens is not None:
                self._add(f"tokens:{name}", at_us, sample.tokens)

    def _unaccounted(self, sample: TreeSample) -> int | None:
        """Return what no tier accounts for; None unless all tiers of this start are known now."""
        state = self.state
        held = [tier.bytes for tier in state.tiers.values()]
        known = [size for size in held if size is not None]
        if not sample.alive or not known or len(known) < len(held):
            return None
        age_us = sample.m_us - self.axis_of(state.tiers_at)
        return sample.used_bytes - sum(known) if age_us <= HELD_S * 1e6 else None

    def _count_tail(self, batch: Batch) -> None:
        if not batch.records:
            return
        saved = self.state.saved
        self._tail.forget(saved.covered_lsn)
        if len(saved.fulls) > 1:
            self._long_tail.forget(saved.fulls[-2].covers_lsn)
        size = max(batch.end.offset - batch.start.offset, 0)
        self.segments.add(batch.start.segment, batch.end.offset)
        for tail in (self._tail, self._long_tail):
            tail.add(batch.records[0].lsn, batch.records[-1].lsn, size)

    def max_gap_us(self, resource: str) -> int:
        """Return the longest time between two samples that is no gap in the recording."""
        if resource.startswith(("tier:", "entries:", "tokens:")):
            return round(HELD_S * 1e6)
        probe = self._profile.probe
        period_s = probe.disk_s if resource in _OF_DISK else probe.period_s * self.slower
        return round(max(3.5 * period_s, 3.0) * 1e6)
