"""A course of checkpoints in order of their commit, and robust figures over one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

from memwatch.domain.checkpoints import Checkpoint

MOST = 64
"""Newest that a robust slope looks at: it compares each with each."""


class Seen(NamedTuple):
    """A complete checkpoint, and when it was committed."""

    at_us: int
    """On an axis that does not run backwards."""
    one: Checkpoint


def fulls(course: Sequence[Seen]) -> list[Seen]:
    """Return the full ones whose size is known, the newest of them."""
    return [seen for seen in course if seen.one.kind == "full" and seen.one.bytes is not None][
        -MOST:
    ]


def intervals_s(course: Sequence[Seen]) -> list[float]:
    """Return the seconds from each to the next."""
    return [max(after.at_us - before.at_us, 0) / 1e6 for before, after in pairwise(course)]


def step_slope(values: Sequence[float]) -> float:
    """Return the growth from one value to the next: the median slope of all pairs (Theil, Sen).

    Needs two values. One outlier in four does not tilt it.

    >>> step_slope([10, 11, 12, 90, 14, 15])
    1.0
    """
    return median(_pair_slopes(values))


def sure_slope(values: Sequence[float]) -> float:
    """Return the growth that three of four pairs show at least: noise and one jump show none.

    >>> sure_slope([1, 2, 3, 4, 5]), sure_slope([5, 5, 5, 9, 9, 9])
    (1.0, 0.0)
    """
    return percentile(_pair_slopes(values), 0.25) or 0.0


def _pair_slopes(values: Sequence[float]) -> list[float]:
    return [(b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(values), 2)]


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the value that `share` of all do not exceed, between two of them; None without any.

    >>> percentile([4, 1, 2, 3], 0.5), percentile([7], 0.95), percentile([], 0.5)
    (2.5, 7.0, None)
    """
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low))
