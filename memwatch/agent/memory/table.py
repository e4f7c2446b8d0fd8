"""The entries of a tier by key, with the sums and orders that retention asks for."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Mapping, MutableMapping

from memwatch.agent.memory.entry import Blob, Entry
from memwatch.agent.memory.overlay import Overlay
from memwatch.agent.memory.sizes import deep_bytes

_ENTRY_BYTES = 150 + deep_bytes(
    Entry(
        key="",
        lsn=1 << 40,
        bytes=1 << 40,
        full_bytes=1 << 40,
        digest="0" * 64,
        experiment=1 << 20,
        born_us=1 << 50,
    )
)
"""Of an entry without key and value: itself, its numbers, its place in the tables."""
_BLOB_BYTES = deep_bytes(Blob("0" * 64, 1 << 30))
_TEXT_BYTES = sys.getsizeof(b"")
_SOME = 1000


def evicted_bytes(entry: Entry) -> int:
    """Return what an entry holds once its value has left memory, for a blob or its source."""
    total = _ENTRY_BYTES + sys.getsizeof(entry.key)
    return total if entry.blob is None and entry.source is not None else total + _BLOB_BYTES


def resident_bytes(entry: Entry, value_bytes: int) -> int:
    """Return what an entry holds in memory, its value as an object being of `value_bytes`."""
    total = _ENTRY_BYTES + sys.getsizeof(entry.key) + value_bytes
    for text in (entry.packed, entry.shadow):
        if text is not None:
            total += _TEXT_BYTES + len(text)
    return total if entry.blob is None else total + _BLOB_BYTES


class Table:
    """Entries in the order of their last change. Used with the tiers' lock held."""

    def __init__(self) -> None:
        self._ttl_us: int | None = None
        self.entries: MutableMapping[str, Entry] = {}
        self.bytes = 0
        self.full_bytes = 0
        """What all of it would hold with every value as an object."""
        self.tokens: int | None = None
        self.resident: dict[str, None] = {}
        """Keys whose values are in memory, those put or brought back longest ago first."""
        self.experiments: dict[int, dict[str, None]] = {}
        """Keys by the experiment they count under."""
        self._deadlines: list[tuple[int, int, str]] = []
        """Heap of boot clock, lsn, key; an item whose entry changed since means nothing."""

    def live(self, ttl_us: int | None) -> None:
        """Let entries that do not say it themselves live so long; None: until deleted."""
        if ttl_us != self._ttl_us:
            self._ttl_us = ttl_us
            self.watch_all()

    def add(self, entry: Entry) -> None:
        """Take an entry whose key is free."""
        self.entries[entry.key] = entry
        self.bytes += entry.bytes
        self.full_bytes += entry.full_bytes
        if entry.resident:
            self.resident[entry.key] = None
        if entry.tokens is not None:
            self.tokens = (self.tokens or 0) + entry.tokens
        if entry.experiment is not None:
            self.experiments.setdefault(entry.experiment, {})[entry.key] = None
        self._watch(entry)

    def remove(self, key: str) -> Entry | None:
        """Let go of an entry and return it, or None where there is none."""
        entry = self.entries.pop(key, None)
        if entry is None:
            return None
        self.bytes -= entry.bytes
        self.full_bytes -= entry.full_bytes
        self.resident.pop(key, None)
        if entry.tokens is not None:
            self.tokens = (self.tokens or 0) - entry.tokens
        if entry.experiment is not None:
            of_experiment = self.experiments[entry.experiment]
            del of_experiment[key]
            if not of_experiment:
                del self.experiments[entry.experiment]
        return entry

    def moved(self, entry: Entry, value_bytes: int) -> int:
        """Note where the value of an entry is after a move; returns the bytes that this freed."""
        now_bytes = resident_bytes(entry, value_bytes)
        freed, entry.bytes = entry.bytes - now_bytes, now_bytes
        self.bytes -= freed
        if value_bytes and now_bytes > entry.full_bytes:
            self.full_bytes += now_bytes - entry.full_bytes
            entry.full_bytes = now_bytes
        self.resident.pop(entry.key, None)
        if entry.resident:
            self.resident[entry.key] = None
        return freed

    def mend(self) -> None:
        """Make sums and orders anew from the entries, after an interrupt in the middle of a change.

        Values in memory keep their order as far as it is known.
        """
        present = self.entries
        kept = [key for key in self.resident if key in present and present[key].resident]
        self.resident = dict.fromkeys(kept)
        self.resident |= {key: None for key, entry in present.items() if entry.resident}
        self.bytes = sum(entry.bytes for entry in present.values())
        self.full_bytes = sum(entry.full_bytes for entry in present.values())
        stated = [entry.tokens for entry in present.values() if entry.tokens is not None]
        self.tokens = sum(stated) if stated or self.tokens is not None else None
        experiments: dict[int, dict[str, None]] = {}
        for key, entry in present.items():
            if entry.experiment is not None:
                experiments.setdefault(entry.experiment, {})[key] = None
        self.experiments = experiments
        self.watch_all()

    def freeze(self) -> Mapping[str, Entry]:
        """Return the entries of now, by key; what is returned stays so until `thaw`."""
        while not self.thaw(_SOME):
            continue
        assert isinstance(self.entries, dict)
        frozen, self.entries = self.entries, Overlay(self.entries)
        return frozen

    def thaw(self, most: int) -> bool:
        """Bring so many changes since `freeze` into what it returned; says whether that is all."""
        if not isinstance(self.entries, Overlay):
            return True
        if not self.entries.settle(most):
            return False
        self.entries = self.entries.base
        return True

    def watch_all(self) -> None:
        """Let `pop_expired` tell again of whatever expired and is still there."""
        self._deadlines = []
        for entry in self.entries.values():
            self._watch(entry)

    def pop_expired(self, now_us: int) -> list[str]:
        """Return the keys that expired since the last time; each is told once."""
        keys: list[str] = []
        while self._deadlines and self._deadlines[0][0] <= now_us:
            item = heapq.heappop(self._deadlines)
            if self._is_current(item):
                keys.append(item[2])
        return keys

    def _watch(self, entry: Entry) -> None:
        """Let `pop_expired` tell of an entry once its time is over."""
        lives_us = self._ttl_us if entry.ttl_us is None else entry.ttl_us
        if lives_us is None:
            return
        if len(self._deadlines) > 2 * len(self.entries) + 64:
            self._deadlines = [item for item in self._deadlines if self._is_current(item)]
            heapq.heapify(self._deadlines)
        heapq.heappush(self._deadlines, (entry.born_us + lives_us, entry.lsn, entry.key))

    def _is_current(self, item: tuple[int, int, str]) -> bool:
        entry = self.entries.get(item[2])
        return entry is not None and entry.lsn == item[1]
