"""Lists that grow at the end, shown page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

_MOVES_BY = 4
"""Lines that a page moves on by at most."""


class Page:
    """Where a list that grows stands on the screen.

    It starts full. A new item then moves the page on by some lines, and those after it take
    the free ones while all others stay where they are: calm to read, and a fraction of the bytes of
    a list that moves with each item.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        self._oldest: int | None = None
        self._height = 0

    def newest(self, items: Sequence[Item], height: int, key: Callable[[Item], int]) -> list[Item]:
        """Return the newest items, oldest first, at most `height`; keys grow with the items.

        >>> page = Page()
        >>> [page.newest(range(count), 6, int) for count in (8, 9, 10)]
        [[2, 3, 4, 5, 6, 7], [5, 6, 7, 8], [5, 6, 7, 8, 9]]
        """
        oldest = key(items[0]) if items else None
        if oldest is not None and self._oldest is not None and oldest < self._oldest:
            self._height = 0  # what came before was filled in: begin anew with a full page
        start = self._start(items, height, key)
        self._height, self._oldest = height, oldest
        self._first = key(items[start]) if start else None
        return list(items[start:])

    def _start(self, items: Sequence[Item], height: int, key: Callable[[Item], int]) -> int:
        full = max(len(items) - height, 0)
        if not full or height > self._height:
            return full
        if self._first is None:
            grown = self._height == height
            return len(items) - _filled(height) if grown else full
        held = next((i for i, one in enumerate(items) if key(one) >= self._first), full)
        return held if held >= full else len(items) - _filled(height)


def _filled(height: int) -> int:
    """Return the lines that are taken on a page that has just moved on."""
    return max(height - min(height // 3, _MOVES_BY), 1)
