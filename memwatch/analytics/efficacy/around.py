"""The next three experiments after an intervention against the three before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from memwatch.domain.intervention import ExperimentsAround

EACH = 3
_BAD = frozenset({"failed", "crashed"})


class Tried(NamedTuple):
    """One experiment that ended by itself, on the axis of the intervention."""

    began_us: int
    ended_us: int
    status: str


def around(tried: Iterable[Tried], began_us: int, done_us: int) -> ExperimentsAround:
    """Compare experiments that were over before it with those that began after it.

    One that was in progress meanwhile is neither, and what was aborted says nothing.
    """
    ended = sorted((one for one in tried if one.status != "aborted"), key=lambda one: one.ended_us)
    before = [one for one in ended if one.ended_us <= began_us][-EACH:]
    after = [one for one in ended if one.began_us >= done_us][:EACH]
    return ExperimentsAround(
        before=len(before),
        after=len(after),
        before_s=_median_s(before),
        after_s=_median_s(after),
        before_ok=_well(before),
        after_ok=_well(after),
    )


def _median_s(found: Sequence[Tried]) -> float | None:
    if len(found) < EACH:
        return None
    return median(one.ended_us - one.began_us for one in found) / 1e6


def _well(found: Sequence[Tried]) -> int:
    return sum(one.status not in _BAD for one in found)
