"""Time, passed in everywhere: nothing else in memwatch reads a clock.

Wall time is for people and files; boot time (CLOCK_BOOTTIME, counts through suspend) is for
order, rates and leases. Both are integers of microseconds.
"""

from __future__ import annotations

import time
from typing import Protocol

_wall_ns, _clock_ns = time.time_ns, time.clock_gettime_ns  # bound once: read twice an append
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Where the time comes from."""

    def wall_us(self) -> int:
        """Microseconds since the epoch, UTC; may jump."""
        ...

    def boot_us(self) -> int:
        """Microseconds since boot; never runs backwards."""
        ...


class SystemClock:
    """The clocks of this machine."""

    def wall_us(self) -> int:
        """Microseconds since the epoch, UTC."""
        return _wall_ns() // 1000

    def boot_us(self) -> int:
        """Microseconds since boot, suspended time included."""
        return _clock_ns(_BOOT_CLOCK) // 1000


class ManualClock:
    """A clock that moves only when told: tests and replay."""

    def __init__(self, wall_us: int = 1_800_000_000_000_000, boot_us: int = 1_000_000_000) -> None:
        self._wall_us = wall_us
        self._boot_us = boot_us

    def wall_us(self) -> int:
        """Microseconds since the epoch, as set."""
        return self._wall_us

    def boot_us(self) -> int:
        """Microseconds since boot, as set."""
        return self._boot_us

    def advance_s(self, seconds: float) -> None:
        """Let both clocks pass `seconds`."""
        self._wall_us += round(seconds * 1e6)
        self._boot_us += round(seconds * 1e6)

    def step_wall_s(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or NTP does."""
        self._wall_us += round(seconds * 1e6)
