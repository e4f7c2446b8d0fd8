"""Events as they come with snapshots, put together without holes."""

from __future__ import annotations

from msgspec import Struct

from memwatch.domain.snapshot import Event, Snapshot

KEPT = 200


class EventLog(Struct, frozen=True, kw_only=True):
    """The newest events, oldest first, without a hole."""

    events: tuple[Event, ...] = ()
    complete: bool = False
    """False = there are older ones to ask the session for."""

    @property
    def last_seq(self) -> int:
        """Number of the newest event held."""
        return self.events[-1].seq if self.events else 0


def with_snapshot(log: EventLog, snapshot: Snapshot) -> EventLog:
    """Add what a snapshot brings; a hole, or a guard that counts anew, leaves it incomplete."""
    if snapshot.event_seq == log.last_seq:
        return log
    known = log.events if snapshot.event_seq > log.last_seq else ()
    last = known[-1].seq if known else 0
    newer = tuple(sorted((e for e in snapshot.events if e.seq > last), key=lambda e: e.seq))
    joined = bool(newer) and newer[0].seq == last + 1
    if not joined:
        return EventLog(events=newer)
    return EventLog(events=(*known, *newer)[-KEPT:], complete=log.complete or last == 0)


def with_answer(log: EventLog, answer: list[Event]) -> EventLog:
    """Take the events that the session gave; those of a newer snapshot stay."""
    found = {event.seq: event for event in (*answer, *log.events)}
    ordered = tuple(found[seq] for seq in sorted(found))
    return EventLog(events=ordered[-KEPT:], complete=True)
