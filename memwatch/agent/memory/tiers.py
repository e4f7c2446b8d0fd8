"""Memory in tiers: real values, their sizes, and how many of them stay.

Every change is logged before it is applied, with the bytes the entry holds afterwards (R7).
Retention is by count of groups (R1) and, where a cap is given, by bytes (R2). Sizes come from
`memwatch.agent.memory.sizes`. Values are not to be changed after they were put: put them again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from memwatch.agent.memory.sizes import deep_bytes

INLINE_BYTES = 4_000
"""A value up to this size stands in its log record; a larger one waits for a checkpoint."""

CAP_RELIEF = 0.9
"""A purge over the cap goes down to this share of it, so that it is not followed by the next."""

Recorder = Callable[[str, dict[str, Any]], int]
"""Appends a record to the run's log, returns its lsn."""


class Entry(Struct, kw_only=True):
    """One value of a tier, and what recovery and purges must know about it."""

    key: str
    value: Any
    bytes: int
    lsn: int
    """Of its last change: what makes replay idempotent."""
    tokens: int | None = None
    rebuildable: bool = False
    """It can be made again from its source, so a checkpoint leaves its value out (R4)."""
    importance: float = 0.5
    group: str | None = None
    """What it is counted under by retention; None for an entry that lives until deleted."""
    digest: str | None = None
    """SHA-256 of the canonical value in hexadecimal, once a checkpoint computed it."""


ENTRY_BYTES = deep_bytes(Entry(key="", value=None, bytes=1 << 40, lsn=1 << 40)) + 100
"""What an entry costs besides key and value: itself, its integers, its place in the tables."""


class Change(Struct, frozen=True):
    """What happened to a key since the last checkpoint, net."""

    lsn: int
    was_present: bool


class Keep(Struct, frozen=True, kw_only=True):
    """What a tier keeps; None is without limit."""

    groups: int | None = None
    bytes: int | None = None


Demote = Callable[[Entry], None]


