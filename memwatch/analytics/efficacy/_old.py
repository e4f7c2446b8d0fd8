"""What a purge or checkpoint really did: usage before and after, as we measured it.

`before` is the median of the 30 s before, `after` the median of the 4 s around 10 s and of the
minute around 10 min later. Nothing is said before it was measured, nor of a time in which nobody
measured. Source: R13, metrics.
"""

from __future__ import annotations

from typing import NamedTuple

from memwatch.analytics.series import TimeSeries

_S = 1_000_000


class Effect(NamedTuple):
    """Usage around an intervention; None where nothing was measured (yet)."""

    before: float | None
    after_10s: float | None
    after_10min: float | None
    rebound_s: float | None = None
    """Time until usage was back at `before`, when that was seen within ten minutes."""

    @property
    def freed(self) -> float | None:
        """Amount freed at 10 s; negative when usage grew."""
        if self.before is None or self.after_10s is None:
            return None
        return self.before - self.after_10s

    @property
    def freed_share(self) -> float | None:
        """Share of `before` that was freed."""
        freed = self.freed
        return freed / self.before if freed is not None and self.before else None


def measure(
    series: TimeSeries | None, began_us: int, done_us: int, now_us: int, max_gap_us: int
) -> Effect:
    """Measure an intervention between two instants on the axis of the series.

    A longer time than `max_gap_us` between two samples is a gap in the recording.
    """
    if series is None:
        return Effect(None, None, None)
    before = series.median(began_us - 30 * _S, began_us, max_gap_us)
    after_10s = after_10min = None
    if now_us >= done_us + 12 * _S:
        after_10s = series.median(done_us + 8 * _S, done_us + 12 * _S, max_gap_us)
    if now_us >= done_us + 630 * _S:
        after_10min = series.median(done_us + 570 * _S, done_us + 630 * _S, max_gap_us)
    return Effect(before, after_10s, after_10min, _rebound_s(series, done_us, before, after_10s))


def _rebound_s(
    series: TimeSeries, done_us: int, before: float | None, after_10s: float | None
) -> float | None:
    if before is None or after_10s is None or after_10s >= before:
        return None  # nothing was freed that could come back
    later = series.between(done_us + 12 * _S, done_us + 630 * _S)
    back_us = next((at_us for at_us, value in later if value >= before), None)
    return None if back_us is None else (back_us - done_us) / 1e6
