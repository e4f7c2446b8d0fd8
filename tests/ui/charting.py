"""Courses for chart tests, with everything defaulted."""

from __future__ import annotations

from collections.abc import Sequence

from memwatch.domain.snapshot import Event, Limit, Limits
from memwatch.ui.charts.course import Course, Span

MINUTE_US = 60_000_000
T0_US = 1_800_000_000_000_000
LIMITS = Limits(binding=Limit(name="policy", bytes=100))


def course(
    memory: Sequence[float | None],
    tiers: dict[str, Sequence[float]] | None = None,
    peaks: Sequence[float | None] | None = None,
    events: tuple[Event, ...] = (),
    step_us: int = MINUTE_US,
) -> Course:
    """Return a course with one column per value of `memory`."""
    first = T0_US // step_us
    now_us = (first + len(memory)) * step_us
    return Course(
        span=Span(first=first, step_us=step_us, columns=len(memory), now_us=now_us),
        memory=tuple(memory),
        peaks=tuple(memory if peaks is None else peaks),
        tiers=tuple((name, tuple(values)) for name, values in (tiers or {}).items()),
        events=events,
    )


def event(column: int, kind: str, text: str = "", severity: str = "info") -> Event:
    """Return an event in the middle of a column."""
    t_us = (T0_US // MINUTE_US + column) * MINUTE_US + MINUTE_US // 2
    return Event(seq=column + 1, t_us=t_us, kind=kind, text=text, severity=severity)  # type: ignore[arg-type]  # a word of the test
