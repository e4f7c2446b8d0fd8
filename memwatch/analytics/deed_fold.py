"""What an agent's log tells of deeds that leave no record of their own kind, and of their time.

Requests from the moment the agent took them to their end, changes of its mode, compactions,
changes of what a tier keeps, starts, and the beginnings of experiments. The newest of each, in any
order of segments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memwatch.analytics.told import Instant, Start, Told, keep
from memwatch.domain.record import Record
from memwatch.domain.text import inert

_KEPT = 96
_KEPT_STARTS = 16
_FINAL = frozenset({"done", "refused", "failed", "expired"})


class Asked(Struct, frozen=True):
    """A request as the agent's log tells it."""

    id: str
    op: str
    origin: str
    state: str
    taken: Instant
    """The first that the agent said of it."""
    ended: Instant | None = None
    detail: str = ""
    result: dict[str, Any] = {}
    dry_run: bool = False


class ModeChange(Told):
    """One `mode`."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.mode = inert(record.text("mode"), 20)
        self.cause = inert(record.text("cause"), 120)


class Compaction(Told):
    """One `context.compact`: the agent made its context shorter."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.tier = inert(record.text("tier", "context"), 40)
        self.how = inert(record.text("kind"), 20)
        self.before_tokens = record.number("before_tokens")
        self.after_tokens = record.number("after_tokens")
        self.duration_us = max(record.number("duration_us") or 0, 0)


class Retained(Told):
    """One `retention` that was asked for: a tier keeps something else."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.tier = inert(record.text("tier"), 40)


class ExperimentBegin(Told):
    """One `experiment.begin`."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.phase = inert(record.text("phase"), 20)


class Begun(Told):
    """One start of the agent, and the last record of the start before it."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self.start = Start(record)
        self.died: Instant | None = None
        """When the start before it was last heard of; None for the first, and before it is read."""
        self.well = False
        """The start before it ended by its own word."""


class DeedFold:
    """Folds them."""

    def __init__(self) -> None:
        self.starts: list[Begun] = []
        self.modes: list[ModeChange] = []
        self.compactions: list[Compaction] = []
        self.retained: list[Retained] = []
        self.experiments: list[ExperimentBegin] = []
        self.requests: dict[str, Asked] = {}
        self._ends: dict[int, tuple[Instant, bool]] = {}
        """Last record of each start that is known, by the number that follows it."""

    def take(self, record: Record) -> None:
        """Take a record of one of the kinds that are told here."""
        _HANDLERS[record.kind](self, record)

    def ends(self, last: Record) -> None:
        """Say that a record is the last that was read in one piece: a start may follow it."""
        self._ends[last.lsn + 1] = (Instant.of(last), last.kind == "run.end")
        while len(self._ends) > _KEPT:
            del self._ends[next(iter(self._ends))]
        for start in self.starts:
            if start.lsn == last.lsn + 1:
                self._join(start)

    def _begin(self, record: Record) -> None:
        start = Begun(record)
        self._join(start)
        keep(self.starts, start, _KEPT_STARTS)

    def _join(self, start: Begun) -> None:
        found = self._ends.get(start.lsn)
        if found is not None:
            start.died, start.well = found

    def _mode(self, record: Record) -> None:
        keep(self.modes, ModeChange(record), _KEPT)

    def _compact(self, record: Record) -> None:
        keep(self.compactions, Compaction(record), _KEPT)

    def _retention(self, record: Record) -> None:
        if record.text("what") == "asked":
            keep(self.retained, Retained(record), _KEPT)

    def _experiment(self, record: Record) -> None:
        keep(self.experiments, ExperimentBegin(record), _KEPT)

    def _command(self, record: Record) -> None:
        name = inert(record.text("id"), 100)
        if not name:
            return
        known, at, state = self.requests.get(name), Instant.of(record), record.text("state")
        final = state in _FINAL
        taken = at if known is None or at.lsn < known.taken.lsn else known.taken
        if known is not None and not final:
            self.requests[name] = replace(known, taken=taken)
            return
        result = record.members.get("result")
        self.requests[name] = Asked(
            id=name,
            op=inert(record.text("op"), 40),
            origin=inert(record.text("origin", "operator"), 20),
            state=inert(state, 12),
            taken=taken,
            ended=at if final else None,
            detail=inert(record.text("detail"), 120),
            result=result if isinstance(result, dict) else {},
            dry_run=record.members.get("dry_run") is True,
        )
        while len(self.requests) > _KEPT:
            del self.requests[min(self.requests, key=lambda one: self.requests[one].taken.lsn)]


_HANDLERS: dict[str, Callable[[DeedFold, Record], None]] = {
    "run.begin": DeedFold._begin,
    "mode": DeedFold._mode,
    "context.compact": DeedFold._compact,
    "retention": DeedFold._retention,
    "experiment.begin": DeedFold._experiment,
    "command": DeedFold._command,
}
