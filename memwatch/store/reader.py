"""Questions to the history, each with a deadline, from any thread.

Every course is bucketed in SQL to what is asked for, keeping least, greatest and last value.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from memwatch.domain.sample import GAP, Column
from memwatch.domain.snapshot import Event, Severity
from memwatch.domain.text import inert
from memwatch.store.database import Database

_SEVERITIES: dict[str, Severity] = {s: s for s in ("info", "notice", "warning", "error")}
_LATEST_US = (1 << 62) - 1

CoarsePoint = tuple[int, float, float, float]
"""Time of the last sample of a bucket, then least, greatest and last value."""


class StoredSample(Struct, frozen=True, kw_only=True):
    """The newest sample of a resource; what it does not hold is None."""

    t_us: int
    used: int | None
    limit: int | None
    entries: int | None
    tokens: int | None


class Reader:
    """Reads a history while it is written. Every call may raise StoreError."""

    def __init__(self, database: Database, deadline_s: float = 2.0) -> None:
        self._database = database
        self._deadline_s = deadline_s

    def series(
        self, resource: str, t0_us: int, t1_us: int, columns: int, max_gap_us: int
    ) -> list[Column]:
        """Cut [t0_us, t1_us) into columns; `entries:<tier>` counts what `tier:<tier>` holds.

        Between two samples at most `max_gap_us` apart (and behind the newest, for as long) the
        value is held; elsewhere a column without a sample is a gap.
        """
        t0_us, t1_us = _bounded(t0_us), _bounded(t1_us)
        if t1_us <= t0_us or columns < 1:
            return []
        entries = resource.startswith("entries:")
        rows = self._rows(
            "series",
            resource=resource.replace("entries:", "tier:", 1) if entries else resource,
            entries=entries,
            t0_us=t0_us,
            t1_us=t1_us,
            reach_us=min(max_gap_us, t0_us),
            columns=columns,
        )
        return _columns(rows, t0_us, t1_us, columns, max_gap_us)

    def coarse(self, t0_us: int, bucket_s: int = 60) -> dict[str, list[CoarsePoint]]:
        """Return the course of each resource since `t0_us`, a point per bucket that has one.

        `entries:<tier>` are resources of their own here.
        """
        found: dict[str, list[CoarsePoint]] = {}
        bucket_us = max(bucket_s, 1) * 1_000_000
        for resource, *point in self._rows("coarse", t0_us=_bounded(t0_us), bucket_us=bucket_us):
            t_us, least, greatest, last = point
            found.setdefault(resource, []).append((t_us, least, greatest, last))
        return found

    def latest_samples(self) -> dict[str, StoredSample]:
        """Return the newest sample of each resource."""
        return {
            resource: StoredSample(
                t_us=t_us, used=used, limit=limit, entries=entries, tokens=tokens
            )
            for resource, t_us, used, limit, entries, tokens in self._rows("latest_samples")
        }

    def experiments_before(self, lsn: int) -> dict[str, int]:
        """Return the count of ended experiments by status, of records below an lsn.

        For what was pruned from the log: the history still knows it.
        """
        return dict(self._rows("experiments_before", lsn=lsn))

    def events(
        self, t0_us: int, t1_us: int, limit: int, kinds: tuple[str, ...] = ()
    ) -> list[Event]:
        """Return the newest events of [t0_us, t1_us), oldest first; `seq` is 0: they are past.

        Of all kinds when none is named.
        """
        span = {"t0_us": _bounded(t0_us), "t1_us": _bounded(t1_us)}
        rows = self._rows("events", **span, kinds=list(kinds), count=max(limit, 0))
        return [
            Event(
                seq=0,
                t_us=t_us,
                kind=inert(kind, 40),
                text=inert(text),
                severity=_SEVERITIES.get(severity, "info"),
                origin=inert(origin, 20),
            )
            for t_us, kind, severity, origin, text in reversed(rows)
        ]

    def _rows(self, query: str, **parameters: object) -> list[tuple[Any, ...]]:
        return self._database.rows(query, self._deadline_s, **parameters)


def _bounded(t_us: int) -> int:
    return max(0, min(t_us, _LATEST_US))


def _columns(
    rows: list[tuple[Any, ...]], t0_us: int, t1_us: int, columns: int, max_gap_us: int
) -> list[Column]:
    """Lay rows (column, least, greatest, last, first time, last time) out, holding values."""
    found: list[Column] = []
    held, held_us = None, 0
    for column, least, greatest, last, first_us, last_us in [*rows, _END]:
        while len(found) < min(column, columns):
            edge_us = t0_us + (t1_us - t0_us) * len(found) // columns
            age_us = (edge_us if first_us is None else first_us) - held_us
            found.append(GAP if held is None or age_us > max_gap_us else Column(held, held, held))
        if 0 <= column < columns:
            found.append(Column(least, greatest, last))
        held, held_us = last, last_us
    return found


_END = (1 << 62, None, None, None, None, 0)
"""Behind all rows."""
