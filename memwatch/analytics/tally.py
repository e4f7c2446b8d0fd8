"""Sums of what a log tells behind one of its numbers, from records in any order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from msgspec import Struct

_MOST = 4096


class Sums(Struct, frozen=True):
    """How many, and what they hold together."""

    count: int = 0
    bytes: int = 0
    entries: int = 0
    own_bytes: int = 0
    """Of `bytes`, those that are not of persisted values."""

    def plus(self, other: Sums) -> Sums:
        """Return both together."""
        return Sums(
            self.count + other.count,
            self.bytes + other.bytes,
            self.entries + other.entries,
            self.own_bytes + other.own_bytes,
        )


class Tally:
    """Counts things by their lsn; bounded: of too many the oldest are kept as one."""

    def __init__(self) -> None:
        self._lsns: list[int] = []
        self._sums: list[Sums] = []
        self._forgotten = 0

    def add(self, lsn: int, sums: Sums) -> None:
        """Count what a record tells; told again it counts once."""
        if lsn <= self._forgotten:
            return
        place = bisect_left(self._lsns, lsn)
        if place < len(self._lsns) and self._lsns[place] == lsn:
            self._sums[place] = sums
            return
        self._lsns.insert(place, lsn)
        self._sums.insert(place, sums)
        if len(self._lsns) > _MOST:
            self._sums[1] = self._sums[0].plus(self._sums[1])
            del self._lsns[0], self._sums[0]

    def drop(self, lsn: int) -> None:
        """Take back what was counted of a record."""
        place = bisect_left(self._lsns, lsn)
        if place < len(self._lsns) and self._lsns[place] == lsn:
            del self._lsns[place], self._sums[place]

    def forget(self, lsn: int) -> None:
        """Say that nobody will ask for what lies up to `lsn` any more."""
        self._forgotten = max(self._forgotten, lsn)
        keep = bisect_right(self._lsns, self._forgotten)
        del self._lsns[:keep], self._sums[:keep]

    def between(self, after: int, before: int | None = None) -> Sums:
        """Return the sums of all with after < lsn < before (to the end without `before`)."""
        low = bisect_right(self._lsns, after)
        high = len(self._lsns) if before is None else bisect_left(self._lsns, before)
        total = Sums()
        for one in self._sums[low:high]:
            total = total.plus(one)
        return total
