"""When the next checkpoint is due by habit, where nobody states a cadence."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from memwatch.analytics.checkpoints.course import Seen, intervals_s

_LEAST = 3
_WINDOW = 16
_LEAST_PATIENCE_S = 60.0
"""A graph writes several a second, and stands still between two turns."""


class Habit(NamedTuple):
    """What the newest intervals lead to expect."""

    due_in_s: float
    """Negative when it is late."""
    patience_s: float
    """Overdue so long after the newest one."""
    overdue: bool


def habit_of(course: Sequence[Seen], now_us: int, grace: float) -> Habit | None:
    """Judge by the median of the newest intervals; None before there are three.

    Overdue is what is `grace` times as late, and later than any of these was: a program that now
    and then thinks for long is no alarm each time.
    """
    intervals = intervals_s(course[-_WINDOW:])
    if len(intervals) < _LEAST:
        return None
    usual_s, longest_s = median(intervals), max(intervals)
    age_s = max(now_us - course[-1].at_us, 0) / 1e6
    patience_s = max(grace * max(usual_s, longest_s), _LEAST_PATIENCE_S)
    return Habit(usual_s - age_s, patience_s, age_s > patience_s)
