"""Entries to the lines of a checkpoint, each value held against the hash it was logged with.

The agent goes on meanwhile, and may change a value in place while it is read here. What is found
then is not what was captured: it is noted, and the checkpoint is taken again.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from memwatch.agent.context import Context
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import ABSENT, Blob, Change, Entry, Text
from memwatch.agent.memory.logged import INLINE_BYTES
from memwatch.agent.memory.places import unpacked
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types
from memwatch.wal import codec
from memwatch.wal.checkpoint_format import NOTHING, TierLine

_MOST_DIFF_BYTES: Final = 1_000_000
"""A longer difference would make a line too long for comfort: the value goes to a blob."""

_UNKEEPABLE = (TypeError, ValueError, RuntimeError)
"""UnkeepableError among them; RuntimeError: a value that changes while it is read."""

_encode = msgspec.json.Encoder().encode
_canonical = msgspec.json.Encoder(order="sorted").encode


class Found(Struct):
    """What a line says of a value: one of text, blob, difference; none if it is made again."""

    type: str
    text: Text | None = None
    blob: Blob | None = None
    ops: Text | None = None


class ChangedInPlaceError(Exception):
    """Values were changed in place, so that what was captured cannot be written any more."""

    def __init__(self, changed: list[tuple[str, Entry]]) -> None:
        tier, entry = changed[0]
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        super().__init__(f"{entry.key!r} of tier {tier}{more}: changed in place while written")
        self.changed = changed


class Lines:
    """Makes the lines of one checkpoint; raises LogError where a blob cannot be written.

    `persist` is the experiment whose rebuildable values are to be persisted (R8).
    """

    def __init__(
        self, context: Context, tiers: Tiers, types: Types, blobs: BlobStore, persist: int | None
    ) -> None:
        self._context, self._tiers = context, tiers
        self._types, self._blobs = types, blobs
        self._persist = persist
        self.entries = 0
        self.bytes: dict[str, int] = {}
        """What all entries seen hold in memory, by tier."""
        self.blobs: set[str] = set()
        """Hashes that the lines refer to."""
        self.changed: list[tuple[str, Entry]] = []
        """Values changed in place, whose logged text nobody knows any more."""
        self.drifting: list[tuple[str, Entry]] = []
        """Values changed in place since they were put, whose logged text is known: that is saved,
        also where the change made the value one that no text can be made of."""
        self.persisted = self.unpersisted = 0
        """Rebuildable values that were persisted, and those that no text can be made of."""

    def persists(self, entry: Entry) -> bool:
        """Whether the value of an entry is to be persisted although it can be made again."""
        number = self._persist
        return number is not None and entry.experiment == number and entry.source is not None

    def check(self) -> None:
        """Raise ChangedInPlaceError where the lines are not what was captured."""
        if self.changed:
            raise ChangedInPlaceError(self.changed)

    def refer(self, sha256: object) -> None:
        """Note a blob that the checkpoint refers to."""
        if isinstance(sha256, str):
            self.blobs.add(sha256)

    def of_entry(self, tier: str, entry: Entry) -> TierLine:
        """Return the line of a tier's file."""
        self.entries += 1
        self.bytes[tier] = self.bytes.get(tier, 0) + entry.bytes
        found = self._find(tier, entry)
        text, blob = found.text, found.blob
        return TierLine(
            key=entry.key,
            lsn=entry.lsn,
            bytes=entry.full_bytes or entry.bytes,
            importance=entry.importance,
            tokens=entry.tokens,
            type=found.type,
            x=entry.experiment,
            phase=entry.phase,
            ttl_us=entry.ttl_us,
            rebuildable=entry.source is not None,
            value=NOTHING if text is None else Raw(text),
            blob="" if blob is None else blob.sha256,
            blob_bytes=0 if blob is None else blob.bytes,
            source=NOTHING if entry.source is None else Raw(_canonical(entry.source)),
            heat=None if entry.heat is None else self._heat(entry),
        )

    def of_change(self, tier: str, key: str, change: Change, entry: Entry | None) -> bytes:
        """Return the line of an increment that says what became of a key."""
        self.entries += 1
        clock = self._context.clock
        t_us, m_us = clock.wall_us(), clock.boot_us()
        if entry is None:
            gone = {"tier": tier, "key": key, "bytes": 0}
            return codec.encode(change.lsn, t_us, m_us, "delete", gone)
        found = self._find(tier, entry, change)
        members = _members(tier, entry, found, change)
        kind = "update" if change.was_present else "put"
        return codec.encode(entry.lsn, t_us, m_us, kind, members)

    def _find(self, tier: str, entry: Entry, change: Change | None = None) -> Found:
        if entry.source is not None:
            found = self._made_again(tier, entry)
        else:
            text = self._text(tier, entry)
            ops = None if change is None else _difference(entry, text, change)
            found = Found(entry.type, ops=ops) if ops else self._kept(tier, entry, text)
        if found.blob is not None:
            self.blobs.add(found.blob.sha256)
        return found

    def _kept(self, tier: str, entry: Entry, text: Text | None) -> Found:
        if text is None:
            return Found(entry.type, blob=entry.blob)
        if len(text) <= INLINE_BYTES:
            return Found(entry.type, text)
        return Found(entry.type, blob=self._save(tier, entry, text, entry.type))

    def _made_again(self, tier: str, entry: Entry) -> Found:
        value = entry.value
        if value is not ABSENT and self.persists(entry):
            try:
                encoded = self._types.encode(value)
            except _UNKEEPABLE:
                self.unpersisted += 1
            else:
                self.persisted += 1
                blob = self._save(tier, entry, encoded.canonical, encoded.type)
                return Found(encoded.type, blob=blob)
        return Found(entry.type, blob=entry.blob)

    def _text(self, tier: str, entry: Entry) -> Text | None:
        """Return the canonical value as of `entry.lsn`; None where only a blob holds it."""
        # The agent may move the value meanwhile: its new place is there before the old one goes.
        shadow, value = entry.shadow, entry.value
        if value is ABSENT:
            return self._text_elsewhere(tier, entry) if shadow is None else shadow
        blob = entry.blob
        if blob is not None and self._types.is_fixed(value) and self._blobs.holds(blob):
            return None  # it is what its blob holds, without a look
        for encode in (_canonical, self._encode):  # the second knows all that the tiers know
            try:
                now = encode(value)
            except _UNKEEPABLE:
                continue
            if sha256(now).hexdigest() == entry.digest:
                return now
        if shadow is not None:
            self.drifting.append((tier, entry))
            return shadow
        if blob is not None and self._blobs.holds(blob):
            self.drifting.append((tier, entry))
            return None
        self.changed.append((tier, entry))
        return b"null"

    def _text_elsewhere(self, tier: str, entry: Entry) -> Text | None:
        packed, blob = entry.packed, entry.blob
        if packed is not None:
            return unpacked(packed)
        if blob is not None:
            return None
        with self._tiers.lock:  # it may have been on its way back
            if entry.value is not ABSENT:
                return self._text(tier, entry)
        raise ValueError(f"the value of {entry.key!r} of tier {tier} is nowhere")

    def _encode(self, value: Any) -> Text:
        return self._types.encode(value).canonical

    def _save(self, tier: str, entry: Entry, text: Text, kind: str) -> Blob:
        """Store a value, and let the entry know if it is still the one in force.

        One that has a blob already costs no write, and gets it back if the file is gone.
        """
        blob = self._blobs.save(text, entry.digest if entry.source is None else None)
        with self._tiers.lock:
            if entry.blob is None and self._tiers[tier].entry(entry.key) is entry:
                entry.blob, entry.type = blob, kind
                return blob
        self._blobs.release(blob.sha256, self._context.log.last_lsn)
        return blob

    def _heat(self, entry: Entry) -> list[int]:
        with self._tiers.lock:
            counts: list[int] = entry.heat.by_hour(self._context.clock.boot_us())
        return counts


