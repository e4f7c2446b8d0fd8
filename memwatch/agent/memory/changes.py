"""What changed since the last checkpoint, net, by key (R6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memwatch.agent.memory.entry import Change, Entry


class Difference(Struct, frozen=True):
    """How a value differs from the one it replaces."""

    ops: list[dict[str, Any]]
    text: bytes
    """The same as JSON."""
    from_lsn: int
    """Version of the entry that it applies to."""


class Changes:
    """The net changes of one tier. Its methods are called with the tiers' lock held."""

    def __init__(self) -> None:
        self._changes: dict[str, Change] = {}

    def of_put(
        self, key: str, old: Entry | None, difference: Difference | None, most_bytes: int
    ) -> Change:
        """Return what it is when an entry takes the place of `old`; its lsn is still to come.

        Differences over `most_bytes` are not kept.
        """
        before = self._changes.get(key)
        if before is None:
            before = _none_since(old)
        change = Change(lsn=0, was_present=before.was_present, base_lsn=before.base_lsn)
        if difference is not None and before.ops is not None:
            ops_bytes = before.ops_bytes + len(difference.text)
            if ops_bytes <= most_bytes:
                change.ops, change.ops_bytes = before.ops + difference.ops, ops_bytes
        return change

    def of_delete(self, old: Entry) -> Change:
        """Return what it is when an entry goes; its lsn is still to come."""
        before = self._changes.get(old.key) or _none_since(old)
        return Change(lsn=0, was_present=before.was_present, base_lsn=before.base_lsn)

    def note(self, key: str, change: Change, lsn: int, *, present: bool) -> None:
        """Note a change of that lsn; a second time it makes no difference.

        A key that is not `present` any more and that no checkpoint knows leaves nothing to say.
        """
        change.lsn = lsn
        if present or change.was_present:
            self._changes[key] = change
        else:
            self._changes.pop(key, None)

    def put(
        self, entry: Entry, old: Entry | None, difference: Difference | None, most_bytes: int
    ) -> None:
        """Note that `entry` took the place of `old`; see `of_put`."""
        change = self.of_put(entry.key, old, difference, most_bytes)
        self.note(entry.key, change, entry.lsn, present=True)

    def delete(self, old: Entry, lsn: int) -> None:
        """Note that an entry went."""
        self.note(old.key, self.of_delete(old), lsn, present=False)

    def take(self) -> dict[str, Change]:
        """Return all changes, and begin anew."""
        taken, self._changes = self._changes, {}
        return taken

    def give_back(self, older: Mapping[str, Change], present: Mapping[str, Entry]) -> None:
        """Put changes that were taken under those that came since; `present`: entries of now."""
        for key, change in older.items():
            newer = self._changes.pop(key, None)
            merged = change if newer is None else _merged(change, newer)
            if merged.was_present or key in present:
                self._changes[key] = merged


def _none_since(old: Entry | None) -> Change:
    """Return the change of a key that nothing happened to; its `ops` are empty, not None."""
    if old is None:
        return Change(lsn=0, was_present=False)
    return Change(lsn=old.lsn, was_present=True, base_lsn=old.lsn, ops=[])


def _merged(older: Change, newer: Change) -> Change:
    merged = Change(lsn=newer.lsn, was_present=older.was_present, base_lsn=older.base_lsn)
    if older.ops is not None and newer.ops is not None:
        merged.ops, merged.ops_bytes = older.ops + newer.ops, older.ops_bytes + newer.ops_bytes
    return merged
