"""When usage was back where it had been."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from memwatch.analytics.efficacy.window import Point, Reading

WIDTH = 5
"""So many samples are smoothed, that one which swings is no return; odd, so that one is the middle.
What an agent tells on change swings not: there each counts."""
_NEAR_SHARE = 0.02
"""Usage that is back but for this share of what was freed is back: some only come close."""


def back_level(before: float, freed: float, noise: float) -> float:
    """Return the usage at which what was freed is used again."""
    return before - max(_NEAR_SHARE * freed, noise / 4)


class Return:
    """Watches for usage to come back; reads each sample about once, however often it looks."""

    def __init__(self, level: float, from_us: int, *, width: int = WIDTH) -> None:
        self._level = level
        self._from_us = from_us
        self._width = width
        self.at_us: int | None = None
        """When it was back; None while it is not."""
        self.gap = False
        """It came back while nobody measured: it may have been earlier."""
        self.seen_us = from_us
        """Until when it was watched."""

    def look(self, reading: Reading, until_us: int) -> None:
        """Read what came in, up to an instant."""
        if self.at_us is not None:
            return
        newest = reading.series.sample_at(until_us - 1)
        if newest is None:
            return
        self.seen_us = max(self.seen_us, min(newest[0] + reading.max_gap_us, until_us))
        points = list(reading.series.between(self._from_us, until_us))
        if not points:
            return
        found = came_back(points, self._level, self._width)
        if found is not None:
            behind = _behind_gap(points, found, reading.max_gap_us)
            self.gap = behind is not None
            self.at_us = found if behind is None else behind
        self._from_us = points[-min(self._width + 1, len(points))][0]


def came_back(points: Sequence[Point], level: float, width: int = WIDTH) -> int | None:
    """Return when smoothed usage first reached a level, between two samples by their slope."""
    before: Point | None = None
    for index in range(len(points) - width + 1):
        part = points[index : index + width]
        at, value = part[width // 2][0], median(value for _, value in part)
        if value >= level:
            if before is None or width == 1:
                return at
            return round(before[0] + (at - before[0]) * (level - before[1]) / (value - before[1]))
        before = at, value
    return None


def _behind_gap(points: Sequence[Point], at_us: int, longest_us: int) -> int | None:
    """Return the first sample behind an instant, if that lies in a gap of the recording."""
    for (earlier, _), (later, _) in pairwise(points):
        if later - earlier > longest_us and earlier <= at_us <= later:
            return later
    return None
