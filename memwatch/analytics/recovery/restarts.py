"""Starts of the agent as its log tells them: how long each took, and what it had to recover."""

from __future__ import annotations

from typing import Any

from memwatch.analytics.recovery.costs import StartSeen
from memwatch.analytics.recovery.sound import sound
from memwatch.analytics.told import Instant
from memwatch.domain.record import Record, whole
from memwatch.domain.recovery import MeasuredTerm, PastRecovery

_KEPT = 8
_TERMS = ("load", "read", "replay")


class Restarts:
    """Folds `run.begin` and `recovery` records, in any order of segments; keeps the newest."""

    def __init__(self) -> None:
        self._begun: dict[int, Record] = {}
        self._recovered: dict[int, Record] = {}

    def take(self, record: Record) -> None:
        """Take one `run.begin` or `recovery`."""
        kept = self._begun if record.kind == "run.begin" else self._recovered
        kept[record.lsn] = record
        while len(kept) > _KEPT:
            del kept[min(kept)]

    def starts(self) -> tuple[StartSeen, ...]:
        """Return how long the starts took, the recovery of each aside, newest first."""
        found = ((begin, _start_s(begin, recovery)) for begin, recovery in self._pairs())
        return tuple(StartSeen(begin.t_us, s) for begin, s in found if s is not None)

    def restarts(self) -> tuple[PastRecovery, ...]:
        """Return the starts that recovered something, newest first.

        From the process's begin until the run went on; of persisted values none is read yet.
        """
        found = (
            _restart(begin, recovery) for begin, recovery in self._pairs() if recovery is not None
        )
        return tuple(one for one in found if one is not None)

    def began(self, done: PastRecovery) -> Instant:
        """Return when a restart's first record was written: what was known before is older."""
        begins = (
            begin for begin, recovery in self._pairs() if recovery and recovery.t_us == done.t_us
        )
        return next((Instant.of(begin) for begin in begins), Instant(t_us=done.t_us))

    def _pairs(self) -> list[tuple[Record, Record | None]]:
        """Return the starts, each with the recovery that belongs to it, newest first."""
        pairs: list[tuple[Record, Record | None]] = []
        successor = 1 << 62
        for lsn in sorted(self._begun, reverse=True):
            own = (r for at, r in self._recovered.items() if lsn < at < successor)
            pairs.append((self._begun[lsn], min(own, key=lambda r: r.lsn, default=None)))
            successor = lsn
        return pairs


def _start_s(begin: Record, recovery: Record | None) -> float | None:
    up_us = begin.number("up_us")
    took_us = recovery.number("duration_us") if recovery else 0
    if up_us is None or took_us is None or up_us <= took_us:
        return None
    return (up_us - took_us) / 1e6


def _restart(begin: Record, recovery: Record) -> PastRecovery | None:
    start_s, up_us = _start_s(begin, recovery), begin.number("up_us")
    told, lost = recovery.members.get("terms"), recovery.members.get("lost")
    if start_s is None or up_us is None or not isinstance(told, dict):
        return None
    terms = [_term(name, told[name]) for name in _TERMS if isinstance(told.get(name), dict)]
    found = PastRecovery(
        t_us=recovery.t_us,
        total_s=(up_us + max(recovery.m_us - begin.m_us, 0)) / 1e6,
        kind="restart",
        terms=(MeasuredTerm("start", start_s, 0), *terms),
        bytes=sum(term.bytes for term in terms if term.name != "replay"),
        state_bytes=max(recovery.number("state_bytes") or 0, 0),
        lossy=bool(lost),
    )
    return sound(found)


def _term(name: str, told: dict[str, Any]) -> MeasuredTerm:
    us, size, records = (
        max(whole(told.get(member)) or 0, 0) for member in ("us", "bytes", "records")
    )
    return MeasuredTerm(name, us / 1e6, size, records)
