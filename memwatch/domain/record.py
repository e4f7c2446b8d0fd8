"""What a log holds: records, the places they lie at, and what can be wrong with them."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

from msgspec import Struct

FaultKind = Literal[
    "torn",  # the end of a sealed segment breaks off inside a line
    "damaged",  # a line whose checksum or shape is wrong
    "fused",  # a good record behind the remains of a broken one, on one line
    "overlong",  # a line longer than the format allows, skipped
    "gap",  # numbers missing between two good records
    "pruned",  # numbers that were dropped before we read them
    "repeated",  # numbers that come again: the log was cut by a power loss
    "truncated",  # the file became shorter than what we had read
    "replaced",  # another file under the same name
    "vanished",  # the log directory or the open segment is gone
    "refused",  # under a segment's name lies no regular file: not opened
]


LARGEST = 1 << 53
"""Largest figure that is believed: up to here readers of JSON agree on integers, and sums of
such figures fit into the 64 bits of the wire and of the history."""


def whole(value: object) -> int | None:
    """Return an integer of believable size, or None for anything else: JSON bounds none.

    >>> [whole(value) for value in (-3, 1 << 60, True, 1.0, "1", None)]
    [-3, None, None, None, None, None]
    """
    return value if type(value) is int and -LARGEST <= value <= LARGEST else None


def figure(value: object) -> int | float | None:
    """Return a number that can be reckoned with: a believable integer, or a finite fraction.

    >>> [figure(value) for value in (-3, 1 << 60, 0.5, float("inf"), True, "1")]
    [-3, None, 0.5, None, None, None]
    """
    return value if isinstance(value, float) and isfinite(value) else whole(value)


class Record(Struct, frozen=True, gc=False):
    """One record of a log: its number, its two times, its kind and all its members.

    Read from bytes it is part of no cycle: the collector need not look at it.
    """

    lsn: int
    t_us: int
    m_us: int
    kind: str
    members: dict[str, Any]
    """Every member of the line but the checksum, known or not (`lsn`, `t`, `m`, `k` included)."""

    @property
    def experiment(self) -> int | None:
        """Number of the experiment in progress, where the record names one."""
        return whole(self.members.get("x"))

    def number(self, name: str) -> int | None:
        """Return an integer member, or None when it is absent, of another type or size."""
        return whole(self.members.get(name))

    def text(self, name: str, default: str = "") -> str:
        """Return a text member, or `default` when it is absent or of another type."""
        value = self.members.get(name)
        return value if isinstance(value, str) else default


class Fault(Struct, frozen=True):
    """Something wrong at a place of a log; shown and counted, never a reason to stop."""

    kind: FaultKind
    segment: int
    """First lsn of the segment it was found in."""
    offset: int
    """Byte offset in that segment."""
    length: int = 0
    detail: str = ""
    lsn: int | None = None
    """First lsn after the fault, where known."""
    missing: int = 0
    """Count of lsn that are missing because of it, where known."""


class Position(Struct, frozen=True, order=True):
    """Where reading goes on: the truth, while file events are hints."""

    segment: int
    """First lsn of the segment."""
    offset: int = 0
    next_lsn: int | None = None
    """The lsn expected at `offset`; None when unknown."""


LogName = Literal["agent", "guard"]
"""Which log: the agent's own, or `guard.wal`."""


class Batch(Struct, frozen=True):
    """What one read of one segment gave, and where reading goes on after it."""

    log: LogName
    records: list[Record]
    faults: list[Fault]
    start: Position
    """Where this read began."""
    end: Position
    """Where the next read of this segment goes on; stored together with the rows."""
    live: bool = True
    """Read at the newest end of the log; False for an older segment that is caught up on."""
