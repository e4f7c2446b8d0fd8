"""A run that no guard watches, looked at once: reads its files, writes nothing."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from memwatch.analytics.recovery.costs import costs_of
from memwatch.config.load import named_profile
from memwatch.config.locations import home as memwatch_home
from memwatch.config.locations import run_home
from memwatch.config.policy_load import usable_policy
from memwatch.domain.clock import Clock, SystemClock
from memwatch.domain.control import EngineInfo
from memwatch.domain.errors import ConfigError
from memwatch.domain.record import Batch, Fault
from memwatch.domain.snapshot import GuardInfo, Limit, Snapshot
from memwatch.host.disk import disk_sample
from memwatch.host.limits import host_memory, memory_limits
from memwatch.host.lock import holder
from memwatch.host.process import Identity, boot_id
from memwatch.ingest.checkpoint_scan import scan_checkpoints
from memwatch.ingest.open_run import open_run
from memwatch.ingest.probe import TreeProbe
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.runs.host_file import HostFile, device_below, useful
from memwatch.runtime.runs.recovery_file import read_recoveries
from memwatch.runtime.runs.target import GUARD_LOCK, run_key
from memwatch.runtime.runs.writer import first_of, was_seen_to_go, writer_of
from memwatch.runtime.views.facts import GuardFacts, RunFacts
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.snapshot_builder import SnapshotBuilder

FAULTS_KEPT = 50


class Look:
    """What one reading of a run gave."""

    def __init__(self, path: Path, clock: Clock | None = None) -> None:
        """Read the run; raises TargetError when it is none that we may open."""
        self.clock = clock or SystemClock()
        self.opened = open_run(path)
        try:
            self.profile = named_profile(self.opened.manifest.profile)
        except ConfigError:
            self.profile = named_profile("native")
        self.ring = Ring(self.profile, self.clock, boot_id())
        self.ring.run_boot_id = self.opened.manifest.boot_id
        self.faults: list[Fault] = []
        self.fault_count = 0
        self.torn_bytes = 0
        if self.opened.foreign is None:
            self._read_log()
        else:
            self.ring.take_store(self.opened.foreign.look(self.opened.path, None))

    def snapshot(self, guard_silent: str = "") -> Snapshot:
        """Measure process and disk once, and return everything as a snapshot.

        `guard_silent` says why a guard that is there was not asked.
        """
        identity = self._writer()
        limits: tuple[Limit, ...] = ()
        native = self.opened.foreign is None
        gone = native or was_seen_to_go(run_home(self._key))
        alive = False if gone else None
        if identity is not None:
            sample = TreeProbe(identity, self.clock).sample()
            self.ring.take_tree(sample)
            alive = sample.alive
            if alive:
                limits = tuple(memory_limits(identity.pid))
                host = host_memory()
                if host is not None:
                    limits += (Limit(name="host memory", bytes=host[1] + sample.used_bytes),)
        disk = disk_sample(self.opened.path, self.clock, counted=self.ring.store_bytes)
        if disk is not None:
            self.ring.take_disk(disk)
        if native:
            checkpoints = scan_checkpoints(self.opened.path, self.ring.state.last_lsn)
            if checkpoints is not None:
                self.ring.take_checkpoints(checkpoints)
        manifest = self.opened.manifest
        if identity is not None:
            manifest = replace(manifest, pid=identity.pid)
        run = RunFacts(path=str(self.opened.path), manifest=manifest, source=self.opened.source)
        pid = (self._guard_pid() or 0) if guard_silent else 0
        silent = f"{guard_silent}; to replace it: kill -KILL {pid}" if pid else guard_silent
        guard = GuardInfo(
            engine="off",
            pid=pid,
            recording=False if alive else None,
            not_recording_why=silent or ("no guard watches this run" if alive else ""),
        )
        book, error = usable_policy(
            self.profile, run_dir=self.opened.path, run_home=run_home(self._key)
        )
        shared, device = HostFile(memwatch_home()), device_below(self.opened.path)
        facts = GuardFacts(
            guard=guard,
            limits=limits,
            watch="polling",
            past=read_recoveries(run_home(self._key)),
            costs=costs_of(shared.costs()),
            disk_rate=useful(shared.disk(device)) if device else None,
            alive=alive,
            policy=book.of(self.ring.state.phase),
            policy_source=book.origin,
            engine=EngineInfo(mode="off", policy=book.origin, policy_error=error),
        )
        return SnapshotBuilder(run, self.profile, self.ring, self.clock).build(1, facts)

    @property
    def _key(self) -> str:
        return run_key(self.opened.path, self.opened.manifest.run_id)

    def _guard_pid(self) -> int | None:
        return holder(run_home(self._key) / GUARD_LOCK)

    def _writer(self) -> Identity | None:
        store = self.ring.store
        if store is not None:
            return first_of(store.writers)
        return writer_of(self.opened.path, self.opened.manifest)

    def _read_log(self) -> None:
        tailer = LogTailer(self.opened.wal_dir, "agent")
        try:
            while (batches := tailer.poll()) or tailer.more:
                self._take(batches)
                while not tailer.more and (older := tailer.backfill()) is not None:
                    self._take([older])
            self.torn_bytes = tailer.torn_bytes
        finally:
            tailer.close()

    def _take(self, batches: list[Batch]) -> None:
        for batch in batches:
            self.ring.take(batch)
            self.fault_count += len(batch.faults)
            self.faults += batch.faults[: FAULTS_KEPT - len(self.faults)]
