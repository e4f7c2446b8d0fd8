"""The switch that makes the demo forget to release what it no longer needs, for real."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterable
from typing import Any

from memwatch.agent import Source, Tiers
from memwatch.domain.clock import Clock

OUTSIDE = "outside"
"""Where a leak lies that no tier accounts for."""

CACHE = "cache"
"""A cache without bounds, as lies outside of all tiers too: `reclaim` empties it."""

_KEY = "forgotten"
_EMPTY = Source("nothing")
"""What a value is made again from that left memory: nobody needs what was forgotten."""
_GRAIN_BYTES = 64_000
_MOST_AT_ONCE_BYTES = 32_000_000
_forgotten: list[bytearray] = []

Record = Callable[[str, dict[str, Any]], object]


def check(mb_per_min: float, where: str, tiers: Iterable[str]) -> None:
    """Raise ValueError for a rate or a place that cannot be."""
    if not 0 <= mb_per_min <= 10_000:
        raise ValueError("mb_per_min is a number from 0 to 10000")
    places = (OUTSIDE, CACHE, *tiers)
    if where not in places:
        raise ValueError(f"a leak is in one of {', '.join(places)}")


class Leak:
    """Keeps copies of buffers at a chosen rate until told to stop."""

    def __init__(self, tiers: Tiers, clock: Clock, record: Record, where: str = OUTSIDE) -> None:
        """`record` takes kind and members of what is logged: every viewer knows the rate by it."""
        self._tiers = tiers
        self._record = record
        self._clock = clock
        self._where = where
        self._mb_per_min = 0.0
        self._grown_us = clock.boot_us()
        self._count = 0
        self._cached: list[bytearray] = []

    def turn(self, mb_per_min: float, where: str | None = None) -> int:
        """Leak at a rate from now on; 0 stops and gives all back. Returns the bytes given back.

        Raises ValueError for a rate or place that cannot be.
        """
        where = where or self._where
        check(mb_per_min, where, self._tiers)
        self._where, self._mb_per_min = where, mb_per_min
        self._grown_us = self._clock.boot_us()
        self._record("switch", {"name": "leak", "value": mb_per_min, "where": where})
        return self._release() if mb_per_min == 0 else 0

    def grow(self, material: bytes) -> None:
        """Forget as much as the rate asks for since the last time: bytes made of `material`."""
        now_us = self._clock.boot_us()
        owed = int((now_us - self._grown_us) * self._mb_per_min / 60)
        if owed < _GRAIN_BYTES or not material:
            return
        self._grown_us = now_us
        self._count += 1
        length = min(owed, _MOST_AT_ONCE_BYTES)
        kept = bytearray((material * (length // len(material) + 1))[:length])
        kept[:8] = self._count.to_bytes(8, "big")
        if self._where == OUTSIDE:
            _forgotten.append(kept)
        elif self._where == CACHE:
            self._cached.append(kept)
        else:
            tier = self._tiers[self._where]
            hoard = tier.get(_KEY) if _KEY in tier else []
            hoard.append(kept)
            tier.put(_KEY, hoard, source=_EMPTY, importance=0.0)

    def rest(self) -> None:
        """Owe nothing for the time in which nothing was done: what stands still does not leak."""
        self._grown_us = self._clock.boot_us()

    def ask(self, args: dict[str, Any]) -> dict[str, Any]:
        """Serve the operation `leak`."""
        rate, where = args.get("mb_per_min"), args.get("where")
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            raise TypeError("mb_per_min is a number from 0 to 10000")
        freed = self.turn(float(rate), None if where is None else str(where))
        return {"mb_per_min": rate, "where": self._where, "freed_bytes": freed}

    def drop_cache(self) -> None:
        """Empty the cache; it fills again as long as the leak goes on."""
        self._cached.clear()

    def _release(self) -> int:
        freed = sum(map(len, (*_forgotten, *self._cached)))
        _forgotten.clear()
        self.drop_cache()
        freed += sum(tier.clear(_KEY) for tier in self._tiers.values())
        gc.collect()
        _give_back_to_system()
        return freed


def _give_back_to_system() -> None:
    """Ask the C library to return what it holds free; one that cannot is left alone."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
