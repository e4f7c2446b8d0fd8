"""What was used over a while: the median by time, how much it swung, where it was heading."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from memwatch.analytics.series import TimeSeries

_MOST_POINTS = 40
"""Of a slope: its pairs grow with the square."""
_LEAST_POINTS = 5
"""Fewer are no trend."""
_MOVES_SHARE = 0.02
_MOVES_SPREAD = 2
"""Usage that moved one way by more than this share of it, and by so many times all that it swung
around that, was on the move; a tooth of a saw is not."""
_LAST = 4
"""Where it had come to is told by the last quarter: it may have sped up."""

Point = tuple[int, float]


class Spans(Struct, frozen=True, kw_only=True):
    """How long is looked at, in microseconds (metrics, "Interventions")."""

    before_us: int = 30_000_000
    settle_us: int = 10_000_000
    late_us: int = 600_000_000
    watch_us: int = 3_600_000_000
    """So long it is watched whether usage comes back."""

    @property
    def early(self) -> tuple[int, int]:
        """Begin and end of what is measured soon after the end of an intervention."""
        return self.settle_us * 4 // 5, self.settle_us * 6 // 5

    @property
    def late(self) -> tuple[int, int]:
        """The same of what is measured a good while later."""
        return self.late_us * 19 // 20, self.late_us * 21 // 20


class Reading(NamedTuple):
    """A series, and how its samples are to be read."""

    series: TimeSeries
    max_gap_us: int
    """A sample holds until the next, and no longer than this."""
    held: bool = False
    """Told on change: the sample before says as much about later as one of that time."""


class Usage(NamedTuple):
    """What a window of a series says."""

    median: float
    noise: float
    """Spread of eight tenths of the samples around their trend: one that leaps is no noise."""
    slope_per_s: float
    gap: bool = False
    """A part of the window was not measured."""
    came_to: float | None = None
    """Where usage that rose or fell all through the window was at its end: its median is of half
    a window ago. None where it did not."""

    @property
    def level(self) -> float:
        """What was used right before."""
        return self.median if self.came_to is None else self.came_to


def median_of(reading: Reading, start: int, end: int, since: int | None = None) -> float | None:
    """Return the median of start <= at < end, each value weighed by how long it held.

    None where nothing was measured; what was held at `start` counts only if it is of `since`.
    """
    weighed = [(value, until - at) for at, value, until in _held(reading, start, end, since)]
    return _weighted_median(weighed) if weighed else None


def usage_of(reading: Reading, start: int, end: int) -> Usage | None:
    """Return what was used in start <= at < end; None where nothing was measured."""
    held = list(_held(reading, start, end, None))
    if not held:
        return None
    middle = _weighted_median([(value, until - at) for at, value, until in held])
    points = _thinned([(at, value) for at, value, _ in held])
    slope = _slope(points)
    rest = sorted(value - slope * (at - start) for at, value in points)
    cut = len(rest) // 10
    noise = rest[-1 - cut] - rest[cut]
    measured_us = sum(until - at for at, _, until in held)
    missing_us = end - start - measured_us
    gap = missing_us > (0 if reading.held else reading.max_gap_us)
    moved = abs(slope) * (end - start)
    steady = reading.held or len(points) < _LEAST_POINTS
    if steady or moved <= max(_MOVES_SHARE * abs(middle), _MOVES_SPREAD * (rest[-1] - rest[0])):
        return Usage(middle, noise, slope * 1e6, gap)
    last = [value + slope * (end - at) for at, value in points if end - at <= (end - start) / _LAST]
    return Usage(middle, noise, slope * 1e6, gap, median(last) if last else None)


def first_behind(reading: Reading, at: int) -> float | None:
    """Return the first sample at or after an instant, unless it came too late to speak for it."""
    found = next(reading.series.between(at, at + reading.max_gap_us), None)
    return found[1] if found else None


def _held(
    reading: Reading, start: int, end: int, since: int | None
) -> Sequence[tuple[int, float, int]]:
    """Return the values of a window: from when to when each was measured to hold."""
    series, longest = reading.series, reading.max_gap_us
    points = list(series.between(start, end))
    before = series.sample_at(start)
    if before is not None and before[0] < start and (since is None or before[0] >= since):
        points.insert(0, before)
    found = []
    for (at, value), (following, _) in pairwise([*points, (end, 0.0)]):
        until = min(following, end, at + longest)
        if until > max(at, start):
            found.append((max(at, start), value, until))
    return found


def _weighted_median(weighed: Sequence[tuple[float, int]]) -> float:
    """Return the value that half of the time was not above."""
    ordered = sorted(weighed)
    half = sum(weight for _, weight in ordered) / 2
    passed = 0
    for index, (value, weight) in enumerate(ordered):
        passed += weight
        if passed == half and index + 1 < len(ordered):
            return (value + ordered[index + 1][0]) / 2
        if passed >= half:
            return value
    return ordered[-1][0]


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    step = -(-len(points) // _MOST_POINTS)
    return points[::step] if step > 1 else points


def _slope(points: Sequence[Point]) -> float:
    """Return the median slope between all pairs (Theil and Sen), a microsecond; 0 of one point."""
    slopes = [
        (value - earlier) / (at - earlier_at)
        for index, (at, value) in enumerate(points)
        for earlier_at, earlier in points[:index]
        if at > earlier_at
    ]
    return median(slopes) if slopes else 0.0
