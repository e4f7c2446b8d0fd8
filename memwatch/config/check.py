"""Settings that contradict each other or cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

from msgspec import Struct

from memwatch.config.schema import Profile
from memwatch.config.shape import numbers_of
from memwatch.domain.policy import KEEP
from memwatch.domain.text import inert

_RISING = (
    ("lights.disk_critical_bytes", "lights.disk_act_bytes", "lights.disk_warn_bytes"),
    ("lights.processes_warn", "lights.processes_act"),
    ("lights.step_watch_s", "lights.step_warn_s"),
    ("windows.growth_s[0]", "windows.growth_s[1]", "windows.growth_s[2]"),
    ("windows.settle_s", "windows.late_s", "windows.rebound_s"),
)
"""Each must be below the next: a level that comes before a milder one is never what is meant."""

_COUNTS = (".count", ".experiments")


class Contradiction(NamedTuple):
    """What is wrong: the key to point at, and one sentence."""

    key: str
    text: str


def contradiction(settings: Struct) -> Contradiction | None:
    """Return the first thing wrong with settings, or None."""
    return next(_contradictions(settings), None)


def _contradictions(settings: Struct) -> Iterator[Contradiction]:
    # A policy is judged where all its layers come together.
    numbers = dict(numbers_of(settings, ["policy"]))
    for key, value in numbers.items():
        # No bytes, no time, no importance are a choice; a tier of no entries is none.
        least_is_zero = key.startswith("retention.") and not key.endswith(_COUNTS)
        if not isfinite(value) or value < 0 or (value == 0 and not least_is_zero):
            yield Contradiction(key, f"{key} must be above 0, not {value}")
    if isinstance(settings, Profile):
        yield from _of_tiers(settings)
        yield from _of_levels(numbers)


def _of_tiers(profile: Profile) -> Iterator[Contradiction]:
    known = f"tiers are {', '.join(profile.tiers)}"
    for tier, keep in profile.retention.items():
        key = f"retention.{tier}"
        if tier not in profile.tiers and tier not in KEEP:
            yield Contradiction(key, inert(f"{key} is of no tier; {known}", 200))
        if keep.importance > 1:
            text = f"{key}.importance is at most 1, not {keep.importance}"
            yield Contradiction(f"{key}.importance", text)
        if tier in profile.tiers and keep.demote_to not in (None, *profile.tiers):
            text = f"{key}.demote_to is no tier; {known}"
            yield Contradiction(f"{key}.demote_to", inert(text, 200))


def _of_levels(numbers: dict[str, float]) -> Iterator[Contradiction]:
    cap = numbers["share_cap"]
    if cap > 1:
        yield Contradiction("share_cap", f"share_cap is a share of a limit, at most 1, not {cap}")
    for chain in _RISING:
        for low, high in pairwise(chain):
            if numbers[low] >= numbers[high]:
                text = f"{low} ({numbers[low]}) must be below {high} ({numbers[high]})"
                yield Contradiction(low, text)
