"""What measures: process tree and limits; apart from it disk, checkpoints, what the guard costs.

Each look is written to `guard.wal`. Nothing here can hold up the tick, and no disk that takes its
time holds up the look at memory: that one has a thread of its own.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memwatch.config.schema import Profile
from memwatch.domain.clock import Clock
from memwatch.domain.control import Pressure
from memwatch.domain.sample import DiskSample, ProcessInfo, TreeSample
from memwatch.domain.snapshot import Limit, Own
from memwatch.host.disk import directory_bytes, disk_sample
from memwatch.host.limits import host_memory, memory_limits
from memwatch.host.pressure import memory_pressure
from memwatch.host.process import Identity
from memwatch.ingest.checkpoint_scan import scan_checkpoints
from memwatch.ingest.probe import TreeProbe
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.lasting import lasting
from memwatch.runtime.views.ring import Ring

_SLOW_S = 10.0
_GONE_S = 5.0
_CPU_SPAN_S = 10.0
_MEMBERS_KEPT = 10
_MEMBERS_US = 60_000_000


class ProbeLoop:
    """Samples one agent at the period of its profile, faster when asked to."""

    def __init__(
        self,
        run_dir: Path,
        home: Path,
        profile: Profile,
        ring: Ring,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._run_dir = run_dir
        self._home = home
        self._profile = profile
        self._ring = ring
        self._recorder = recorder
        self._clock = clock
        self._probe: TreeProbe | None = None
        self._identity: Identity | None = None
        self._slow_due = self._limits_due = 0.0
        self._disk: DiskSample | None = None
        self._cpu = (time.monotonic(), _cpu_s())
        self._members_told: frozenset[tuple[int, int]] = frozenset()
        self._members_due_us = 0
        self._lock = threading.Lock()
        """Over which process is watched, and whether it lives."""
        self._stop = threading.Event()
        self._wake, self._wake_survey = threading.Event(), threading.Event()
        self._threads = (
            threading.Thread(target=self._run, name="memwatch-probe", daemon=True),
            threading.Thread(target=self._run_survey, name="memwatch-survey", daemon=True),
        )
        self._usual_s = profile.probe.period_s
        self.wanted_s: Callable[[], float] = lambda: 0.0
        """Seconds between two looks that the engine wants now; 0 for as often as usual."""
        self.slower: int = 1
        """The usual period is so many times as long: the guard spares itself."""
        self.pressure: Pressure | None = None
        """Of the agent's control group, else of the machine; None where nobody tells."""
        self.limits: tuple[Limit, ...] = ()
        self.alive: bool | None = None
        self.own = Own()
        self.limit: Limit | None = None
        """The binding limit, written beside each sample."""
        self.on_news: Callable[[], None] = lambda: None
        self.on_slow_look: Callable[[], bool] = lambda: False
        """Called after each slow look, on its thread; returns whether snapshots are out of date."""
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why this loop failed; it goes on."""

    @property
    def period_s(self) -> float:
        """Seconds between two looks at the process tree now."""
        wanted_s = self.wanted_s()
        return min(self._usual_s, wanted_s) if wanted_s else self._usual_s * self.slower

    def watch(self, identity: Identity | None) -> None:
        """Watch this process from now on; None when no process writes in the run."""
        probe = TreeProbe(identity, self._clock) if identity else None
        with self._lock:
            self._identity, self._probe = identity, probe
            self.alive = None if identity else False
            self._slow_due = self._limits_due = 0.0
        self._wake.set()
        self._wake_survey.set()

    def start(self) -> None:
        """Begin to measure."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop measuring."""
        self._stop.set()
        self._wake.set()
        self._wake_survey.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=10)

    def look(self) -> None:
        """Measure once, all that is due."""
        self._look_at_memory()
        self._survey()

    def _look_at_memory(self) -> None:
        if self._probe is not None:
            self._look_at_tree(self._probe)
        if time.monotonic() >= self._limits_due:
            self._limits_due = time.monotonic() + self._slow_s
            self._look_at_limits()
        self._recorder.heal()
        self.on_news()

    def _survey(self) -> None:
        if time.monotonic() >= self._slow_due:
            self._slow_due = time.monotonic() + self._slow_s
            self._look_slowly()

    @property
    def _slow_s(self) -> float:
        return min(_SLOW_S, self._profile.probe.disk_s)

    def _look_at_tree(self, probe: TreeProbe) -> None:
        sample = probe.sample()
        with self._lock:
            if probe is not self._probe:
                return  # the agent began anew meanwhile: this look says nothing about that one
            was_alive, self.alive = self.alive, sample.alive
            root = self._identity.pid if self._identity and sample.alive else None
        self.pressure = memory_pressure(root) if root is not None else None
        unaccounted = self._ring.take_tree(sample)
        if sample.processes or was_alive:
            disk, self._disk = self._disk, None
            self._recorder.append("probe", self._members(sample, unaccounted, disk))
        if was_alive and not sample.alive:
            self._tell_end(sample)

    def _run(self) -> None:
        lasting("measuring", self._measure, self._stop, self.on_failure)

    def _measure(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._look_at_memory()
            due += self.period_s if self.alive is not False else _GONE_S
            now = time.monotonic()
            due = max(due, now)  # a slow look is not made up for
            if self._wake.wait(due - now):  # a new process to watch: at once
                self._wake.clear()
                due = time.monotonic()

    def _run_survey(self) -> None:
        lasting("the look at the disk", self._go_on_surveying, self._stop, self.on_failure)

    def _go_on_surveying(self) -> None:
        while not self._stop.is_set():
            self._survey()
            self._wake_survey.wait(max(self._slow_due - time.monotonic(), 0))
            self._wake_survey.clear()

    def _look_at_limits(self) -> None:
        identity = self._identity
        if identity is not None and self.alive:
            self.limits = (*memory_limits(identity.pid), *self._host_limit())

    def _look_slowly(self) -> None:
        disk = disk_sample(self._run_dir, self._clock, counted=self._ring.store_bytes)
        if disk is not None:
            self._disk = disk
            self._ring.take_disk(disk)
        if self._ring.store is None:
            self._look_at_checkpoints()
        if self.on_slow_look():
            self._ring.touch()
        self.own = self._own()

    def _look_at_checkpoints(self) -> None:
        known_lsn, before = self._ring.state.last_lsn, self._ring.on_disk
        checkpoints = scan_checkpoints(self._run_dir, known_lsn, before=before)
        if checkpoints is not None:
            self._ring.take_checkpoints(checkpoints)

    def _host_limit(self) -> tuple[Limit, ...]:
        host = host_memory()
        if host is None:
            return ()
        tree = self._ring.tree
        reachable = host[1] + (tree.used_bytes if tree else 0)
        why = "available now plus the agent's own usage"
        return (Limit(name="host memory", bytes=reachable, why=why),)

    def _own(self) -> Own:
        now, cpu = time.monotonic(), _cpu_s()
        then, before = self._cpu
        percent = self.own.cpu_percent
        if now - then >= _CPU_SPAN_S:  # the load of its first moments is not what a guard costs
            self._cpu = (now, cpu)
            percent = (cpu - before) / (now - then) * 100
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        rss = pages * os.sysconf("SC_PAGE_SIZE")
        return Own(rss_bytes=rss, cpu_percent=percent, disk_bytes=directory_bytes(self._home))

    def _members(
        self, sample: TreeSample, unaccounted: int | None, disk: DiskSample | None
    ) -> dict[str, Any]:
        members: dict[str, Any] = {
            "alive": sample.alive,
            "rss_bytes": sample.rss_bytes,
            "swap_bytes": sample.swap_bytes,
            "processes": sample.processes,
            "orphans": sample.orphans,
            "threads": sample.threads,
            "fds": sample.fds,
            "unaccounted_bytes": unaccounted,
            "limit_bytes": self.limit.bytes if self.limit else None,
            "limit_name": self.limit.name if self.limit else None,
            "members": self._largest(sample),
        }
        if disk is not None:
            members["disk"] = {
                "free_bytes": disk.free_bytes,
                "total_bytes": disk.total_bytes,
                "run_bytes": disk.run_bytes,
            }
        return {name: value for name, value in members.items() if value is not None}

    def _largest(self, sample: TreeSample) -> list[dict[str, Any]] | None:
        """Return the largest members when they are others than before, and each minute."""
        largest = sorted(sample.members, key=_used, reverse=True)[:_MEMBERS_KEPT]
        ids = frozenset((one.pid, one.start_ticks) for one in largest)
        if ids == self._members_told and sample.m_us < self._members_due_us:
            return None
        self._members_told, self._members_due_us = ids, sample.m_us + _MEMBERS_US
        return [
            {
                "pid": one.pid,
                "ticks": one.start_ticks,
                "name": one.name,
                "rss_bytes": one.rss_bytes,
                "swap_bytes": one.swap_bytes,
            }
            for one in largest
        ]

    def _tell_end(self, sample: TreeSample) -> None:
        left = f", {sample.processes} of its processes live on" if sample.processes else ""
        said = self._ring.state.end is not None or self._ring.store is not None
        whose = "the agent's process" if self._ring.store is None else "the process that wrote here"
        text = f"{whose} has ended{left}"
        severity = "notice" if said else "error"
        told = {"text": text, "severity": severity}
        self._ring.take_guard(self._recorder.append("process", told))


def _used(process: ProcessInfo) -> int:
    return process.rss_bytes + process.swap_bytes


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
