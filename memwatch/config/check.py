"""Settings that contradict each other or cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import fields

from memwatch.config.schema import Profile

_RISING = (
    ("thresholds.warn", "thresholds.intervene", "thresholds.emergency"),
    ("thresholds.soft", "thresholds.hard"),
    ("lights.disk_critical_bytes", "lights.disk_act_bytes", "lights.disk_warn_bytes"),
    ("lights.processes_warn", "lights.processes_act"),
    ("lights.step_watch_s", "lights.step_warn_s"),
    ("windows.growth_s[0]", "windows.growth_s[1]", "windows.growth_s[2]"),
)
"""Each must be below the next: a level that comes before a milder one is never what is meant."""

_SHARES = (*_RISING[0], *_RISING[1], "share_cap")


class Contradiction(NamedTuple):
    """What is wrong: the key to point at, and one sentence."""

    key: str
    text: str


def contradiction(settings: Struct) -> Contradiction | None:
    """Return the first thing wrong with settings, or None."""
    numbers = dict(_numbers(settings, ""))
    return next(_contradictions(numbers, isinstance(settings, Profile)), None)


def _contradictions(numbers: dict[str, float], is_profile: bool) -> Iterator[Contradiction]:
    for key, value in numbers.items():
        least_is_zero = key.startswith("retention.")  # keeping none is a choice
        if not isfinite(value) or value < 0 or (value == 0 and not least_is_zero):
            yield Contradiction(key, f"{key} must be above 0, not {value}")
    if not is_profile:
        return
    for key in _SHARES:
        if numbers[key] > 1:
            yield Contradiction(key, f"{key} is a share of a limit, at most 1, not {numbers[key]}")
    for chain in _RISING:
        for low, high in pairwise(chain):
            if numbers[low] >= numbers[high]:
                text = f"{low} ({numbers[low]}) must be below {high} ({numbers[high]})"
                yield Contradiction(low, text)


def _numbers(value: Any, path: str) -> Iterator[tuple[str, float]]:
    """Walk a struct: every number with its path."""
    if isinstance(value, Struct):
        for field in fields(value):
            inner = f"{path}.{field.name}" if path else field.name
            yield from _numbers(getattr(value, field.name), inner)
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{path}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value
