"""Growth: a robust slope over several time windows at once, incrementally.

The slope is that of Theil and Sen (median of the slopes of all pairs) over the means of at most
32 buckets a window, so one spike or one purge does not tilt it and cost and memory are bounded.
Source: metrics ("robust slope over the last 60 s, 10 min and 24 h, side by side").
"""

from __future__ import annotations

from collections import deque
from math import inf
from statistics import quantiles
from typing import NamedTuple

BUCKETS = 32
_DOUBLINGS = 4
_MIN_POINTS = 5
_LEAST_LIKENESS = 3
_FAST_CLIMB = 0.05  # share of the limit that a lone short window must gain to be believed
_REACH = 3  # how many times the time that was seen growth may be drawn out
_NEAR = 60  # shortest windows: an arrival this near is told before it was seen for long


class Slope(NamedTuple):
    """Growth in units per minute: the median, and the middle half of all pairs."""

    per_min: float
    low: float
    high: float
    span_s: float = inf
    """Time that the samples really cover: at most that of the window."""

    @property
    def steady(self) -> bool:
        """Rising, and alike enough in the middle half of all pairs to say until when."""
        return self.low > 0 and self.low >= self.per_min / _LEAST_LIKENESS

    def denies(self, longer: Slope) -> bool:
        """Whether this shorter window is flat or falling while the longer one still rises."""
        return self.per_min < longer.low / _LEAST_LIKENESS


class _Bucket:
    __slots__ = ("count", "index", "time_sum", "value_sum")

    def __init__(self, index: int) -> None:
        self.index = index
        self.count = 0
        self.time_sum = 0.0
        self.value_sum = 0.0

    def absorb(self, other: _Bucket) -> None:
        self.count += other.count
        self.time_sum += other.time_sum
        self.value_sum += other.value_sum


class WindowSlope:
    """Slope over one window. A figure appears once `min_span_s` are covered.

    Buckets begin narrow and double their width when there are too many, so that a day's window
    speaks long before the day is over.
    """

    def __init__(self, window_s: float, min_span_s: float) -> None:
        self._width_us = max(round(window_s * 1e6 / BUCKETS) >> _DOUBLINGS, 1)
        self._widest_us = self._width_us << _DOUBLINGS
        self._min_span_us = min_span_s * 1e6
        self._buckets: deque[_Bucket] = deque()
        self._cached: Slope | None = None
        self._stale = True

    def add(self, at_us: int, value: float) -> None:
        """Take a sample; samples from before the newest bucket are ignored."""
        index = at_us // self._width_us
        newest = self._buckets[-1] if self._buckets else None
        if newest is None or index > newest.index:
            self._stale = True
            self._buckets.append(newest := _Bucket(index))
            self._make_room()
        elif index < newest.index:
            return
        newest.count += 1
        newest.time_sum += at_us
        newest.value_sum += value

    def _make_room(self) -> None:
        """Forget what left the window; where it is not full yet, halve the number of buckets."""
        while self._width_us < self._widest_us and len(self._buckets) > BUCKETS:
            self._width_us *= 2
            merged: deque[_Bucket] = deque()
            for bucket in self._buckets:
                bucket.index //= 2
                if merged and merged[-1].index == bucket.index and bucket.count:
                    merged[-1].absorb(bucket)
                else:
                    merged.append(bucket)
            self._buckets = merged
        held = self._widest_us * BUCKETS // self._width_us
        while self._buckets[0].index <= self._buckets[-1].index - held:
            self._buckets.popleft()

    def slope(self) -> Slope | None:
        """Growth over the window; None while it holds too little. Recomputed once a bucket."""
        if self._stale or self._cached is None:
            self._cached = self._compute()
            self._stale = False
        return self._cached

    def _compute(self) -> Slope | None:
        points = [(b.time_sum / b.count, b.value_sum / b.count) for b in self._buckets]
        span_us = points[-1][0] - points[0][0] if points else 0.0
        if len(points) < _MIN_POINTS or span_us < self._min_span_us:
            return None
        slopes = [
            (late_value - value) / (late - time)
            for i, (time, value) in enumerate(points)
            for late, late_value in points[i + 1 :]
        ]
        low, middle, high = (quarter * 60e6 for quarter in quantiles(slopes, n=4))
        return Slope(middle, low, high, span_us / 1e6)


class Growth:
    """Slopes of one resource over the windows of a profile, shortest first."""

    def __init__(self, windows_s: tuple[float, ...]) -> None:
        # A window shows a figure when it says more than the next shorter one.
        spans = [windows_s[0] / 4, *(2 * shorter for shorter in windows_s)]
        self._windows = [
            WindowSlope(window, span) for window, span in zip(windows_s, spans, strict=False)
        ]

    def add(self, at_us: int, value: float) -> None:
        """Take a sample on an axis of microseconds that does not run backwards."""
        for window in self._windows:
            window.add(at_us, value)

    def slopes(self) -> list[Slope | None]:
        """Growth per window."""
        return [window.slope() for window in self._windows]


def time_to_limit(
    used: float, limit: float | None, slopes: list[Slope | None], windows_s: tuple[float, ...]
) -> tuple[float, float] | None:
    """Return earliest and latest arrival at the limit in seconds; None without support for them.

    Each window whose growth is steady contributes the range of its middle half, unless a shorter
    one denies it, or the arrival lies far outside of what it has seen. The shortest one sees every
    refill of a cache, so it counts beside a longer one that rises, or alone for a fast climb.
    Source: metrics, time to limit.
    """
    if limit is None:
        return None
    room = limit - used
    if room <= 0:
        return (0.0, 0.0)
    ranges = [
        (room / slope.high * 60, room / slope.low * 60)
        for slope in _supported(slopes, windows_s[0], limit)
        if room / slope.low * 60 <= max(_REACH * slope.span_s, _NEAR * windows_s[0])
    ]
    if not ranges:
        return None
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _supported(slopes: list[Slope | None], shortest_s: float, limit: float) -> list[Slope]:
    """Return the steady slopes that no shorter window denies."""
    known = [slope for slope in slopes if slope is not None]
    found: list[Slope] = []
    for index, slope in enumerate(known):
        denied = any(shorter.denies(slope) for shorter in known[:index])
        if slope.steady and not denied:
            found.append(slope)
    if len(found) == 1 and found[0] is slopes[0]:
        longer = known[1] if len(known) > 1 else None
        climbs = found[0].low * shortest_s / 60 >= _FAST_CLIMB * limit
        if not climbs and (longer is None or longer.low <= 0):
            return []
    return found
