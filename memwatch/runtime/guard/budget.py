"""What the guard itself may cost, and what it does without when it costs more.

Over its memory it closes the history: guarding and live charts go on, and what happened meanwhile
is read from the logs once there is room again. Over its share of a processor it looks less often,
unless a level says that it must not. Source: D7.
"""

from __future__ import annotations

from memwatch.config.settings import Budget
from memwatch.domain.level import Level
from memwatch.domain.snapshot import Own
from memwatch.domain.units import bytes_text, duration_text
from memwatch.runtime.views.ring import Ring
from memwatch.store.historian import Historian

OVER_S = 30.0
"""So long over its memory, the history is closed …"""
UNDER_S = 300.0
"""… and so long well under it, opened again."""
_WELL_UNDER = 0.8
SLOWEST = 4
"""Times the profile's period, at most."""
_CPU_EVERY_S = 20.0
"""Between two changes of the period; a load is measured over 10 s."""


class SelfLimits:
    """Holds the guard to its budget; `look` is called about once a second."""

    def __init__(self, budget: Budget, historian: Historian, ring: Ring) -> None:
        self._budget = budget
        self._historian = historian
        self._ring = ring
        self._memory_since_us: int | None = None
        self._cpu_due_us = 0
        self.slower = 1
        """The usual period of looks is so many times as long."""

    def look(self, own: Own, level: Level, m_us: int) -> list[tuple[str, str]]:
        """Do without what costs too much; returns what and how, for `budget` records."""
        return [*self._mind_memory(own.rss_bytes, m_us), *self._mind_cpu(own, level, m_us)]

    def _mind_memory(self, rss_bytes: int | None, m_us: int) -> list[tuple[str, str]]:
        if rss_bytes is None:
            return []
        most, closed = self._budget.rss_bytes, bool(self._historian.paused)
        turns = rss_bytes < most * _WELL_UNDER if closed else rss_bytes > most
        if not turns:
            self._memory_since_us = None
            return []
        if self._memory_since_us is None:
            self._memory_since_us = m_us
        lasted_s = UNDER_S if closed else OVER_S
        if m_us - self._memory_since_us < lasted_s * 1e6:
            return []
        self._memory_since_us = None
        figure = f"{bytes_text(rss_bytes)} of {bytes_text(most)} for {duration_text(lasted_s)}"
        if closed:
            self._historian.resume()
            return [("memory", f"{figure}: the history is recorded again")]
        self._historian.pause(f"the guard is over its memory, {figure}")
        return [("memory", f"{figure}: the history is closed, guarding goes on")]

    def _mind_cpu(self, own: Own, level: Level, m_us: int) -> list[tuple[str, str]]:
        if own.cpu_percent is None or m_us < self._cpu_due_us:
            return []
        most, before = self._budget.cpu_percent, self.slower
        if level != "normal":
            self.slower = 1
        elif own.cpu_percent > most:
            self.slower = min(before * 2, SLOWEST)
        elif own.cpu_percent < most / 2:
            self.slower = max(before // 2, 1)
        if self.slower == before:
            return []
        self._cpu_due_us = m_us + round(_CPU_EVERY_S * 1e6)
        self._ring.slower = self.slower
        how = f"looks {self.slower}× as rarely" if self.slower > 1 else "looks as often as usual"
        return [("processor", f"{own.cpu_percent:.0f}% of {most:g}%: {how}")]
