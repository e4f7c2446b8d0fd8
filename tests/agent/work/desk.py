"""The work of a start on a run directory, with everything that it needs around it."""

from __future__ import annotations

from pathlib import Path

from memwatch.agent.context import Context
from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.journal import Journal
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.values import Types
from memwatch.agent.work.calls import Calls
from memwatch.agent.work.workspace import Workspace
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import ReadOnlyError
from memwatch.domain.record import Record
from tests.agent.reading import read_log


class Desk:
    """One start; a second one on the same path knows what the log says, as after a recovery."""

    def __init__(
        self, path: Path, *, types: tuple[type, ...] = (), files: Files = SYSTEM_FILES
    ) -> None:
        self.path = path / "run"
        self.synced = 0
        wal = self.path / "wal"
        past = read_log(wal)[0] if wal.is_dir() else []
        clock = SystemClock()
        log = LogWriter(wal, clock=clock, durability="os", files=files)
        self.context = Context(self.path, "run-1", log, clock, files)
        self.journal = Journal()
        for record in past:
            self.journal.take(record.lsn, record.kind, record.members)
        self.journal.log(self.context.record, "run.begin", {})
        if self.journal.open is not None:
            crashed = {"x": self.journal.open, "status": "crashed"}
            self.journal.log(self.context.record, "experiment.end", crashed)
        self.blobs = BlobStore(self.path / "blobs", files)
        self.journal.freed = self.blobs.release
        self.blobs.adopt(self.journal.blobs(), self.context.log.last_lsn)
        start = f"start{len(past)}"
        self.calls = Calls(
            self.context, self.journal, Types(types), self.blobs, start_id=start, sync=self.sync
        )
        self.root = path / "space"
        self.workspace = Workspace(self.root, self.context, self.journal, self.blobs)

    def sync(self) -> None:
        self.synced += 1

    def begin(self) -> None:
        """Begin an experiment."""
        number = self.journal.experiments + 1
        self.journal.log(self.context.record, "experiment.begin", {"x": number, "phase": "p"})
        self.context.experiment = number

    def end(self, status: str) -> None:
        """End it."""
        members = {"x": self.context.experiment, "status": status}
        self.journal.log(self.context.record, "experiment.end", members)
        self.context.experiment = None
        self.calls.experiment_ended(status)

    def read_only(self) -> None:
        def refuse() -> None:
            raise ReadOnlyError("not now")

        self.context.check_writable = refuse

    def records(self, kind: str) -> list[Record]:
        return [record for record in read_log(self.path / "wal")[0] if record.kind == kind]
