"""What a tier lets go, and how its numbers follow what its entries measure (R1, R2)."""

from __future__ import annotations

from itertools import islice

from msgspec import Struct, structs

from memwatch.agent.memory.entry import Entry
from memwatch.agent.memory.table import Table
from memwatch.domain.policy import Keep

RELIEF = 0.9
"""What brings a tier under its cap goes down to this share of it, not to the brim."""

RISE_BELOW = 0.75
"""A lowered number rises again only as far as it would fill this share of the cap: hysteresis."""

RISE_STEP = 1.25
"""And only to that many times what it is, or to what is configured: not a little each time."""

LEAST_MEASURED = 2
"""Experiments, or entries, that a mean is taken of."""


def ttl_us(keep: Keep) -> int | None:
    """Return how long entries live, in microseconds of the boot clock; None: until deleted."""
    return None if keep.ttl_s is None else round(keep.ttl_s * 1e6)


def is_expired(entry: Entry, keep: Keep, now_us: int) -> bool:
    """Return whether the time of an entry is over."""
    lives_us = ttl_us(keep) if entry.ttl_us is None else entry.ttl_us
    return lives_us is not None and entry.born_us + lives_us <= now_us


def in_excess(table: Table, keep: Keep, *, ended: bool = False) -> list[str]:
    """Return the keys beyond the numbers of `keep`, oldest first.

    Where nothing is deleted the numbers say how much stays in memory, and experiments are looked
    at only when one `ended`: theirs stay in the tier, and would be gone through at each put.
    """
    keys: dict[str, None] = {}
    most = keep.experiments
    if most is not None and len(table.experiments) > most and (keep.delete or ended):
        for number in sorted(table.experiments)[:-most]:
            keys.update(table.experiments[number])
    counted = table.entries if keep.delete else table.resident
    if not keep.delete:
        keys = {key: None for key in keys if key in table.resident}
    if keep.count is not None and len(counted) - len(keys) > keep.count:
        surplus = len(counted) - len(keys) - keep.count
        keys.update(dict.fromkeys(islice((k for k in counted if k not in keys), surplus)))
    return list(keys)


class Adjusted(Struct, frozen=True):
    """One number of a tier that follows the measurements from now on."""

    what: str
    """`experiments` or `count`."""
    old: int
    new: int
    why: str


class Adaptation:
    """The numbers in force: those configured, or fewer while that many would not fit."""

    def __init__(self, keep: Keep) -> None:
        self._configured = keep
        self.in_force = keep

    def adapt(self, table: Table, cap_bytes: int | None) -> list[Adjusted]:
        """Compare what the tier measures with its cap, and return what this changes."""
        changed: list[Adjusted] = []
        measured = {"experiments": len(table.experiments), "count": len(table.entries)}
        for what, number in measured.items():
            now: int | None = getattr(self.in_force, what)
            if now is None or cap_bytes is None or number < LEAST_MEASURED:
                continue
            mean_bytes = max(table.full_bytes / number, 1.0)
            wanted = _fitting(now, getattr(self._configured, what), mean_bytes, cap_bytes)
            if wanted != now:
                why = _why(what, mean_bytes, cap_bytes, now, wanted)
                changed.append(Adjusted(what, now, wanted, why))
                self.in_force = structs.replace(self.in_force, **{what: wanted})
        return changed


def _fitting(now: int, configured: int, mean_bytes: float, cap_bytes: int) -> int:
    if now * mean_bytes > cap_bytes:
        return max(int(RELIEF * cap_bytes / mean_bytes), 1)
    wanted = min(configured, int(RISE_BELOW * cap_bytes / mean_bytes))
    return wanted if wanted >= min(configured, RISE_STEP * now) else now


def _why(what: str, mean_bytes: float, cap_bytes: int, now: int, wanted: int) -> str:
    mean = f"a mean of {mean_bytes / 1e6:.3f} MB {'an entry' if what == 'count' else 'each'}"
    cap = f"the cap of {cap_bytes / 1e6:.3f} MB"
    if wanted < now:
        return f"{now} at {mean} are over {cap}"
    return f"{wanted} at {mean} fit into {cap} again"
