"""Long work in short slices: the agent's threads run between any two of them.

One call into C that sorts or frees a million things holds the interpreter for a second, and the
whole agent with it. Nothing here holds it for longer than a millisecond or so.
"""

from __future__ import annotations

import gc
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

SLICE: Final = 1000
"""Things handled in one go."""
_REST_S = 50e-6
_BUCKET = 1024
_SAMPLED = 4
"""Keys looked at for each bucket to be: their sizes come out even enough."""

_Item = TypeVar("_Item")


def breathe() -> None:
    """Let a thread run that waits for the interpreter.

    It needs the time to wake up: after `sleep(0)` we would have the interpreter again before.
    """
    time.sleep(_REST_S)


def slices(items: Iterable[_Item], size: int = SLICE) -> Iterator[list[_Item]]:
    """Yield the items in order, some at a time."""
    source = iter(items)
    while some := list(islice(source, size)):
        yield some
        breathe()


def in_order(items: Collection[_Item], key: Callable[[_Item], Any]) -> Iterator[list[_Item]]:
    """Yield the items sorted by `key`, some at a time; keys differ from each other."""
    if len(items) <= _BUCKET:
        yield sorted(items, key=key)
        return
    pivots = _pivots(items, key)
    buckets: list[list[_Item]] = [[] for _ in range(len(pivots) + 1)]
    if gc.isenabled():
        # Full they would be walked twice on their way to the oldest generation: with a million
        # entries that holds up the agent for a tenth of a second each time. They are empty now.
        gc.collect(1)
    for some in slices(items):
        for item in some:
            buckets[bisect_right(pivots, key(item))].append(item)
    for bucket in buckets:
        bucket.sort(key=key)
        yield bucket
        breathe()
        bucket.clear()


def _pivots(items: Collection[_Item], key: Callable[[_Item], Any]) -> list[Any]:
    """Return keys that part the items into buckets of about the same size."""
    step = max(_BUCKET // _SAMPLED, 1)
    sample = [key(some[0]) for some in slices(items, step)]
    sample.sort()
    return sample[_SAMPLED::_SAMPLED]


def let_go(items: list[Any]) -> None:
    """Empty a list: what only it held is freed a slice at a time."""
    while items:
        del items[-SLICE:]
        breathe()