def _difference(entry: Entry, text: Text | None, change: Change) -> Text | None:
    """Return the net difference where it still stands and is shorter than half the value."""
    if change.ops is None or not change.was_present:
        return None
    whole = len(text) if text is not None else entry.blob.bytes if entry.blob else 0
    ops = _encode(change.ops)
    return ops if len(ops) * 2 < whole and len(ops) <= _MOST_DIFF_BYTES else None


def _members(tier: str, entry: Entry, found: Found, change: Change) -> dict[str, Any]:
    """Return the members of a change's record, without those that say nothing."""
    members: dict[str, Any] = {"tier": tier, "key": entry.key}
    members["bytes"] = entry.full_bytes or entry.bytes
    if entry.importance != 0.5:
        members["importance"] = entry.importance
    optional = {
        "x": entry.experiment,
        "tokens": entry.tokens,
        "ttl_us": entry.ttl_us,
        "type": found.type or None,
        "phase": entry.phase or None,
    }
    members |= {name: value for name, value in optional.items() if value is not None}
    if entry.source is not None:
        members |= {"rebuildable": True, "source": Raw(_canonical(entry.source))}
    if found.ops is not None:
        members |= {"diff": Raw(found.ops), "from": change.base_lsn}
    elif found.text is not None:
        members["value"] = Raw(found.text)
    elif found.blob is not None:
        members |= {"blob": found.blob.sha256, "blob_bytes": found.blob.bytes}
    return members
