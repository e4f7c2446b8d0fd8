"""Series of which it is known what was freed, when, and how fast it came back."""

from __future__ import annotations

import random
from typing import NamedTuple

from memwatch.analytics.efficacy.effect import EffectWatch, When
from memwatch.analytics.efficacy.window import Reading, Spans
from memwatch.analytics.series import TimeSeries

S = 1_000_000
MB = 1_000_000.0
DONE_US = 2_000 * S
WHEN = When(DONE_US, DONE_US)
SPANS = Spans()


class Truth(NamedTuple):
    """A process that holds `before`, frees `freed` after `late_s`, and grows back at a rate."""

    before: float = 500 * MB
    freed: float = 100 * MB
    late_s: float = 0.5
    per_min: float = 0.0
    """How fast it takes back what it freed; what it held before is where it stops."""
    noise: float = 0.0
    """Share of `before` that each sample may be off."""
    period_s: float = 2.0
    seed: int = 0

    @property
    def back_s(self) -> float | None:
        """When all of it is used again."""
        return self.late_s + self.freed / self.per_min * 60 if self.per_min else None

    def at(self, second: float) -> float:
        """Return usage so long after the intervention ended."""
        if second < self.late_s:
            return self.before
        grown = self.per_min / 60 * (second - self.late_s)
        held = self.before - self.freed + grown
        return min(held, self.before) if self.freed > 0 else held

    def series(self, until_s: float, gaps: tuple[tuple[float, float], ...] = ()) -> TimeSeries:
        """Return its samples from a minute before until so long after it."""
        swings, found = random.Random(self.seed), TimeSeries(7200 * S)
        second = -60.0
        while second < until_s:
            off = swings.uniform(-1, 1) * self.noise * self.before
            if not any(first <= second < last for first, last in gaps):
                found.add(DONE_US + round(second * S), self.at(second) + off)
            second += self.period_s
        return found


def reading(series: TimeSeries, *, held: bool = False) -> Reading:
    """Return how samples of a probe, or of an agent on change, are read."""
    return Reading(series, 75 * S if held else 7 * S, held=held)


def watched(
    read: Reading, until_s: int, *, every_s: int = 5, watch: EffectWatch | None = None
) -> EffectWatch:
    """Return a watch that looked every few seconds, as a guard does."""
    watch = watch or EffectWatch("memory", WHEN, SPANS)
    for second in range(0, until_s + 1, every_s):
        watch.look(_until(read, DONE_US + second * S), DONE_US + second * S)
    return watch


def _until(read: Reading, now_us: int) -> Reading:
    """Return what was known at an instant: nobody looks into the future."""
    known = TimeSeries(7200 * S)
    for at, value in read.series.between(0, now_us + 1):
        known.add(at, value)
    return read._replace(series=known)
