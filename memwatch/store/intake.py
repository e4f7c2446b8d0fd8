"""Which part of a batch is new: positions alone decide, so that no row comes twice or is lost.

Not thread-safe and without input or output: the historian guards it and writes what it hands
over. What was handed over counts as written; when writing fails, a new intake begins from what
the file holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from memwatch.domain.record import Batch, Fault, LogName, Position, Record
from memwatch.store.rows import Pending, RowFold, Tools

LOGS: tuple[LogName, ...] = ("agent", "guard")
_REWINDS = ("truncated", "replaced")

Segment = tuple[LogName, int]


class Reached(NamedTuple):
    """Up to where a segment is taken, and the tools at work there."""

    position: Position
    tools: Tools


class HandedOver(NamedTuple):
    """What one transaction writes: void segments are emptied first."""

    pending: Pending
    reached: dict[Segment, Reached]
    void: list[Segment]


class Intake:
    """Takes batches where the rows before them end; keeps what waits to be written.

    A log in `behind` was refused a batch: nothing more of it is taken until its reader asked
    where to go on, else a hole would stay behind.
    """

    def __init__(
        self, stored: Mapping[Segment, Reached], fold: RowFold, behind: Collection[LogName]
    ) -> None:
        self._written = dict(stored)
        self._reached = dict(stored)
        self._touched: set[Segment] = set()
        self._void: set[Segment] = set()
        self._behind = set(behind)
        self._fold = fold

    @property
    def count(self) -> int:
        """Rows that wait."""
        return self._fold.count

    def positions(self, log: LogName) -> dict[int, Position]:
        """Return where the next batch of each segment must begin; the log is taken again."""
        self._behind.discard(log)
        return {s: r.position for (name, s), r in self._reached.items() if name == log}

    def refuse(self, log: LogName) -> bool:
        """Take nothing more of a log until its positions are asked; returns False."""
        self._behind.add(log)
        return False

    def take(self, batch: Batch, now_us: int) -> bool:
        """Fold what is new in a batch; False when it or one before it was refused."""
        if batch.log in self._behind:
            return False
        segment = (batch.log, batch.start.segment)
        known = self._reached.get(segment)
        if known is not None and _rewinds(batch, known.position):
            self._forget(segment)
            self._take_faults(batch, now_us)
            return False
        if not self._take_records(batch, segment, known or _beginning(segment)):
            return self.refuse(batch.log)
        self._take_faults(batch, now_us)
        return True

    def hand_over(self) -> HandedOver | None:
        """Return what waits, or None; it counts as written from now on."""
        if not self._touched and not self.count:
            return None
        reached = {segment: self._reached[segment] for segment in self._touched}
        void = sorted(self._void)
        self._written.update(reached)
        self._touched, self._void = set(), set()
        return HandedOver(self._fold.take(), reached, void)

    def rewind(self) -> None:
        """Drop what waits: both logs are to be read again from what is written."""
        self._fold.drop()
        self._reached = self._written | {segment: _beginning(segment) for segment in self._void}
        self._touched = set(self._void)
        self._behind = set(LOGS)

    def _forget(self, segment: Segment) -> None:
        """Void all that was read from a segment: its file is another now."""
        self._void.add(segment)
        self.rewind()

    def _take_records(self, batch: Batch, segment: Segment, known: Reached) -> bool:
        if batch.start.offset > known.position.offset:
            return False
        if batch.end.offset < known.position.offset:
            return True
        records = _new_records(batch, known.position)
        if records is None:
            return False
        tools = dict(known.tools)
        self._fold.add(*segment, records, tools)
        if batch.end != known.position or segment not in self._reached:
            self._reached[segment] = Reached(batch.end, tools)
            self._touched.add(segment)
        return True

    def _take_faults(self, batch: Batch, now_us: int) -> None:
        for fault in batch.faults:
            t_us = _time_of(fault, batch.records)
            self._fold.add_fault(batch.log, fault, now_us if t_us is None else t_us)


def _beginning(segment: Segment) -> Reached:
    return Reached(Position(segment[1], 0, segment[1]), {})


def _rewinds(batch: Batch, known: Position) -> bool:
    """Tell whether the file was cut or rewritten below what is known of it."""
    return batch.end.offset < known.offset and any(f.kind in _REWINDS for f in batch.faults)


def _new_records(batch: Batch, known: Position) -> list[Record] | None:
    """Return the records behind the known place; None when that cannot be told."""
    if batch.start.offset == known.offset:
        return batch.records
    if batch.end.offset == known.offset:
        return []
    due = known.next_lsn
    return None if due is None else [record for record in batch.records if record.lsn >= due]


def _time_of(fault: Fault, records: list[Record]) -> int | None:
    """Return the time of the first record behind a fault, or of the last one known."""
    after = (r.t_us for r in records if fault.lsn is not None and r.lsn >= fault.lsn)
    return next(after, records[-1].t_us if records else None)
