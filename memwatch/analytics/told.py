"""What single records of a log tell, with the instant they were written at."""

from __future__ import annotations

from bisect import insort
from typing import NamedTuple, TypeVar

from memwatch.domain.record import Record, figure, whole
from memwatch.domain.text import inert


class Instant(NamedTuple):
    """When a record was written, by both clocks, and its place in the log."""

    lsn: int = 0
    t_us: int = 0
    """Wall time: for people. Ages and rates go by the other clock."""
    m_us: int = 0
    """CLOCK_BOOTTIME of the boot that the record was written in."""

    @classmethod
    def of(cls, record: Record) -> Instant:
        """Return the instant of a record."""
        return cls(record.lsn, record.t_us, record.m_us)


class Told:
    """Something that one record tells."""

    def __init__(self, record: Record) -> None:
        self.at = Instant.of(record)

    @property
    def lsn(self) -> int:
        """Number of the record."""
        return self.at.lsn

    @property
    def t_us(self) -> int:
        """Wall time of the record."""
        return self.at.t_us


class Start(Told):
    """One `run.begin`."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.start_id = inert(record.text("start_id"), 80)
        self.boot_id = record.text("boot")
        self.pid = record.number("pid") or 0
        limits = record.members.get("limits")
        limit = whole(limits.get("memory_bytes")) if isinstance(limits, dict) else None
        self.memory_limit_bytes = limit if limit is not None and limit > 0 else None


class End(Told):
    """One `run.end`."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.status = inert(record.text("status", "done"), 20)
        self.reason = inert(record.text("reason"), 120)


class ExperimentEnd(Told):
    """One `experiment.end`."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.number = record.experiment
        self.status = inert(record.text("status", "done"), 20)
        self.duration_us = record.number("duration_us")


def best_of(record: Record) -> str:
    """Return what an `experiment.end` calls the best so far, in words; empty where it does not."""
    metrics = record.members.get("metrics")
    inner = metrics.get("best") if isinstance(metrics, dict) else None
    said = record.members.get("best", inner)
    best = said if isinstance(said, str) else figure(said)
    if best is None:
        return ""
    return inert(f"{best:.4g}" if isinstance(best, float) else str(best), 40)


class Purge(Told):
    """One `purge.end`."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.tier = inert(record.text("tier"), 40)
        self.how = inert(record.text("how"), 20)
        self.cause = inert(record.text("cause"), 20)
        self.entries = record.number("entries")
        self.freed_bytes = record.number("freed_bytes")
        self.duration_us = record.number("duration_us") or 0


Kept = TypeVar("Kept", bound=Told)


def keep(told: list[Kept], item: Kept, limit: int) -> None:
    """Keep the newest `limit` by lsn, whatever the order they come in."""
    insort(told, item, key=lambda one: one.lsn)
    if len(told) > limit:
        del told[0]
