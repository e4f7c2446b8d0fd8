"""What else happened around an intervention and may explain what was measured, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memwatch.analytics.efficacy.window import Usage
from memwatch.domain.intervention import ResourceEffect
from memwatch.domain.units import bytes_text, duration_text

MOST = 6
_GREW = "it grew by"
_GROWS_SHARE = 0.01
"""Usage that rose by this share in the window before was growing."""


class Happened(NamedTuple):
    """Something else, on the axis of the intervention."""

    at_us: int
    what: str
    """In words, without its time: "purge recent", "experiment began", "phase validation"."""
    counted: bool = False
    """Too common to be told one by one."""
    aside: bool = False
    """It is not about the same resources."""


def confounders(
    began_us: int, done_us: int, others: Iterable[Happened], settle_us: int, before_us: int
) -> list[str]:
    """Return what fell into the time that was measured; `others` come most telling first."""
    near = [one for one in others if began_us - before_us <= one.at_us <= done_us + settle_us]
    counts = Counter(one.what for one in near if one.counted)
    told = [f"{one.what} {_when(one.at_us, began_us, done_us)}" for one in near if not one.counted]
    many = [f"{what} ×{count}" if count > 1 else what for what, count in counts.items()]
    return list(dict.fromkeys([*told, *many]))


def grew_before(said: Iterable[str]) -> bool:
    """Whether usage grew already: what only holds that up frees nothing, and helps."""
    return any(one.startswith(_GREW) for one in said)


def of_usage(before: Usage | None, window_s: float, unit: str = "bytes") -> list[str]:
    """Return what the usage before says: that it grew already, that it was not always measured."""
    if before is None:
        return []
    found = []
    if before.slope_per_s * window_s > max(_GROWS_SHARE * abs(before.median), before.noise / 2):
        per_min = before.slope_per_s * 60
        rate = bytes_text(per_min) if unit == "bytes" else f"{per_min:,.0f} tokens"
        found.append(f"{_GREW} {rate}/min before")
    if before.gap:
        found.append("a gap in the recording before")
    return found


def of_effects(effects: Sequence[ResourceEffect], came_back_unseen: bool) -> list[str]:
    """Return what is to be said of the first resource: that its return fell into a gap."""
    if came_back_unseen and effects and effects[0].rebound_s is not None:
        return ["it came back while nobody measured, perhaps earlier"]
    return []


def _when(at_us: int, began_us: int, done_us: int) -> str:
    if at_us < began_us:
        return f"{duration_text((began_us - at_us) / 1e6)} before"
    if at_us > done_us:
        return f"{duration_text((at_us - done_us) / 1e6)} after"
    return "meanwhile"
