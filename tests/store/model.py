"""A made-up log of which any piece can be read, and what its sums must be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Batch, Fault, LogName, Position, Record
from memwatch.store.historian import Bounds, Historian
from tests.builders import record

LINE_BYTES = 100
TIERS = ("workspace", "recent", "history")
ROOMY = Bounds(reserve_bytes=0)


def mixed_records(count: int, first: int = 1) -> list[Record]:
    """Return records of an agent: puts in three tiers, tool calls, experiments, samples."""
    return [_mixed(lsn) for lsn in range(first, first + count)]


def _mixed(lsn: int) -> Record:
    at_s, experiment = lsn * 0.21, lsn // 40
    match lsn % 8:
        case 0:
            return record(lsn, "tool.begin", at_s, name=f"tool{lsn // 8 % 3}", x=experiment)
        case 5:
            return record(lsn, "tool.end", at_s, x=experiment)
        case 6:
            held = {"bytes": lsn * 10, "entries": lsn, "tokens": lsn // 2, "limit": 10**6}
            return record(lsn, "sample", at_s, tiers={"recent": held})
        case 7:
            return record(lsn, "experiment.end", at_s, x=experiment, status="kept")
        case turn:
            kind = ("put", "update", "delete")[turn % 3]
            size = 0 if kind == "delete" else lsn
            return record(lsn, kind, at_s, tier=TIERS[lsn % 3], bytes=size, x=experiment)


class Segment:
    """One segment: its records stand LINE_BYTES apart."""

    def __init__(self, records: list[Record], log: LogName = "agent") -> None:
        self.log: LogName = log
        self.records = records
        self.first = records[0].lsn

    def __len__(self) -> int:
        return len(self.records)

    def place(self, index: int) -> Position:
        """Return the position before a record."""
        return Position(self.first, index * LINE_BYTES, self.first + index)

    def index(self, place: Position | None) -> int:
        """Return the record that stands at a position."""
        return place.offset // LINE_BYTES if place else 0

    def read(self, start: int, stop: int, *faults: Fault) -> Batch:
        """Return what reading from one record to another gives."""
        stop = min(stop, len(self))
        places = self.place(start), self.place(stop)
        return Batch(self.log, self.records[start:stop], list(faults), *places)


def true_flows(records: list[Record]) -> Counter[tuple[Any, ...]]:
    """Return bytes and counts of one segment by tier, experiment, tool and figure."""
    sums: Counter[tuple[Any, ...]] = Counter()
    tool = ""
    for one in records:
        if one.kind == "tool.begin":
            tool = one.text("name")
        elif one.kind == "tool.end":
            tool = ""
        elif one.kind in ("put", "update", "delete"):
            key = (one.text("tier"), one.number("x"), tool)
            sums[*key, one.kind] += 1
            sums[*key, "bytes"] += one.number("bytes") or 0
    return +sums


def stored_flows(historian: Historian) -> Counter[tuple[Any, ...]]:
    """Return the same from the history."""
    sums: Counter[tuple[Any, ...]] = Counter()
    columns = "tier, experiment, tool, puts, updates, deletes, bytes_in"
    for *key, puts, updates, deletes, size in select(historian, f"{columns} FROM tier_flow"):
        sums[*key, "put"] += puts
        sums[*key, "update"] += updates
        sums[*key, "delete"] += deletes
        sums[*key, "bytes"] += size
    return +sums


def stored_lsns(historian: Historian) -> list[int]:
    """Return the numbers of all experiment ends in the history."""
    return [lsn for (lsn,) in select(historian, "lsn FROM experiment ORDER BY lsn")]


def true_lsns(records: list[Record]) -> list[int]:
    """Return the numbers of all experiment ends in a log."""
    return sorted(r.lsn for r in records if r.kind == "experiment.end")


def select(historian: Historian, what: str) -> list[tuple[Any, ...]]:
    """Ask the open file of a historian."""
    with historian.database.reading() as cursor:
        found: list[tuple[Any, ...]] = cursor.execute(f"SELECT {what}").fetchall()
        return found


def open_historian(
    path: Path, bounds: Bounds = ROOMY, clock: ManualClock | None = None
) -> Historian:
    """Return a started historian that writes when it is flushed, not by itself."""
    historian = Historian(path, clock or ManualClock(), period_s=3600, bounds=bounds)
    historian.start()
    return historian
