"""Figures over time in constant memory: where one began, its peak, its end, how it grew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memwatch.analytics.growth import WindowSlope
from memwatch.domain.record import Record

_WINDOWS_S = (600.0, 7200.0, 86_400.0)
_LEAST_S = 60.0


class Axis:
    """Time that a log covers, by the boot clock: a new start or a reboot adds nothing."""

    def __init__(self) -> None:
        self.at_us = 0
        self._before_us = 0
        self._last_m_us: int | None = None

    def move(self, record: Record, *, anew: bool = False) -> int:
        """Go on to a record; `anew`: nobody wrote between the one before and this."""
        before, self._before_us = self._last_m_us, self.at_us
        if before is not None and not anew:
            self.at_us += max(record.m_us - before, 0)
        self._last_m_us = record.m_us
        return self.at_us

    def step_back(self) -> None:
        """Take back the newest step: it led to the first word of who began anew."""
        self.at_us = self._before_us

    def at(self, t_us: int, record: Record) -> int:
        """Return the place of a wall time between the record before and this newest one."""
        return max(self.at_us - max(record.t_us - t_us, 0), self._before_us)


class Course:
    """One figure: first, least, peak with its time, last, and its robust growth."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last: float | None = None
        self.peak: float | None = None
        self.least: float | None = None
        self.peak_us = 0
        """Wall time of the peak."""
        self._slopes = [WindowSlope(window_s, _LEAST_S) for window_s in _WINDOWS_S]

    def take(self, t_us: int, at_us: int, value: float) -> None:
        """Take a value at a wall time and a place of the axis."""
        if self.first is None:
            self.first = value
        if self.peak is None or value > self.peak:
            self.peak, self.peak_us = value, t_us
        if self.least is None or value < self.least:
            self.least = value
        self.last = value
        for slope in self._slopes:
            slope.add(at_us, value)

    @property
    def per_min(self) -> float | None:
        """Growth over all of it, the last day at most; None under a minute."""
        known = [slope for one in self._slopes if (slope := one.slope()) is not None]
        return max(known, key=lambda slope: slope.span_s).per_min if known else None


class Dwell:
    """How long something was in which state, and how often each was entered."""

    def __init__(self, state: str = "") -> None:
        self.state = state
        """Empty where nobody knows."""
        self.entered: Counter[str] = Counter()
        self._us: Counter[str] = Counter()
        self._since_us = 0

    def enter(self, state: str, at_us: int) -> None:
        """Go over to a state; to the same one changes nothing."""
        if state == self.state:
            return
        self.pass_by(at_us)
        self.state = state
        if state:
            self.entered[state] += 1

    def pass_by(self, at_us: int) -> None:
        """Count the time up to a place of the axis."""
        if self.state:
            self._us[self.state] += max(at_us - self._since_us, 0)
        self._since_us = at_us

    def begin(self, at_us: int) -> None:
        """Forget what was counted; the state stays."""
        self.entered.clear()
        self._us.clear()
        self._since_us = at_us

    def seconds(self) -> dict[str, float]:
        """Return how long each state lasted."""
        return {state: us / 1e6 for state, us in self._us.items() if us}

    def times(self) -> Iterator[tuple[str, float]]:
        """Yield states with seconds, longest first."""
        yield from sorted(self.seconds().items(), key=lambda it: -it[1])