class Tier:
    """One tier. Made by `Tiers`, which share one lock."""

    def __init__(self, name: str, keep: Keep, record: Recorder, lock: threading.RLock) -> None:
        self.name = name
        self.keep = keep
        self.demote: Demote | None = None
        """Called with each entry that retention is about to take away."""
        self.bytes = 0
        self.tokens: int | None = None
        self._record = record
        self._lock = lock
        self._entries: dict[str, Entry] = {}
        self._groups: dict[str, dict[str, None]] = {}
        self._accesses: dict[str, int] = {}
        self._changes: dict[str, Change] = {}

    def __len__(self) -> int:
        """Count of entries."""
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        """Whether the key has an entry."""
        return key in self._entries

    def entry(self, key: str) -> Entry | None:
        """Return the entry of a key, or None; not counted as an access."""
        return self._entries.get(key)

    def entries(self) -> list[Entry]:
        """Return all entries, oldest first."""
        with self._lock:
            return list(self._entries.values())

    def put(
        self,
        key: str,
        value: Any,
        *,
        tokens: int | None = None,
        rebuildable: bool = False,
        importance: float = 0.5,
        group: str | None = None,
    ) -> Entry:
        """Log, then store a value under a key; an entry that exists is replaced (`update`).

        Raises LogError, and TypeError for a small value that JSON cannot hold: then nothing has
        changed, unless it was the purge after it that could not be logged.
        """
        size = deep_bytes(key) + deep_bytes(value) + ENTRY_BYTES
        members: dict[str, Any] = {
            "tier": self.name,
            "key": key,
            "bytes": size,
            "rebuildable": rebuildable,
            "importance": importance,
        }
        if tokens is not None:
            members["tokens"] = tokens
        if size <= INLINE_BYTES:
            members["value"] = value
        with self._lock:
            lsn = self._record("update" if key in self._entries else "put", members)
            entry = Entry(
                key=key,
                value=value,
                bytes=size,
                lsn=lsn,
                tokens=tokens,
                rebuildable=rebuildable,
                importance=importance,
                group=group,
            )
            self._changed(key, lsn)
            self._remove(key)
            self._add(entry)
            self._retain()
        return entry

    def get(self, key: str) -> Any:
        """Return the value of a key and count the access; raises KeyError."""
        with self._lock:
            entry = self._entries[key]
            self._accesses[key] = self._accesses.get(key, 0) + 1
            return entry.value

    def delete(self, key: str) -> None:
        """Log, then remove an entry; raises KeyError when there is none."""
        with self._lock:
            if key not in self._entries:
                raise KeyError(key)
            self._delete(key)

    def clear(self, prefix: str = "") -> int:
        """Delete all entries whose key begins with `prefix`; returns the bytes they held."""
        with self._lock:
            before = self.bytes
            for key in [key for key in self._entries if key.startswith(prefix)]:
                self._delete(key)
            return before - self.bytes

    def log_accesses(self) -> None:
        """Write the counts of accesses since the last time (R3)."""
        with self._lock:
            if self._accesses:
                self._record("access", {"tier": self.name, "counts": self._accesses})
                self._accesses = {}

    def changes(self) -> dict[str, Change]:
        """Return the net changes since `forget_changes`, by key."""
        with self._lock:
            return dict(self._changes)

    def forget_changes(self, upto_lsn: int) -> None:
        """Say that a checkpoint holds everything up to `upto_lsn`."""
        with self._lock:
            later = {key: change for key, change in self._changes.items() if change.lsn > upto_lsn}
            self._changes = {key: Change(change.lsn, True) for key, change in later.items()}

    # Below: called with the lock held.

    def _changed(self, key: str, lsn: int) -> None:
        before = self._changes.get(key)
        present = key in self._entries if before is None else before.was_present
        self._changes[key] = Change(lsn, present)

    def _add(self, entry: Entry) -> None:
        self._entries[entry.key] = entry
        self.bytes += entry.bytes
        if entry.tokens is not None:
            self.tokens = (self.tokens or 0) + entry.tokens
        if entry.group is not None:
            self._groups.setdefault(entry.group, {})[entry.key] = None

    def _remove(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        self.bytes -= entry.bytes
        if entry.tokens is not None:
            self.tokens = (self.tokens or 0) - entry.tokens
        if entry.group is not None:
            group = self._groups[entry.group]
            del group[key]
            if not group:
                del self._groups[entry.group]

    def _delete(self, key: str) -> None:
        lsn = self._record("delete", {"tier": self.name, "key": key, "bytes": 0})
        self._changed(key, lsn)
        self._remove(key)
        self._accesses.pop(key, None)
        if not self._changes[key].was_present:
            del self._changes[key]

    def _retain(self) -> None:
        groups, cap = self.keep.groups, self.keep.bytes
        if groups is not None and len(self._groups) > groups:
            excess = list(self._groups)[: len(self._groups) - groups]
            self._purge([key for group in excess for key in self._groups[group]], "retention")
        if cap is not None and self.bytes > cap and len(self._entries) > 1:
            self._purge(self._oldest(self.bytes - int(cap * CAP_RELIEF)), "share_cap")

    def _oldest(self, wanted_bytes: int) -> list[str]:
        """Return the oldest keys that hold `wanted_bytes`; never the entry just put."""
        keys: list[str] = []
        for entry in list(self._entries.values())[:-1]:
            if wanted_bytes <= 0:
                break
            keys.append(entry.key)
            wanted_bytes -= entry.bytes
        return keys

    def _purge(self, keys: list[str], cause: Literal["retention", "share_cap"]) -> None:
        what = {"tier": self.name, "how": "oldest", "cause": cause}
        began, before = time.monotonic_ns(), self.bytes
        self._record("purge.begin", what)
        for key in keys:
            if self.demote is not None:
                self.demote(self._entries[key])
            self._delete(key)
        done = {
            "entries": len(keys),
            "freed_bytes": before - self.bytes,
            "persisted": 0,
            "dropped": len(keys),
            "duration_us": (time.monotonic_ns() - began) // 1000,
        }
        self._record("purge.end", what | done)


class Tiers(Mapping[str, Tier]):
    """All tiers of a run, by name, in their order."""

    def __init__(self, keep: Mapping[str, Keep], record: Recorder) -> None:
        self.lock = threading.RLock()
        """Held while a state is read that must fit together."""
        self._tiers = {name: Tier(name, what, record, self.lock) for name, what in keep.items()}

    def __getitem__(self, name: str) -> Tier:
        """Return a tier by name."""
        return self._tiers[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate the names."""
        return iter(self._tiers)

    def __len__(self) -> int:
        """Count of tiers."""
        return len(self._tiers)

    def totals(self) -> dict[str, dict[str, int]]:
        """Return entries and bytes (tokens and limit where known) of each tier."""
        with self.lock:
            return {name: _totals(tier) for name, tier in self._tiers.items()}


def _totals(tier: Tier) -> dict[str, int]:
    known = {"entries": len(tier), "bytes": tier.bytes}
    if tier.tokens is not None:
        known["tokens"] = tier.tokens
    if tier.keep.bytes is not None:
        known["limit"] = tier.keep.bytes
    return known
