"""Lists that grow at the end, shown page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def newest_page(items: Sequence[Item], height: int, time_us: Callable[[Item], int]) -> list[Item]:
    """Return the newest items, oldest first: at most `height`, at least two thirds of that.

    The first one shown is the one before which the roundest moment lies, so a new item takes the
    next free line while all others stay where they are, until a page is full and moves on. That is
    calm to read, and a fraction of the bytes of a list that moves with each item.

    >>> times = [1, 2, 3, 5, 6, 7, 9]
    >>> [newest_page(times[:n], 3, int) for n in (3, 4, 5, 6, 7)]
    [[1, 2, 3], [2, 3, 5], [5, 6], [5, 6, 7], [6, 7, 9]]
    """
    count = len(items)
    if count <= height:
        return list(items)
    starts = range(count - height, count - max(height * 2 // 3, 1) + 1)

    def roundness(start: int) -> int:
        return (time_us(items[start - 1]) ^ time_us(items[start])).bit_length()

    first = max(starts, key=lambda start: (roundness(start), -start))
    return list(items[first:])
