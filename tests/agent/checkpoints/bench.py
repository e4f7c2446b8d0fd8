"""Tiers with a checkpointer over a real run directory, and what recovery makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memwatch.agent.checkpoints.checkpointer import Checkpointer
from memwatch.agent.context import Context
from memwatch.agent.journal import Journal
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.state_hash import state_hash
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types
from memwatch.agent.recovery.recover import recover
from memwatch.agent.recovery.report import Report
from memwatch.agent.recovery.state import State
from memwatch.domain.clock import ManualClock
from memwatch.domain.policy import Cadence, Keep
from memwatch.domain.record import Record
from memwatch.wal.manifest import RunManifest
from tests.agent.reading import read_log
from tests.faults.failing_files import FailingFiles

KEEP = {"recent": Keep(), "history": Keep()}


class Bench:
    """One start of an agent on a run directory; a second one goes on where the first stopped."""

    def __init__(
        self,
        path: Path,
        cadence: Cadence | None = None,
        keep: Mapping[str, Keep] = KEEP,
        builders: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.path = path
        self.clock = ManualClock()
        self.files = FailingFiles()
        self.blob_files = FailingFiles()
        path.mkdir(exist_ok=True)
        manifest = RunManifest(format=1, run_id="run-1", agent="bench")
        (path / "run.json").write_bytes(msgspec.json.encode(manifest))
        past = recover(path) if (path / "wal").exists() else None
        log = LogWriter(path / "wal", clock=self.clock, durability="os", files=self.files)
        self.context = Context(path, "run-1", log, self.clock, self.files)
        self.types, self.blobs = Types(), BlobStore(path / "blobs", self.blob_files)
        self.tiers = Tiers(
            keep, self.context, types=self.types, blobs=self.blobs, builders=builders
        )
        self.journal = Journal()
        if past is not None:
            self.journal = past[0].journal
            self.tiers.adopt(past[0].tiers, past[0].changes)
        self.journal.freed = self.blobs.release
        live = [*self.tiers.live_blobs(), *self.journal.blobs()]
        self.blobs.adopt(live, self.context.log.last_lsn)
        self.checkpoints = Checkpointer(
            self.context,
            self.tiers,
            cadence,
            types=self.types,
            blobs=self.blobs,
            journal=self.journal,
        )
        if past is not None:
            resume = past[1].resume
            self.checkpoints.resume(
                None if past[1].lossy else resume.base,
                resume.last_lsn,
                resume.chain_bytes,
                resume.experiments_since_any,
                resume.experiments_since_full,
            )

    def close(self) -> None:
        """End this start."""
        self.files.heal()
        self.blob_files.heal()
        self.checkpoints.close()
        self.context.log.close()

    @property
    def folder(self) -> Path:
        """Where checkpoints lie."""
        return self.path / "checkpoints"

    def names(self) -> list[str]:
        """Return what lies in the checkpoint folder, hidden files too."""
        return sorted(p.name for p in self.folder.iterdir()) if self.folder.exists() else []

    def records(self, kind: str) -> list[Record]:
        """Return the records of a kind."""
        return [record for record in read_log(self.path / "wal")[0] if record.kind == kind]

    def hashes(self) -> dict[str, str]:
        """Return the hash of each tier as it is in memory now."""
        return {name: state_hash(tier.entries()) for name, tier in self.tiers.items()}

    def recover(self) -> tuple[State, Report]:
        """Return what a recovery finds now."""
        return recover(self.path)

    def holds(self, state: State) -> bool:
        """Whether the memory of now is what a recovery found."""
        found, live = state.hashes(), self.hashes()
        return {tier: found.get(tier, live[tier]) for tier in live} == live and all(
            tier in found or not len(self.tiers[tier]) for tier in live
        )

    def check(self) -> Report:
        """Hold a recovery against the memory of now: equal to the last entry."""
        state, report = self.recover()
        assert not report.lossy, report.lost
        assert self.holds(state)
        return report


def flip_a_bit(path: Path, place: float = 0.5) -> None:
    """Damage a file where it hurts: `place` is a share of its length."""
    data = bytearray(path.read_bytes())
    if data:
        data[min(int(len(data) * place), len(data) - 1)] ^= 1
        path.write_bytes(data)
