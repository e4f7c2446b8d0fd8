"""Tiers over a real log and real blobs, and what their records lead to when replayed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memwatch.agent.context import Context
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import Blob
from memwatch.agent.memory.tiers import Tier, Tiers
from memwatch.agent.memory.values import Types, plain
from memwatch.domain.clock import ManualClock
from memwatch.domain.policy import Keep
from memwatch.domain.record import Record
from memwatch.wal.diff import apply
from tests.agent.reading import read_log
from tests.faults.failing_files import FailingFiles

State = dict[str, dict[str, tuple[int, Any]]]
"""lsn and plain value (of a rebuildable entry its source) by key, by tier."""


class Held:
    """Tiers, the log that they write, and a clock that moves when told."""

    def __init__(
        self,
        path: Path,
        keep: Mapping[str, Keep] | None = None,
        types: Types | None = None,
        **more: Any,
    ) -> None:
        self.clock = ManualClock()
        self.log_files, self.blob_files = FailingFiles(), FailingFiles()
        self.wal_dir = path / "wal"
        self.log = LogWriter(self.wal_dir, durability="os", clock=self.clock, files=self.log_files)
        self.context = Context(path, "run-1", self.log, self.clock, self.log_files)
        self.blobs = BlobStore(path / "blobs", self.blob_files)
        self._types = types or Types()
        keep = keep or {"recent": Keep()}
        self.tiers = Tiers(keep, self.context, types=self._types, blobs=self.blobs, **more)

    @property
    def tier(self) -> Tier:
        """The first tier."""
        return next(iter(self.tiers.values()))

    def records(self, *kinds: str) -> list[Record]:
        """Return the records so far, of these kinds if any are named."""
        records, faults = read_log(self.wal_dir)
        assert not faults
        return [record for record in records if not kinds or record.kind in kinds]

    def kinds(self) -> list[str]:
        """Return the kinds of all records."""
        return [record.kind for record in self.records()]

    def last(self, kind: str) -> dict[str, Any]:
        """Return the members of the newest record of a kind, without those of the codec."""
        members = self.records(kind)[-1].members
        return {name: v for name, v in members.items() if name not in ("lsn", "t", "m", "k", "crc")}

    def replay(self) -> State:
        """Return the state that the records lead to."""
        state: State = {name: {} for name in self.tiers}
        for record in self.records("put", "update", "delete"):
            entries, key = state[record.text("tier")], record.text("key")
            assert (key in entries) == (record.kind != "put")
            if record.kind == "delete":
                del entries[key]
            else:
                entries[key] = record.lsn, self._value(record.members, entries.get(key))
        return state

    def state(self) -> State:
        """Return the state that the tiers hold, wherever their values are."""
        return {
            name: {entry.key: (entry.lsn, self._plain(tier, entry.key)) for entry in tier.entries()}
            for name, tier in self.tiers.items()
        }

    def _plain(self, tier: Tier, key: str) -> Any:
        entry = tier.entry(key)
        assert entry is not None
        if entry.source is not None:
            return {"by": entry.source.by, "args": entry.source.args}
        return plain(self._types.encode(tier.peek(key)).canonical)

    def _value(self, members: dict[str, Any], before: tuple[int, Any] | None) -> Any:
        given = [name for name in ("value", "blob", "diff", "source") if name in members]
        assert len(given) == 1, "a record holds its value in exactly one way"
        if given == ["blob"]:
            return plain(self.blobs.load(Blob(members["blob"], members["blob_bytes"])))
        if given == ["diff"]:
            assert before is not None
            assert before[0] == members["from"], "a difference applies to the version before it"
            return apply(before[1], members["diff"])
        return members[given[0]]
