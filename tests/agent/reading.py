"""Read a whole log as the dashboard would, and make parts of a run for tests."""

from __future__ import annotations

from pathlib import Path

from memwatch.agent.context import Context
from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.log import LogWriter
from memwatch.domain.clock import Clock, SystemClock
from memwatch.domain.record import Fault, Position, Record
from memwatch.wal.segment import segment_name, segments
from memwatch.wal.stream import SegmentStream


def read_log(wal_dir: Path) -> tuple[list[Record], list[Fault]]:
    """Return all records and faults; all but the newest segment are sealed."""
    records: list[Record] = []
    faults: list[Fault] = []
    firsts = segments(path.name for path in wal_dir.iterdir())
    successors = [*firsts[1:], None][: len(firsts)]
    for first, successor in zip(firsts, successors, strict=True):
        stream = SegmentStream(Position(first))
        items = stream.feed((wal_dir / segment_name(first)).read_bytes())
        if successor is not None:
            items += stream.seal(successor)
        records += [item for item in items if isinstance(item, Record)]
        faults += [item for item in items if isinstance(item, Fault)]
    return records, faults


def kinds(run_dir: Path) -> list[str]:
    """Return the kinds of all records of a run, in order."""
    return [record.kind for record in read_log(run_dir / "wal")[0]]


def context_at(path: Path, *, clock: Clock | None = None, files: Files = SYSTEM_FILES) -> Context:
    """Return what parts of a run share; close its log."""
    clock = clock or SystemClock()
    log = LogWriter(path / "wal", clock=clock, durability="os")
    return Context(path, "run-1", log, clock, files)
