"""When the work went from one phase to another: told of a change only, never of a first phase."""

from __future__ import annotations

from memwatch.domain.record import Record
from memwatch.domain.snapshot import Event
from memwatch.domain.text import inert


class PhaseChanges:
    """Follows one stretch of a log in its order.

    What was read out of order says nothing: numbers that come again begin a new stretch.
    """

    def __init__(self) -> None:
        self._lsn = 0
        self._phase = ""

    def event_of(self, record: Record) -> Event | None:
        """Return the change that an `experiment.begin` tells, None for no or an unknown one."""
        phase = inert(record.text("phase"), 20)
        if record.kind != "experiment.begin" or not phase:
            return None
        former = self._phase if record.lsn > self._lsn else ""
        self._lsn, self._phase = record.lsn, phase
        if former in ("", phase):
            return None
        text = f"phase {phase} (was {former})"
        return Event(seq=0, t_us=record.t_us, kind="phase", text=text, origin="agent")
