"""What a recovery may start from: the segments of the log, and the checkpoints it says are whole.

A checkpoint counts only with its `checkpoint.commit` in the log: that record carries the hash of
what was written. Commits are looked for by their bytes, newest segment first, so that no more of
the log is read than the newest full checkpoint asks for.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import pairwise

import msgspec
from msgspec import Struct

from memwatch.agent.recovery.place import Place
from memwatch.domain.errors import DamagedError, RecoveryError
from memwatch.domain.record import Record
from memwatch.wal import codec
from memwatch.wal.framing import Framer, Line
from memwatch.wal.segment import (
    CHECKPOINT_DIR,
    WAL_DIR,
    delta_name,
    full_name,
    segment_name,
    segments,
)

_COMMIT, _BEGIN = "checkpoint.commit", "run.begin"
_MARKS = (f'"{_COMMIT}"'.encode(), f'"{_BEGIN}"'.encode())
_MOST = 1 << 62


class Commit(Struct, frozen=True, kw_only=True):
    """A `checkpoint.commit` record."""

    lsn: int
    id: str
    first_lsn: int
    last_lsn: int
    bytes: int = 0
    sha256: str
    state_hash: dict[str, str] = {}

    @property
    def is_full(self) -> bool:
        """Whether it is a full checkpoint: a directory."""
        return self.id == full_name(self.last_lsn)

    @property
    def is_delta(self) -> bool:
        """Whether it is an incremental one: a file."""
        return f"{self.id}.wal" == delta_name(self.first_lsn, self.last_lsn)

    @property
    def parts(self) -> tuple[str, str]:
        """Where it lies; made of its numbers alone."""
        if self.is_full:
            return CHECKPOINT_DIR, full_name(self.last_lsn)
        return CHECKPOINT_DIR, delta_name(self.first_lsn, self.last_lsn)


class Log:
    """The segments of a run's log, and the commits found in them so far."""

    def __init__(self, place: Place, run_id: str | None) -> None:
        self._place = place
        self.run_id = run_id
        """Of the run; where no file told it, of the first record that does."""
        self.segments = self.listed()
        self.commits: dict[str, Commit] = {}
        """By id, the newest of each."""

    def fulls(self) -> Iterator[Commit]:
        """Yield the full checkpoints that were committed, newest first.

        Raises RecoveryError for a log that two runs wrote.
        """
        for first, successor in reversed(self.spans(1)):
            found = list(self._commits(first, successor))
            for commit in reversed(found):
                self.commits.setdefault(commit.id, commit)
            newest = (commit for commit in reversed(found) if self.commits[commit.id] is commit)
            yield from (commit for commit in newest if commit.is_full)

    def spans(self, lsn: int) -> list[tuple[int, int]]:
        """Return the segments that hold `lsn` and what follows, each with its successor's first.

        A record numbered like one of the successor is void: the log was cut there, and the
        numbers came again.
        """
        pairs = pairwise((*self.segments, _MOST))
        return [(first, successor) for first, successor in pairs if successor > lsn]

    def delta_at(self, first_lsn: int, without: Container[str]) -> Commit | None:
        """Return the increment that begins with this number, the longest where there are two."""
        found = [c for c in self._deltas(without) if c.first_lsn == first_lsn]
        return max(found, key=lambda commit: commit.last_lsn, default=None)

    def next_delta(self, after_lsn: int, without: Container[str]) -> Commit | None:
        """Return the first increment that begins with a number above this one."""
        found = [c for c in self._deltas(without) if c.first_lsn > after_lsn]
        return min(found, key=lambda commit: commit.first_lsn, default=None)

    def listed(self) -> list[int]:
        """Return the segments that exist now."""
        return segments(self._place.names(WAL_DIR))

    def check_run(self, run_id: object, where: str) -> None:
        """Hold what a part says against the run it is of; raises RecoveryError."""
        if not isinstance(run_id, str) or not run_id:
            return
        if self.run_id is None:
            self.run_id = run_id
        elif run_id != self.run_id:
            raise RecoveryError(
                f"two runs are mixed: {where} is of run {run_id[:80]!r}, the rest of "
                f"{self.run_id[:80]!r}; take out what does not belong here"
            )

    def _deltas(self, without: Container[str]) -> list[Commit]:
        return [c for c in self.commits.values() if c.is_delta and c.id not in without]

    def _commits(self, first: int, successor: int) -> Iterator[Commit]:
        for record in self._marked(first):
            if record.lsn >= successor:
                continue
            if record.kind == _BEGIN:
                place = f"{WAL_DIR}/{segment_name(first)} from lsn {record.lsn} on"
                self.check_run(record.members.get("run_id"), place)
            elif record.kind == _COMMIT and (commit := _commit(record)) is not None:
                yield commit

    def _marked(self, first: int) -> Iterator[Record]:
        """Yield the records of a segment that tell of a commit or a start."""
        parts, framer = (WAL_DIR, segment_name(first)), Framer()
        try:
            with self._place.open(*parts) as file:
                for piece in self._place.pieces(file, *parts, told=False):
                    for line in framer.feed(piece):
                        if isinstance(line, Line) and any(mark in line.text for mark in _MARKS):
                            try:
                                yield codec.decode(line.text)
                            except codec.DamagedLineError:
                                continue  # said when it is replayed, if it is
        except DamagedError:
            return  # the same


def _commit(record: Record) -> Commit | None:
    try:
        commit = msgspec.convert(record.members, Commit)
    except msgspec.ValidationError:
        return None
    known = 0 < commit.first_lsn <= commit.last_lsn + 1 and commit.last_lsn < record.lsn
    return commit if known and (commit.is_full or commit.is_delta) else None
