"""How often an entry was asked for in the last 24 hours (R3).

Hours are those of the boot clock: a wall clock that is set makes nothing hot or cold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct

HOURS = 24
_HOUR_US = 3_600_000_000
_KEYS_LOGGED: Final = 1_000
"""In one record: it stays far below what a line may hold."""


class Heat(Struct):
    """Accesses by hour, newest first; never more than 24 counts."""

    hour: int
    """Hour of the boot clock that the first count is of."""
    counts: list[int]
    last_us: int
    """Boot clock of the newest access."""

    @classmethod
    def first(cls, now_us: int) -> Heat:
        """Return the heat of an entry that is asked for the first time."""
        return cls(now_us // _HOUR_US, [1], now_us)

    @classmethod
    def restored(cls, counts: Sequence[int], now_us: int) -> Heat:
        """Return what `by_hour` told, as if no time had passed since."""
        return cls(now_us // _HOUR_US, list(counts[:HOURS]) or [0], now_us)

    def touch(self, now_us: int) -> None:
        """Count an access."""
        self._advance(now_us)
        self.counts[0] += 1
        self.last_us = now_us

    def accesses(self, now_us: int) -> int:
        """Return the accesses of the last 24 hours, to the hour."""
        return sum(self.by_hour(now_us))

    def by_hour(self, now_us: int) -> list[int]:
        """Return the counts by age in hours, the hour in progress first: what checkpoints hold."""
        self._advance(now_us)
        return list(self.counts)

    def _advance(self, now_us: int) -> None:
        passed = now_us // _HOUR_US - self.hour
        if passed > 0:
            self.counts = ([0] * min(passed, HOURS) + self.counts)[:HOURS]
            self.hour += passed


class Unlogged:
    """Accesses by key that no record tells of yet; never more keys than the tier has."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def count(self, key: str) -> None:
        """Count an access."""
        self._counts[key] = self._counts.get(key, 0) + 1

    def forget(self, key: str) -> None:
        """Let go of a key that has no entry any more."""
        self._counts.pop(key, None)

    def log(self, record: Callable[[str, dict[str, Any]], int], tier: str) -> None:
        """Write the counts; what a failing log took is not written again."""
        while self._counts:
            some = dict(islice(self._counts.items(), _KEYS_LOGGED))
            record("access", {"tier": tier, "counts": some})
            for key in some:
                del self._counts[key]
