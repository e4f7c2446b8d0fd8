"""The log behind a checkpoint: its records in order, until it ends or something is missing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from memwatch.agent.recovery.account import Account
from memwatch.agent.recovery.chain import Commit, Log
from memwatch.agent.recovery.place import Place
from memwatch.agent.recovery.replay import Replayer
from memwatch.domain.errors import DamagedError
from memwatch.domain.record import Fault, Position, Record
from memwatch.wal.segment import WAL_DIR, segment_name
from memwatch.wal.stream import Items, SegmentStream

_SAID_BY_US = frozenset(("gap", "pruned"))


class Hole(NamedTuple):
    """Records that the log does not give."""

    first_lsn: int
    last_lsn: int | None
    """None where nothing stands behind it."""
    where: str


class Tail:
    """Replays the log from where a replayer is. Damage is told to the account."""

    def __init__(self, place: Place, log: Log, replayer: Replayer, account: Account) -> None:
        self._place = place
        self._log = log
        self._replayer = replayer
        self._account = account
        self._until = 0
        self._covered = {c.last_lsn: c for c in log.commits.values()}
        self.passed: Commit | None = None
        """Newest checkpoint whose last lsn was replayed."""

    def replay(self, until: int) -> Hole | None:
        """Replay up to `until`, or to the end; returns what stopped it before."""
        self._until = until
        spans = self._log.spans(self._due)
        for first, successor in spans:
            if self._due > until:
                break
            if first > self._due:
                return Hole(self._due, first - 1, f"before {_name(first)}")
            hole = self._segment(first, successor)
            if hole is not None:
                return hole
        return None

    def left_out(self, behind_lsn: int) -> tuple[int, int]:
        """Return how many good records stand behind a hole, and the number of the last."""
        count = last = 0
        for first, successor in self._log.spans(behind_lsn):
            for items in self._items(first, SegmentStream(Position(first))):
                for item in items:
                    if isinstance(item, Record) and behind_lsn < item.lsn < successor:
                        count, last = count + 1, max(last, item.lsn)
        return count, last

    @property
    def _due(self) -> int:
        return self._replayer.last_lsn + 1

    def _segment(self, first: int, successor: int) -> Hole | None:
        stream = SegmentStream(Position(first))
        fault: Fault | None = None
        for items in self._items(first, stream, told=True):
            began = time.perf_counter()
            for item in items:
                if isinstance(item, Record):
                    hole = self._take(item, first, successor, fault)
                else:
                    fault, hole = item, self._fault(item)
                if hole is not None:
                    return hole
                if self._due > self._until:
                    break
            self._account.spent("replay", time.perf_counter() - began)
            if self._due > self._until:
                return None
        return self._end(first, successor, stream, fault)

    def _take(self, record: Record, first: int, successor: int, fault: Fault | None) -> Hole | None:
        if record.lsn >= successor:
            self._account.damaged.add(
                f"{_name(first)}: lsn {record.lsn} comes again in the next segment, which began "
                "anew there; the later ones count"
            )
        elif record.lsn > self._due:
            where = _place(fault) if fault else _name(first)
            return Hole(self._due, record.lsn - 1, where)
        elif record.lsn == self._due:
            return self._record(record, first)
        return None  # below: the checkpoint holds it

    def _fault(self, fault: Fault) -> Hole | None:
        if fault.kind not in _SAID_BY_US:
            self._account.damaged.add(f"{_place(fault)}: {fault.detail}")
        return Hole(self._due, None, _place(fault)) if fault.kind == "repeated" else None

    def _end(
        self, first: int, successor: int, stream: SegmentStream, fault: Fault | None
    ) -> Hole | None:
        """Hold the end of a segment against what follows it."""
        last = first == self._log.segments[-1]
        missing = self._due < successor and not last
        if stream.torn_bytes:
            told = "" if missing else ", of a record that was never acknowledged"
            self._account.damaged.add(
                f"{_name(first)}: the last {stream.torn_bytes} bytes are no whole line{told}"
            )
        if missing:
            where = _place(fault) if fault else f"the end of {_name(first)}"
            return Hole(self._due, successor - 1, where)
        if last and fault is not None and stream.position.next_lsn is None:
            return Hole(self._due, None, _place(fault))  # its last lines are whole, and wrong
        return None

    def _record(self, record: Record, first: int) -> Hole | None:
        if record.kind == "run.begin":
            where = f"{_name(first)} from lsn {record.lsn} on"
            self._log.check_run(record.members.get("run_id"), where)
        try:
            self._replayer.record(record)
        except ValueError as error:
            self._account.damaged.add(f"{_name(first)}: lsn {record.lsn} makes no sense: {error}")
            return Hole(record.lsn, record.lsn, _name(first))
        commit = self._covered.get(record.lsn)
        if commit is not None:
            self._replayer.commit(record.lsn, used=False)
            self.passed = commit
        return None

    def _items(self, first: int, stream: SegmentStream, *, told: bool = False) -> Iterator[Items]:
        """Yield what a segment holds; one that cannot be read is a finding and yields no more."""
        parts = WAL_DIR, segment_name(first)
        try:
            with self._place.open(*parts) as file:
                if told:
                    self._place.expect(os.fstat(file.fileno()).st_size)
                pieces = self._place.pieces(file, *parts, told=told)
                while True:
                    began = time.perf_counter()
                    if not (piece := next(pieces, b"")):
                        return
                    items = stream.feed(piece)
                    self._account.spent("read", time.perf_counter() - began, len(piece))
                    yield items
        except DamagedError as error:
            self._account.damaged.add(error)


def _name(first: int) -> str:
    return f"{WAL_DIR}/{segment_name(first)}"


def _place(fault: Fault) -> str:
    return f"{_name(fault.segment)}, byte {fault.offset}"
