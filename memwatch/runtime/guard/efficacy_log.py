"""What interventions did, written to `guard.wal` as more of it is known, and read again (R13).

A record at 10 s, at 10 min and when nothing can change any more; a guard that begins goes on with
what the one before it measured. Runs on the clerk's thread, as it writes files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from memwatch.domain.clock import Clock
from memwatch.domain.intervention import Intervention
from memwatch.domain.record import Record, figure
from memwatch.domain.text import inert
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.views.deed_watch import STAGES, Known
from memwatch.runtime.views.intervention_view import InterventionView

KIND: Final = "efficacy"
_WIDE: Final = 200
_MANY: Final = 32
_MOST: Final = 512
"""Of what a full disk refuses the newest are kept."""
_AT_ONCE: Final = 50
"""Records of one look: the rest waits for the next, so that others may write between."""
_BURST: Final = 300
_PER_S: Final = 1.0
"""Of an agent that does very much, and on and on, no more is written: the log stays small."""


class EfficacyLog:
    """Writes down what a view learns."""

    def __init__(self, view: InterventionView, recorder: Recorder, clock: Clock) -> None:
        self._view = view
        self._recorder = recorder
        self._clock = clock
        self._waiting: deque[Known] = deque(maxlen=_MOST)
        self._allowed: float = _BURST
        self._looked_us = clock.boot_us()
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each record that was written."""

    def restore(self, records: Iterable[Record]) -> None:
        """Take `efficacy` records of a guard before this one, in their order."""
        found: dict[str, Known] = {}
        for record in records:
            known = restored(record)
            if known is not None:
                found.pop(known.row.id, None)
                found[known.row.id] = known
        self._view.recall(found.values())

    def look(self) -> None:
        """Write down what is new; what a full disk refuses is tried again."""
        now_us = self._clock.boot_us()
        self._waiting += self._view.news(now_us)
        passed_s, self._looked_us = (now_us - self._looked_us) / 1e6, now_us
        self._allowed = min(self._allowed + passed_s * _PER_S, _BURST)
        for _ in range(min(len(self._waiting), _AT_ONCE, int(self._allowed))):
            record = self._recorder.append(KIND, members(self._waiting[0]))
            if not record.lsn:
                break
            self._waiting.popleft()
            self._allowed -= 1
            self.tell(record)


def members(known: Known) -> dict[str, Any]:
    """Return what a record says of an intervention; what is not known is left out."""
    said: dict[str, Any] = {"at": known.stage, **msgspec.to_builtins(known.row)}
    said["effects"] = [{**msgspec.to_builtins(one), "unit": one.unit} for one in known.row.effects]
    return _without_empty(said)


def restored(record: Record) -> Known | None:
    """Return what a record says; None where it is none that we understand."""
    stage = next((one for one in STAGES if one and one == record.members.get("at")), None)
    if stage is None:
        return None
    names = Intervention.__struct_fields__
    said = {name: _inert(record.members[name]) for name in names if name in record.members}
    try:
        row = msgspec.convert(said, Intervention)
    except msgspec.ValidationError:
        return None
    return Known(stage, row) if row.id else None


def _without_empty(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value not in (None, "", [], ())}


def _inert(value: Any) -> Any:
    """Return a value as it may go onto a screen and into sums, whoever wrote the log."""
    if isinstance(value, str):
        return inert(value, _WIDE)
    if isinstance(value, list):
        return [_inert(one) for one in value[:_MANY]]
    if isinstance(value, dict):
        return {str(name): _inert(one) for name, one in list(value.items())[:_MANY]}
    return value if isinstance(value, bool) else figure(value)
