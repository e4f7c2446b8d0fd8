"""A run that no guard watches, looked at once: reads its files, writes nothing."""

from __future__ import annotations

from pathlib import Path

from memwatch.config.load import named_profile
from memwatch.domain.clock import Clock, SystemClock
from memwatch.domain.errors import ConfigError
from memwatch.domain.record import Fault
from memwatch.domain.snapshot import GuardInfo, Limit, Snapshot
from memwatch.host.disk import disk_sample
from memwatch.host.limits import host_memory, memory_limits
from memwatch.host.process import boot_id
from memwatch.ingest.open_run import open_run
from memwatch.ingest.probe import TreeProbe
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.facts import GuardFacts, RunFacts
from memwatch.runtime.ring import Ring
from memwatch.runtime.snapshot_builder import SnapshotBuilder
from memwatch.runtime.writer import writer_of

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
        self._read_log()

    def snapshot(self) -> Snapshot:
        """Measure process and disk once, and return everything as a snapshot."""
        identity = writer_of(self.opened.path, self.opened.manifest)
        limits: tuple[Limit, ...] = ()
        alive = False
        if identity is not None:
            sample = TreeProbe(identity, self.clock).sample()
            self.ring.take_tree(sample)
            alive = sample.alive
            if alive:
                limits = tuple(memory_limits(identity.pid))
                host = host_memory()
                if host is not None:
                    limits += (Limit(name="host memory", bytes=host[1] + sample.used_bytes),)
        disk = disk_sample(self.opened.path, self.clock)
        if disk is not None:
            self.ring.take_disk(disk)
        run = RunFacts(path=str(self.opened.path), manifest=self.opened.manifest)
        guard = GuardInfo(
            engine="off",
            recording=not alive,
            not_recording_why="no guard watches this run" if alive else "",
        )
        facts = GuardFacts(guard=guard, limits=limits, watch="polling", alive=alive)
        return SnapshotBuilder(run, self.profile, self.ring, self.clock).build(1, facts)

    def _read_log(self) -> None:
        tailer = LogTailer(self.opened.wal_dir, "agent")
        try:
            while True:
                batches = tailer.poll()
                if not batches and not tailer.more:
                    older = tailer.backfill()
                    if older is None:
                        break
                    batches = [older]
                for batch in batches:
                    self.ring.take(batch)
                    self.fault_count += len(batch.faults)
                    self.faults += batch.faults[: FAULTS_KEPT - len(self.faults)]
            self.torn_bytes = tailer.torn_bytes
        finally:
            tailer.close()
