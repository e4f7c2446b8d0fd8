"""Share of a limit -> level: the literal rule (R8, R9), and bounds for hysteresis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memwatch.config.policy import Policy, ResourceRule, Thresholds
from memwatch.domain.level import PLANNED, Level, rank

Shares = tuple[float | None, float | None, float | None, float | None]
"""Of warn, intervene, emergency and hard; None for a level that there is not."""


class Bounds(NamedTuple):
    """Where levels of one resource begin and end."""

    enter: Shares
    leave: Shares


def is_gentle(level: Level) -> bool:
    """Say whether plans of a level may wait; from an emergency on nothing is waited for.

    A gentle plan wants a fresh measurement, and is dropped where usage falls or has recovered.

    >>> is_gentle("intervene"), is_gentle("emergency")
    (True, False)
    """
    return rank(level) < rank("emergency")


def level_of(share: float | None, thresholds: Thresholds) -> Level:
    """Return the level at a share of the limit; `normal` when nothing is known.

    >>> [level_of(s, Thresholds()) for s in (None, 0.59, 0.60, 0.75, 0.90, 0.95)]
    ['normal', 'normal', 'warn', 'intervene', 'emergency', 'hard']
    """
    at = (thresholds.warn, thresholds.intervene, thresholds.emergency, thresholds.hard)
    return "normal" if share is None else reached(share, at)


def reached(share: float, at: Sequence[float | None]) -> Level:
    """Return the highest level whose share is reached.

    >>> reached(0.8, (0.6, 0.75, None, None)), reached(0.1, (0.6, None, None, None))
    ('intervene', 'normal')
    """
    for place in (3, 2, 1, 0):
        threshold = at[place]
        if threshold is not None and share >= threshold:
            return PLANNED[place]
    return "normal"


def memory_bounds(policy: Policy, soft_share: float) -> Bounds:
    """Return the bounds of memory: warn begins at the soft limit in force (R9), the rest stays.

    Where the soft limit was lowered, the end of warn goes down with it: a level never ends above
    where it begins.
    """
    at, end = policy.thresholds, policy.exit
    gap = max(at.warn - end.warn, 0.0)
    return Bounds(
        enter=(soft_share, at.intervene, at.emergency, at.hard),
        leave=(min(end.warn, soft_share - gap), end.intervene, end.emergency, end.emergency),
    )


def resource_bounds(rule: ResourceRule) -> Bounds:
    """Return the bounds of another resource; it has no hard limit."""
    off = rule.exit_points
    return Bounds(
        enter=(rule.warn, rule.intervene, rule.emergency, None),
        leave=(
            _lower(rule.warn, off),
            _lower(rule.intervene, off),
            _lower(rule.emergency, off),
            None,
        ),
    )


def _lower(share: float | None, points: float) -> float | None:
    return None if share is None else max(share - points, 0.0)
