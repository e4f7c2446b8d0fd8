"""What happened since the last viewer closed: both logs folded into counts and words. Pure.

Counts simply add up, so older records may come after newer ones. What the agent says of itself
(experiments, modes) is counted as it says it. Source: D7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from memwatch.analytics.told import best_of
from memwatch.domain.control import SinceLeft
from memwatch.domain.level import LEVELS, Level, rank
from memwatch.domain.record import Fault, Record
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted

_KEPT_STATUSES = 16
_ROUTINE = "retention"
"""Purges by retention are many, and no news."""
_LOSSES = frozenset({"damaged", "gap", "overlong", "truncated", "replaced", "vanished", "refused"})
_HOLDS = frozenset({"paused", "read_only"})


class Tally(Struct, kw_only=True):
    """What was counted so far, and up to where: written down, it outlives the guard."""

    from_us: int
    """Wall time; what is older does not count."""
    first: bool = False
    agent_lsn: int = 0
    """Newest record of the agent's log that is in it."""
    levels: dict[str, int] = {}
    experiments: dict[str, int] = {}
    best: str = ""
    best_lsn: int = 0
    checkpoints: int = 0
    broken: int = 0
    """Checkpoints of another program that nobody finished."""
    purges: int = 0
    freed_bytes: int = 0
    plans: int = 0
    last_plan: str = ""
    holds: int = 0
    lost: int = 0
    starts: int = 0
    alerts: int = 0
    guards: int = 0
    """Guards that began, the first one too where nobody ever looked."""


class SinceFold:
    """Counts the records of a span that is still going on. Not thread-safe."""

    def __init__(self, from_us: int, *, first: bool = False) -> None:
        """Count from a wall time on; `first`: nobody ever looked."""
        self.tally = Tally(from_us=from_us, first=first)
        self._known_lsn = 0

    @classmethod
    def resume(cls, known: object) -> SinceFold | None:
        """Go on from a tally that was written down; None when it cannot be read."""
        try:
            tally = msgspec.convert(known, Tally)
        except msgspec.ValidationError:
            return None
        fold = cls(tally.from_us)
        fold.tally, fold._known_lsn = tally, tally.agent_lsn
        return fold

    def known(self) -> dict[str, Any]:
        """Return the tally as a record can hold it."""
        built: dict[str, Any] = msgspec.to_builtins(self.tally)
        return built

    def take(self, records: Iterable[Record]) -> None:
        """Take records of the agent's log, each once."""
        tally = self.tally
        for record in records:
            if record.t_us < tally.from_us or record.lsn <= self._known_lsn:
                continue
            tally.agent_lsn = max(tally.agent_lsn, record.lsn)
            handler = _AGENT.get(record.kind)
            if handler is not None:
                handler(tally, record)

    def take_faults(self, faults: Iterable[Fault]) -> None:
        """Take what was found wrong at the live end of the agent's log."""
        self.tally.lost += sum(
            fault.kind in _LOSSES and (fault.lsn is None or fault.lsn > self._known_lsn)
            for fault in faults
        )

    def take_guard(self, record: Record) -> None:
        """Take a record of the guard's own log, each once."""
        handler = _GUARD.get(record.kind)
        if handler is not None and record.t_us >= self.tally.from_us:
            handler(self.tally, record)

    def since(self) -> SinceLeft:
        """Return what is known now."""
        tally = self.tally
        levels: list[Level] = [level for level in LEVELS if level in tally.levels]
        return SinceLeft(
            from_us=tally.from_us,
            first=tally.first,
            highest=max(levels, key=rank, default="normal"),
            levels=dict(tally.levels),
            experiments=dict(tally.experiments),
            best=tally.best,
            checkpoints=tally.checkpoints,
            purges=tally.purges,
            freed_bytes=tally.freed_bytes,
            plans=tally.plans,
            holds=tally.holds,
            lost=tally.lost,
            starts=tally.starts,
            alerts=tally.alerts,
            lines=_lines(tally),
        )


# -- of the agent's log --------------------------------------------------------------------------


def _experiment_end(tally: Tally, record: Record) -> None:
    status = inert(record.text("status", "done"), 20)
    room = status in tally.experiments or len(tally.experiments) < _KEPT_STATUSES
    name = status if room else "other"
    tally.experiments[name] = tally.experiments.get(name, 0) + 1
    best = best_of(record)
    if best and record.lsn > tally.best_lsn:
        tally.best_lsn, tally.best = record.lsn, best


