"""Which entries a purge takes, and in which order: requirement R3.

1. expired
2. intermediates of a phase that is over, the first candidates among what is still of use
3. of a tier over its cap the oldest, until it is under it
4. the least accessed: accesses of the last 24 h (and one) × importance of entry × tier

Within 1, 2 and 4 what can be made again goes before what must be persisted; equals go by longest
idle. An entry leaves the state only if it expired in a tier that deletes; from all others only the
value leaves memory, so only those whose value is there, and worth a file, are candidates (R4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from memwatch.agent.memory.entry import Entry, How
from memwatch.agent.memory.retention import RELIEF, is_expired
from memwatch.agent.memory.table import Table, evicted_bytes
from memwatch.domain.policy import Keep

LEAST_FREED_BYTES: Final = 256
"""A value that frees less stays in memory: persisting it would cost more than it frees."""

_EXPIRED, _STALE, _OVER_CAP, _LEAST_ACCESSED = range(4)


class Look(NamedTuple):
    """A tier as a purge sees it."""

    name: str
    table: Table
    keep: Keep
    cap_bytes: int | None
    only: frozenset[str] | None = None
    """Keys that may go; None for all."""


class Now(NamedTuple):
    """When and how a purge is planned."""

    boot_us: int
    phase: str
    may_delete: bool
    """False while the run is read-only: what would be deleted only leaves memory."""


class Victim(Struct, frozen=True):
    """An entry that a purge takes."""

    tier: str
    key: str
    lsn: int
    """Version that was looked at: one that changed since is left alone."""
    frees_bytes: int
    deletes: bool
    rebuildable: bool
    rank: tuple[float, ...] = ()

    @property
    def may_leave(self) -> bool:
        """Whether it is worth taking: a file may cost more than it frees."""
        if self.deletes:
            return True
        return self.frees_bytes >= (1 if self.rebuildable else LEAST_FREED_BYTES)


def victim_of(tier: str, entry: Entry, *, deletes: bool, rank: tuple[float, ...] = ()) -> Victim:
    """Return what taking an entry means: all of it, or its value out of memory."""
    if deletes:
        frees_bytes = entry.bytes
    else:
        frees_bytes = entry.bytes - evicted_bytes(entry) if entry.resident else 0
    rebuildable = entry.source is not None
    return Victim(tier, entry.key, entry.lsn, frees_bytes, deletes, rebuildable, rank)


def plan(
    looks: Sequence[Look], how: How | None, target_bytes: int | None, now: Now
) -> list[Victim]:
    """Return whom a purge takes, in order, until they free `target_bytes` (None: all)."""
    found = [victim for look in looks for victim in _victims(look, how, now)]
    found.sort(key=lambda victim: victim.rank)
    if target_bytes is None or how == "compress":  # what packing frees shows when it is done
        return found
    taken: list[Victim] = []
    for victim in found:
        if target_bytes <= 0:
            break
        taken.append(victim)
        target_bytes -= victim.frees_bytes
    return taken


def _victims(look: Look, how: How | None, now: Now) -> Iterator[Victim]:
    keep = look.keep
    over_cap = _oldest_over_cap(look) if how is None else {}
    for order, entry in enumerate(look.table.entries.values()):
        if look.only is not None and entry.key not in look.only:
            continue
        expired = is_expired(entry, keep, now.boot_us)
        if how == "expired" and not expired:
            continue
        rank: tuple[float, ...]
        if how == "oldest":
            rank = (entry.born_us, order)
        elif not expired and entry.key in over_cap and not _is_stale(entry, keep, now):
            rank = (_OVER_CAP, over_cap[entry.key])
        else:
            first = how is None and _is_stale(entry, keep, now)
            place = _EXPIRED if expired else _STALE if first else _LEAST_ACCESSED
            rank = (place, *_use(entry, keep, now.boot_us))
        deletes = expired and keep.delete and now.may_delete and how != "compress"
        victim = victim_of(look.name, entry, deletes=deletes, rank=rank)
        if victim.may_leave:
            yield victim


def _is_stale(entry: Entry, keep: Keep, now: Now) -> bool:
    """Return whether an entry is an intermediate of a phase that is over."""
    return keep.intermediate and entry.phase != now.phase


def _use(entry: Entry, keep: Keep, now_us: int) -> tuple[float, float, float]:
    """Return what to go by among equals: irreplaceable, use expected, time of last use."""
    heat = entry.heat
    accesses = 0 if heat is None else heat.accesses(now_us)
    used_us = entry.born_us if heat is None else max(entry.born_us, heat.last_us)
    weight = (accesses + 1) * entry.importance * keep.importance
    return (entry.source is None, weight, used_us)


def _oldest_over_cap(look: Look) -> dict[str, int]:
    if look.cap_bytes is None or look.table.bytes <= look.cap_bytes:
        return {}
    keys = oldest(look.table, look.table.bytes - int(RELIEF * look.cap_bytes))
    return {key: place for place, key in enumerate(keys)}


def oldest(table: Table, wanted_bytes: int, spare: str | None = None) -> list[str]:
    """Return the keys that are in memory longest and free `wanted_bytes` by leaving; not `spare`.

    A value that was brought back counts from then on: it was asked for.
    """
    keys: list[str] = []
    for key in table.resident:
        if wanted_bytes <= 0:
            break
        victim = victim_of("", table.entries[key], deletes=False)
        if key != spare and victim.may_leave:
            keys.append(key)
            wanted_bytes -= victim.frees_bytes
    return keys
