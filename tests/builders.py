"""Values for tests, everything defaulted."""

from __future__ import annotations

from typing import Any

from memwatch.config.schema import Profile
from memwatch.domain.record import Batch, Fault, LogName, Position, Record
from memwatch.domain.sample import TreeSample
from memwatch.wal import codec

T0_US = 1_800_000_000_000_000
M0_US = 1_000_000_000


def record(lsn: int, kind: str, at_s: float = 0.0, /, **members: Any) -> Record:
    """Return a record `at_s` seconds after T0."""
    return Record(lsn, T0_US + round(at_s * 1e6), M0_US + round(at_s * 1e6), kind, members)


def batch(*records: Record, log: LogName = "agent", faults: tuple[Fault, ...] = ()) -> Batch:
    """Return a live batch of one segment, with the size that the records have as lines."""
    size = sum(len(line(r)) for r in records)
    first = records[0].lsn if records else 1
    last = records[-1].lsn if records else 0
    end = Position(first, size, last + 1)
    return Batch(log, list(records), list(faults), Position(first, 0, first), end)


def line(record: Record) -> bytes:
    """Return the line of a record."""
    return codec.encode(record.lsn, record.t_us, record.m_us, record.kind, record.members)


def tree(at_s: float, rss_bytes: int, *, alive: bool = True, processes: int = 1) -> TreeSample:
    """Return a look at a process tree."""
    return TreeSample(
        t_us=T0_US + round(at_s * 1e6),
        m_us=M0_US + round(at_s * 1e6),
        alive=alive,
        rss_bytes=rss_bytes,
        processes=processes,
    )


def tiers(**sizes: int) -> dict[str, Any]:
    """Return the `tiers` member of a sample record, one entry a megabyte."""
    return {
        name: {"entries": max(size // 1_000_000, 1), "bytes": size} for name, size in sizes.items()
    }


def profile(**settings: Any) -> Profile:
    """Return a profile with defaults but for `settings`."""
    return Profile(name="test", **settings)
