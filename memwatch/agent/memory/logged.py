"""A table whose every change is logged before it is applied (R7), and whose values can move.

A record holds the whole value while it is small, else a difference from the version before it,
else the hash of a blob that was written first. What cannot be written or logged is not applied.
A move (to text, to a blob, to nothing but a source) leaves the state as it is: it is not logged.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import msgspec

from memwatch.agent.context import Context
from memwatch.agent.memory import compression
from memwatch.agent.memory.changes import Changes, Difference
from memwatch.agent.memory.entry import ABSENT, Change, Entry, Text
from memwatch.agent.memory.places import Places, unpacked
from memwatch.agent.memory.sizes import deep_bytes
from memwatch.agent.memory.table import Table, resident_bytes
from memwatch.agent.memory.values import digest, plain
from memwatch.agent.receipt import Receipt, until_done
from memwatch.domain.errors import UnkeepableError
from memwatch.wal.diff import difference

INLINE_BYTES: Final = 4_000
"""A canonical value up to this length stands in its record; a longer one in a blob."""

_LEAST_DIFF_BYTES = 64
"""A shorter value is logged whole: no difference would take less than half of it."""

_MOST_DIFF_BYTES = 1_000_000
"""After a longer difference the whole value goes to a blob: a record is a line of at most 16 MB."""

_encode = msgspec.json.Encoder().encode


class LoggedTable:
    """The entries of one tier. Its methods are called with the tiers' lock held."""

    def __init__(
        self,
        name: str,
        context: Context,
        places: Places,
        lock: threading.RLock,
    ) -> None:
        self.name = name
        self.lock = lock
        self.table = Table()
        self.changes = Changes()
        self._context = context
        self._places = places

    def put(self, entry: Entry, text: Text, value_bytes: int) -> None:
        """Log an entry of that canonical value or source, then store it under its key.

        Sets `lsn`, `bytes` and what the entry takes over from the one that it replaces.
        """
        old = self.table.entries.get(entry.key)
        change = None if old is None else self._compare(old, entry, text)
        carried = entry.blob
        held = self._held(entry, text, change)
        entry.bytes = entry.full_bytes = resident_bytes(entry, value_bytes)
        most_bytes = min(len(text) // 2, _MOST_DIFF_BYTES)
        noted = self.changes.of_put(entry.key, old, change, most_bytes)
        members = self._about(entry) | held
        receipt = Receipt()
        try:
            entry.lsn = self._context.record("put" if old is None else "update", members, receipt)
            self.changes.note(entry.key, noted, entry.lsn, present=True)
            self._replace(old, entry)
        except BaseException:
            if receipt.lsn:
                entry.lsn = receipt.lsn
                self._complete(entry.key, entry, noted, receipt.lsn)
            elif entry.blob is not carried:
                self._release(entry, self._context.log.last_lsn)
            raise

    def delete(self, key: str) -> None:
        """Log that an entry goes, then let go of it."""
        entry = self.table.entries[key]
        noted, receipt = self.changes.of_delete(entry), Receipt()
        try:
            members = {"tier": self.name, "key": key, "bytes": 0}
            lsn = self._context.record("delete", members, receipt)
            self.changes.note(key, noted, lsn, present=False)
            self.table.remove(key)
            self._release(entry, lsn)
        except BaseException:
            if receipt.lsn:
                self._complete(key, None, noted, receipt.lsn)
            raise

    def settle(self, key: str) -> tuple[Entry, Text, bool]:
        """Return the entry and the canonical text of an irreplaceable resident value.

        One that was changed in place and never put again is logged first: then the third is True.
        Raises LogError, and UnkeepableError for a value that the change made unkeepable.
        """
        entry = self.table.entries[key]
        if entry.value is ABSENT:
            return entry, unpacked(entry.packed or b""), False
        kind, text = self._places.encode(self.where(key), entry.value)
        found = digest(text)
        if found == entry.digest and kind == entry.type:
            return entry, text, False
        changed = msgspec.structs.replace(entry, digest=found, type=kind, blob=None, shadow=None)
        changed.born_us = self._context.clock.boot_us()
        self.put(changed, text, deep_bytes(changed.value))
        about = f"the value of {self.where(key)} was changed in place and not put again"
        self._context.record(
            "error", {"kind": "changed_in_place", "message": about, "tier": self.name, "key": key}
        )
        return changed, text, True

    def evict(self, key: str) -> int:
        """Let a resident value leave memory, persisted unless it can be made again.

        Returns the bytes that this freed; raises what `settle` raises: then it stays.
        """
        entry = self.table.entries[key]
        if entry.source is None:
            entry, text, _ = self.settle(key)
            if entry.blob is None:
                entry.blob = self._places.blobs.save(text, entry.digest)
        # A checkpoint may be looking: the new place is there before the old one goes.
        return self._move(entry, ABSENT, None, None)

    def pack(self, key: str, *, really: bool = True) -> int:
        """Keep an irreplaceable resident value as compressed text, where that is less.

        Returns the bytes that this freed, or would free; raises what `settle` raises.
        """
        entry = self.table.entries[key]
        if not really:
            _, text = ("", unpacked(entry.packed)) if entry.packed else self._encoded(entry)
            after = msgspec.structs.replace(entry, packed=compression.pack(text), shadow=None)
            return max(entry.bytes - resident_bytes(after, 0), 0)
        entry, text, _ = self.settle(key)
        packed, before = compression.pack(text), entry.packed
        after = msgspec.structs.replace(entry, packed=packed, shadow=None)
        if resident_bytes(after, 0) >= entry.bytes or packed == before:
            return 0
        return self._move(entry, ABSENT, packed, None)

    def bring_back(self, entry: Entry, value: Any, value_bytes: int) -> None:
        """Keep the value of an entry as an object again."""
        self._move(entry, value, None, entry.shadow, value_bytes)

    def where(self, key: str) -> str:
        """Return how messages name an entry."""
        return f"{key!r} of tier {self.name}"

    def _encoded(self, entry: Entry) -> tuple[str, Text]:
        return self._places.encode(self.where(entry.key), entry.value)

    def _held(self, entry: Entry, text: Text, change: Difference | None) -> dict[str, Any]:
        """Return how a record holds the value; a large one is in its blob when this returns."""
        if entry.source is not None:
            return {"rebuildable": True, "source": msgspec.Raw(text)}
        if change is not None:
            return {"diff": msgspec.Raw(change.text), "from": change.from_lsn}
        if len(text) <= INLINE_BYTES:
            return {"value": msgspec.Raw(text)}
        entry.blob = self._places.blobs.save(text, entry.digest)
        return {"blob": entry.blob.sha256, "blob_bytes": entry.blob.bytes}

    def _about(self, entry: Entry) -> dict[str, Any]:
        members: dict[str, Any] = {"tier": self.name, "key": entry.key, "bytes": entry.bytes}
        if entry.tokens is not None:
            members["tokens"] = entry.tokens
        if entry.importance != 0.5:
            members["importance"] = entry.importance
        if entry.ttl_us is not None:
            members["ttl_us"] = entry.ttl_us
        if entry.type:
            members["type"] = entry.type
        if entry.experiment != self._context.experiment:
            members["of"] = entry.experiment
        return members

    def _compare(self, old: Entry, entry: Entry, text: Text) -> Difference | None:
        """Return the difference from the old version where it is known and worth it."""
        entry.heat = old.heat
        if entry.source is not None or old.source is not None or old.type != entry.type:
            return None
        if old.shadow is not None:
            entry.shadow = text
        if old.digest == entry.digest:
            entry.blob = old.blob
            return Difference([], b"[]", old.lsn)
        if len(text) < _LEAST_DIFF_BYTES:
            return None
        before = self._text_before(old)
        if before is None:
            entry.shadow = text if old.value is not ABSENT else None
            return None
        if len(text) - len(before) > len(text) // 2:  # what is added alone takes more than half
            return None
        ops = difference(plain(before), plain(text))
        ops_text = _encode(ops)
        worth = len(ops_text) < min(len(text) // 2, _MOST_DIFF_BYTES)
        return Difference(ops, ops_text, old.lsn) if worth else None

    def _text_before(self, old: Entry) -> Text | None:
        """Return the old canonical value; None where it is not at hand, or changed in place."""
        if old.shadow is not None:
            return old.shadow
        if old.value is ABSENT:
            return None if old.packed is None else unpacked(old.packed)
        try:
            _, text = self._encoded(old)
        except UnkeepableError:
            return None
        return text if digest(text) == old.digest else None

    def _move(
        self,
        entry: Entry,
        value: Any,
        packed: Text | None,
        shadow: Text | None,
        value_bytes: int = 0,
    ) -> int:
        """Change where a value is; returns the bytes that this freed."""
        before = entry.bytes
        try:
            if packed is not None:
                entry.packed = packed  # a checkpoint may be looking
            entry.value = value
            entry.packed, entry.shadow = packed, shadow
            return self.table.moved(entry, value_bytes)
        except BaseException:
            entry.bytes = before if entry.value is not value else resident_bytes(entry, value_bytes)
            until_done(self.table.mend)
            raise

    def _complete(self, key: str, entry: Entry | None, noted: Change, lsn: int) -> None:
        """Apply what is logged after an interrupt stopped that anywhere.

        A blob that was to be released may stay until the next start: better than one too few.
        """

        def apply() -> None:
            self.changes.note(key, noted, lsn, present=entry is not None)
            self.table.entries.pop(key, None)
            if entry is not None:
                self.table.entries[key] = entry
            self.table.mend()

        until_done(apply)

    def _replace(self, old: Entry | None, entry: Entry) -> None:
        if old is not None:
            self.table.remove(old.key)
            if old.blob is not entry.blob:
                self._release(old, entry.lsn)
            if old.shadow is not None and old.value is not ABSENT:
                # A checkpoint that holds the old entry finds there what it held.
                old.packed = old.shadow
                old.value = ABSENT
        self.table.add(entry)

    def _release(self, entry: Entry, lsn: int) -> None:
        if entry.blob is not None:
            self._places.blobs.release(entry.blob.sha256, lsn)
