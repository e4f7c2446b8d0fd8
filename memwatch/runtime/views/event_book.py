"""The newest events of a run, numbered as they come in, with what was stored put before them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec.structs import replace

from memwatch.analytics.narrate import event_of_fault
from memwatch.domain.record import Fault, Record
from memwatch.domain.snapshot import Event

EVENTS = 512


class EventBook:
    """Holds the newest `EVENTS`. Not locked: the ring is."""

    def __init__(self) -> None:
        self._held: deque[Event] = deque(maxlen=EVENTS)
        self.seq = 0
        """Sequence number of the newest."""
        self._complete_since_us = 0

    def tell(self, event: Event | None) -> None:
        """Keep an event under the next number."""
        if event is not None:
            self.seq += 1
            self._held.append(replace(event, seq=self.seq))

    def tell_fault(self, fault: Fault, records: list[Record], wall_us: int) -> None:
        """Tell what is wrong in the log, at the time of the records around it, and once only."""
        after = (r.t_us for r in records if fault.lsn is not None and r.lsn >= fault.lsn)
        t_us = next(after, records[-1].t_us if records else wall_us)
        event = event_of_fault(fault, t_us)
        if all(event.text != held.text for held in self._held):
            self.tell(event)

    def prefill(self, stored: Iterable[Event], wall_us: int) -> None:
        """Put stored events before those that were just read: once, before anyone looks.

        Between the two there may be some that come into the history only later.
        """
        held = list(self._held)
        texts = {event.text for event in held if event.kind == "fault"}
        told = [event for event in held if event.kind != "fault"]
        first_us = min((e.t_us for e in held if e.origin == "agent"), default=None)
        own_us = min((e.t_us for e in told if e.origin == "guard"), default=None)
        before_us = {"agent": first_us, "guard": own_us}
        older = [
            event
            for event in stored
            if ((until_us := before_us.get(event.origin)) is None or event.t_us < until_us)
            and event.text not in texts
        ]
        self._complete_since_us = wall_us if first_us is None else first_us
        merged = sorted([*older, *held], key=lambda event: event.t_us)[-EVENTS:]
        self.seq = 0
        self._held.clear()
        for event in merged:
            self.tell(event)

    def newest(self, after: int, limit: int, kinds: tuple[str, ...] = ()) -> list[Event]:
        """Return the newest events with a number above `after` (all, when it is ahead of us)."""
        since = after if after <= self.seq else 0
        return _of_kinds([event for event in self._held if event.seq > since], kinds)[-limit:]

    def between(self, t0_us: int, t1_us: int, kinds: tuple[str, ...] = ()) -> list[Event]:
        """Return the events held of [t0_us, t1_us), in order of time."""
        found = [event for event in self._held if t0_us <= event.t_us < t1_us]
        return sorted(_of_kinds(found, kinds), key=lambda event: event.t_us)

    def since(self) -> int | None:
        """Return the wall time from which on all events are held; None while there are none.

        Faults of older segments come late and prove nothing.
        """
        held = [event.t_us for event in self._held if event.kind != "fault"]
        return max(min(held), self._complete_since_us) if held else None


def _of_kinds(events: list[Event], kinds: tuple[str, ...]) -> list[Event]:
    return [event for event in events if not kinds or event.kind in kinds]
