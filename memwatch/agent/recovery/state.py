"""What a recovery gives back: entries by tier, their values decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memwatch.agent.journal import Journal
from memwatch.agent.memory.compression import unpack
from memwatch.agent.memory.entry import Blob, Change, Entry, Text
from memwatch.agent.memory.state_hash import state_hash
from memwatch.agent.memory.values import Types
from memwatch.agent.recovery.blobs import BlobReader
from memwatch.agent.recovery.place import Place
from memwatch.domain.errors import DamagedError

Entries = Mapping[str, Entry]


class Values(Mapping[str, Any]):
    """The values of one tier, by key, in the order of their last change.

    A rebuildable value that no file holds comes as its `Source`. A value that is lost is not
    among the keys, or its blob is; asking for either raises DamagedError.
    """

    def __init__(
        self, entries: Entries, lost: Mapping[str, str], types: Types, blobs: BlobReader
    ) -> None:
        self._entries = entries
        self._lost = lost
        self._types = types
        self._blobs = blobs

    def __getitem__(self, key: str) -> Any:
        """Return a value, read and decoded now; raises KeyError, DamagedError."""
        return self.decoded(key, self.text(key))

    def text(self, key: str) -> Text | None:
        """Return the canonical text of a value, read now; None for one that is only a `Source`.

        Raises KeyError, DamagedError.
        """
        entry = self._entry(key)
        if entry.packed is not None:
            return unpack(entry.packed, len(entry.packed))
        return None if entry.blob is None else self._blobs.load(entry.blob)

    def decoded(self, key: str, text: Text | None) -> Any:
        """Return the value that such a text is; raises KeyError, DamagedError."""
        entry = self._entry(key)
        return entry.source if text is None else self._types.decode(entry.type, text)

    def _entry(self, key: str) -> Entry:
        entry = self._entries.get(key)
        if entry is None and key in self._lost:
            raise DamagedError(f"{key!r} is lost: {self._lost[key]}")
        if entry is None:
            raise KeyError(key)
        return entry

    def __contains__(self, key: object) -> bool:
        """Whether there is such an entry, its value at hand or not."""
        return key in self._entries

    def __iter__(self) -> Iterator[str]:
        """Iterate the keys, the one changed longest ago first."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Count of values."""
        return len(self._entries)


class State(Mapping[str, Values]):
    """The state of a run as of `last_lsn`, by tier."""

    def __init__(  # noqa: PLR0913 -- it is what a recovery found, all at once
        self,
        *,
        path: Path,
        run_id: str,
        last_lsn: int,
        tiers: dict[str, dict[str, Entry]],
        changes: dict[str, dict[str, Change]],
        journal: Journal,
        unknown: Mapping[tuple[str, str], str],
        types: Types,
    ) -> None:
        self.run_id = run_id
        self.last_lsn = last_lsn
        self.tiers = tiers
        """Entries by tier and key, values as canonical text, blob or source: `Tiers.adopt`."""
        self.changes = changes
        """By tier and key, since the newest checkpoint that was used."""
        self.journal = journal
        """Files and calls, and which experiment is open (R7)."""
        self._unknown = unknown
        self._types = types
        self._blobs = BlobReader(Place(path))

    @property
    def experiments(self) -> int:
        """Number of the newest experiment."""
        return self.journal.experiments

    @property
    def open(self) -> int | None:
        """Number of the experiment that had begun and not ended."""
        return self.journal.open

    @property
    def phase(self) -> str:
        """Phase that was declared last."""
        return self.journal.phase

    def __getitem__(self, tier: str) -> Values:
        """Return the values of a tier; raises KeyError."""
        lost = {key: why for (name, key), why in self._unknown.items() if name == tier}
        return Values(self.tiers[tier], lost, self._types, self._blobs)

    def __iter__(self) -> Iterator[str]:
        """Iterate the names of the tiers."""
        return iter(self.tiers)

    def __len__(self) -> int:
        """Count of tiers."""
        return len(self.tiers)

    def stored_bytes(self, blob: Blob) -> int:
        """Return the bytes of a blob's file; raises DamagedError where there is none."""
        return self._blobs.size(blob)

    def hashes(self) -> dict[str, str]:
        """Return the state hash of each tier."""
        return {tier: state_hash(entries.values()) for tier, entries in self.tiers.items()}


def live_blobs(tiers: Mapping[str, Entries], journal: Journal) -> dict[Blob, list[str]]:
    """Return the blobs that something needs, each with the names of what needs it.

    One that only spares the making of a rebuildable value is not among them.
    """
    needed: dict[Blob, list[str]] = {}
    for tier, entries in tiers.items():
        for entry in entries.values():
            if entry.blob is not None and entry.source is None:
                needed.setdefault(entry.blob, []).append(f"{entry.key!r} of tier {tier}")
    told = [(f"file {path!r}", members) for path, members in journal.files().items()]
    told += [(f"call {members.get('id')!r}", members) for members in journal.calls()]
    for name, members in told:
        sha, size = members.get("blob"), members.get("blob_bytes")
        if isinstance(sha, str) and isinstance(size, int):
            needed.setdefault(Blob(sha, size), []).append(f"what is kept of {name}")
    return needed
