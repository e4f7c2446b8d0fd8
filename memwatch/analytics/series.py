"""A resource's course in memory, and its cut into the columns of a chart."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from statistics import median

from memwatch.domain.sample import GAP, Column


class TimeSeries:
    """Samples of one resource in order of time, for a bounded span.

    `at` is any axis of microseconds that does not run backwards; a sample that would is dropped.
    Memory: 16 bytes a sample.
    """

    def __init__(self, span_us: int) -> None:
        self._span_us = span_us
        self._at = array("q")
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._at)

    @property
    def first(self) -> int | None:
        """Time of the oldest sample held."""
        return self._at[0] if self._at else None

    @property
    def last(self) -> tuple[int, float] | None:
        """Newest sample."""
        return (self._at[-1], self._values[-1]) if self._at else None

    def add(self, at: int, value: float) -> None:
        """Append a sample; forget those that left the span."""
        if self._at and at < self._at[-1]:
            return
        self._at.append(at)
        self._values.append(value)
        if at - self._at[0] > self._span_us * 1.05:  # trim rarely: deleting in front costs
            keep = bisect_left(self._at, at - self._span_us)
            del self._at[:keep]
            del self._values[:keep]

    def insert(self, at: int, value: float) -> None:
        """Add a sample that may belong before others; one older than the span is forgotten."""
        if not self._at or at >= self._at[-1]:
            self.add(at, value)
        elif at >= self._at[-1] - self._span_us:
            place = bisect_right(self._at, at)
            self._at.insert(place, at)
            self._values.insert(place, value)

    def between(self, start: int, end: int) -> Iterator[tuple[int, float]]:
        """Return the samples with start <= at < end."""
        low, high = bisect_left(self._at, start), bisect_left(self._at, end)
        return zip(self._at[low:high], self._values[low:high], strict=True)

    def median(self, start: int, end: int, max_gap_us: int) -> float | None:
        """Return the median of start <= at < end; without samples there, the value held.

        None where nothing was measured: a value holds for `max_gap_us`.
        """
        values = [value for _, value in self.between(start, end)]
        return median(values) if values else self.value_at(start, max_gap_us)

    def sample_at(self, at: int) -> tuple[int, float] | None:
        """Return the newest sample not after an instant."""
        index = bisect_right(self._at, at) - 1
        return (self._at[index], self._values[index]) if index >= 0 else None

    def value_at(self, at: int, max_age_us: int | None = None) -> float | None:
        """Return the value held at an instant: that of the newest sample not after it."""
        held = self.sample_at(at)
        if held is None or (max_age_us is not None and at - held[0] > max_age_us):
            return None
        return held[1]

    def columns(self, start: int, end: int, count: int, max_gap_us: int) -> list[Column]:
        """Cut [start, end) into `count` columns, keeping least, greatest and last value.

        Between two samples closer than `max_gap_us` (and behind the newest, for as long) the value
        is held; elsewhere a column is a gap.
        """
        held, held_at = self._before(start)
        edges = [start + (end - start) * column // count for column in range(count + 1)]
        index = bisect_left(self._at, start)
        found: list[Column] = []
        for low, high in pairwise(edges):
            stop = bisect_left(self._at, high, index)
            if stop > index:
                values = self._values[index:stop]
                found.append(Column(min(values), max(values), values[-1]))
                held, held_at = values[-1], self._at[stop - 1]
                index = stop
            else:
                found.append(self._held(held, held_at, low, index, max_gap_us))
        return found

    def _before(self, start: int) -> tuple[float | None, int]:
        index = bisect_left(self._at, start) - 1
        return (self._values[index], self._at[index]) if index >= 0 else (None, 0)

    def _held(
        self, held: float | None, held_at: int, low: int, following: int, max_gap_us: int
    ) -> Column:
        if held is None:
            return GAP
        reaches = self._at[following] if following < len(self._at) else low
        return GAP if reaches - held_at > max_gap_us else Column(held, held, held)