def _checkpoint(tally: Tally, _: Record) -> None:
    tally.checkpoints += 1


def _purge(tally: Tally, record: Record) -> None:
    if record.text("cause") != _ROUTINE:
        tally.purges += 1
        tally.freed_bytes += max(record.number("freed_bytes") or 0, 0)


def _mode(tally: Tally, record: Record) -> None:
    tally.holds += record.text("mode") in _HOLDS


def _start(tally: Tally, _: Record) -> None:
    tally.starts += 1


def _recovery(tally: Tally, record: Record) -> None:
    lost = record.members.get("lost")
    tally.lost += isinstance(lost, list) and bool(lost)


_AGENT: dict[str, Callable[[Tally, Record], None]] = {
    "experiment.end": _experiment_end,
    "checkpoint.commit": _checkpoint,
    "purge.end": _purge,
    "mode": _mode,
    "run.begin": _start,
    "recovery": _recovery,
}


# -- of the guard's own --------------------------------------------------------------------------


def _level(tally: Tally, record: Record) -> None:
    level = record.text("level")
    if level in LEVELS and level != "normal" and record.text("resource", "memory") == "memory":
        tally.levels[level] = tally.levels.get(level, 0) + 1


def _plan(tally: Tally, record: Record) -> None:
    """Count a plan when it begins; one is in flight at a time, so the last name is enough."""
    name = record.text("id")
    begun = record.text("state") not in ("proposed", "refused", "expired")
    if begun and record.members.get("dry") is not True and name != tally.last_plan:
        tally.last_plan = name
        tally.plans += 1


def _alert(tally: Tally, record: Record) -> None:
    tally.alerts += record.text("state") == "raised"


def _gap(tally: Tally, _: Record) -> None:
    tally.lost += 1


def _store(tally: Tally, record: Record) -> None:
    count = max(record.number("count") or 1, 1)
    tally.checkpoints += count * (record.text("event") == "committed")
    tally.broken += count * (record.text("event") == "incomplete")


def _guard(tally: Tally, _: Record) -> None:
    tally.guards += 1


_GUARD: dict[str, Callable[[Tally, Record], None]] = {
    "level": _level,
    "plan": _plan,
    "alert": _alert,
    "gap": _gap,
    "guard.begin": _guard,
    "store": _store,
}


# -- in words ------------------------------------------------------------------------------------


def _lines(tally: Tally) -> tuple[str, ...]:
    """Return what happened, most important first; one line when nothing did."""
    again = tally.guards - tally.first
    lines = (
        f"{counted(tally.lost, 'loss', 'losses')} of records: see the log" if tally.lost else "",
        f"the agent began {counted(tally.starts, 'time')}" if tally.starts else "",
        f"the guard began again {counted(again, 'time')}" if again > 0 else "",
        _broken_line(tally),
        _level_line(tally),
        _experiment_line(tally),
        _upkeep_line(tally),
        counted(tally.alerts, "alert") if tally.alerts else "",
    )
    return tuple(line for line in lines if line) or ("nothing of note happened",)


def _broken_line(tally: Tally) -> str:
    return f"{counted(tally.broken, 'checkpoint')} left incomplete" if tally.broken else ""


def _level_line(tally: Tally) -> str:
    parts = [
        f"{level} {tally.levels[level]}×" for level in reversed(LEVELS) if level in tally.levels
    ]
    parts += [counted(tally.plans, "plan")] if tally.plans else []
    parts += [f"held {counted(tally.holds, 'time')}"] if tally.holds else []
    return ", ".join(parts)


def _experiment_line(tally: Tally) -> str:
    count = sum(tally.experiments.values())
    if not count:
        return ""
    most = sorted(tally.experiments.items(), key=lambda it: (-it[1], it[0]))[:4]
    line = counted(count, "experiment")
    line += f" ({', '.join(f'{number} {status}' for status, number in most)})"
    return line + (f", best {tally.best}" if tally.best else "")


def _upkeep_line(tally: Tally) -> str:
    parts = []
    if tally.checkpoints:
        parts.append(counted(tally.checkpoints, "checkpoint"))
    if tally.purges:
        freed = f" freed {bytes_text(tally.freed_bytes)}" if tally.freed_bytes else ""
        parts.append(counted(tally.purges, "purge") + freed)
    return ", ".join(parts)
