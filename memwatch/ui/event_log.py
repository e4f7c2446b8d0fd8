"""Events as they come with snapshots, put together without holes."""

from __future__ import annotations

from msgspec import Struct

from memwatch.domain.snapshot import Event, Snapshot

KEPT = 200
KEPT_NOTABLE = 40


class EventLog(Struct, frozen=True, kw_only=True):
    """The newest events, oldest first, without a hole; and notable ones from before them."""

    events: tuple[Event, ...] = ()
    complete: bool = False
    """False = there are older ones to ask the session for."""
    start_id: str = ""
    """The start of the guard that numbered them."""

    @property
    def last_seq(self) -> int:
        """Number of the newest event held."""
        return self.events[-1].seq if self.events else 0


def is_notable(event: Event) -> bool:
    """Return whether an event is more than routine."""
    return event.severity != "info"


def _kept(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Return the newest events, and of those before them the newest that are notable."""
    older = [event for event in events[:-KEPT] if is_notable(event)]
    return (*older[-KEPT_NOTABLE:], *events[-KEPT:])


def with_snapshot(log: EventLog, snapshot: Snapshot) -> EventLog:
    """Add what a snapshot brings; a hole, or a guard that counts anew, leaves it incomplete."""
    if snapshot.guard.start_id != log.start_id:
        log = EventLog(start_id=snapshot.guard.start_id)
    if snapshot.event_seq == log.last_seq:
        return log
    known = log.events if snapshot.event_seq > log.last_seq else ()
    last = known[-1].seq if known else 0
    newer = tuple(sorted((e for e in snapshot.events if e.seq > last), key=lambda e: e.seq))
    joined = bool(newer) and newer[0].seq == last + 1
    if not joined:
        return EventLog(events=newer, start_id=log.start_id)
    complete = log.complete or last == 0
    return EventLog(events=_kept((*known, *newer)), complete=complete, start_id=log.start_id)


def with_answer(log: EventLog, answer: list[Event], start_id: str) -> EventLog:
    """Take the events that the session gave; those of a newer snapshot stay.

    `start_id` is that of the guard that was asked: what another one numbered is left out.
    """
    if start_id != log.start_id:
        return log
    found = {event.seq: event for event in (*answer, *log.events)}
    ordered = tuple(found[seq] for seq in sorted(found))
    return EventLog(events=_kept(ordered), complete=True, start_id=start_id)
