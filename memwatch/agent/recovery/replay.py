"""Changes -> the state they make, one after the other; the same line twice changes nothing.

Values stay the canonical text that they were read as. A difference is applied to the decoded
value, and the text of the result is made once for all differences of a key that follow each other.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from memwatch.agent.journal import JOURNAL_KINDS, Journal
from memwatch.agent.memory.changes import Changes, Difference
from memwatch.agent.memory.entry import Blob, Entry, Source, Text
from memwatch.agent.memory.table import resident_bytes
from memwatch.agent.memory.values import digest, plain
from memwatch.agent.recovery.blobs import BlobReader, named
from memwatch.domain.errors import DamagedError
from memwatch.domain.record import Record
from memwatch.wal.checkpoint_format import NOTHING, Count, TierLine
from memwatch.wal.diff import DiffError, apply

CHANGE_KINDS: Final = frozenset(("put", "update", "delete"))
_BARE_BYTES = resident_bytes(Entry(key="", lsn=0, bytes=0, digest="", packed=b""), 0)
"""Of an entry without key and text; the few bytes that blob and source take are left out."""

_canonical = msgspec.json.Encoder(order="sorted").encode
_source = msgspec.json.Decoder(Source).decode


class ChangeLine(Struct, kw_only=True, frozen=True, gc=False):
    """A `put`, `update` or `delete` of an increment. Raw members point into what was read."""

    lsn: int
    k: str
    tier: str = ""
    key: str = ""
    bytes: Count = 0
    importance: float = 0.5
    tokens: Count | None = None
    type: str = ""
    x: Count | None = None
    of: Count | None = None
    phase: str | None = None
    ttl_us: Count | None = None
    value: Any = NOTHING
    blob: str = ""
    blob_bytes: Count = 0
    source: Any = NOTHING
    diff: list[dict[str, Any]] | None = None
    from_lsn: int = field(name="from", default=0)


class _RawChange(ChangeLine, kw_only=True, frozen=True, gc=False):
    value: Raw = NOTHING
    source: Raw = NOTHING


_change = msgspec.json.Decoder(_RawChange).decode
_members = msgspec.json.Decoder(dict[str, Any]).decode


class _Open(NamedTuple):
    """An entry that differences were applied to: the text of its value is still to be made."""

    entry: Entry
    value: Any
    text_bytes: int
    """Of the last version whose text is known; half of it is the most that differences may be to
    go into the next increment."""


class Replayer:
    """The state under replay."""

    def __init__(self, blobs: BlobReader) -> None:
        self.tiers: dict[str, dict[str, Entry]] = {}
        self.changes: dict[str, Changes] = {}
        """Since the newest checkpoint that was applied."""
        self.journal = Journal()
        self.last_lsn = 0
        self.records = 0
        """Of the log."""
        self.lines = 0
        """Of increments."""
        self.ended_since_any = self.ended_since_full = 0
        """Experiments that ended since the newest checkpoint, and since the full one."""
        self.unknown: dict[tuple[str, str], str] = {}
        """Entries whose value nothing tells, with the reason; they are not in `tiers`."""
        self._blobs = blobs
        self._open: dict[tuple[str, str], _Open] = {}
        self._before: dict[str, dict[str, Entry | None]] = {}
        """Entries as of `commit`, of what was changed since then."""

    def load(self, tier: str, lines: list[TierLine], last_lsn: int) -> None:
        """Take entries of a full checkpoint; raises ValueError for one that it cannot hold."""
        entries = self.tiers[tier]
        for line in lines:
            if not 0 < line.lsn <= last_lsn:
                raise ValueError(f"lsn {line.lsn} cannot be in it")
            value = line.value
            if value is NOTHING or line.source is not NOTHING:
                home = _home(value, line.source, Blob(line.blob, line.blob_bytes))
            else:
                home = _inline(bytes(value))
            entries[line.key] = _entry(line, line.x, line.phase, home, line.heat)

    def increment(self, text: bytes) -> None:
        """Take a line of an increment; raises ValueError for one that is none."""
        line = _change(text)
        self.lines += 1
        if line.k in JOURNAL_KINDS:
            self._journal(line.lsn, line.k, _members(text))
        elif line.k in CHANGE_KINDS:
            self._change(line, line.x, line.phase or "")

    def record(self, record: Record) -> None:
        """Take the next record of the log; raises ValueError for one that is not what it says."""
        kind = record.kind
        if kind in CHANGE_KINDS:
            line = msgspec.convert(record.members, ChangeLine)
            number = line.of if "of" in record.members else line.x
            phase = self.journal.phase if line.phase is None else line.phase
            self._change(line, number, phase)
        else:
            self._journal(record.lsn, kind, record.members)
        self.last_lsn = record.lsn
        self.records += 1

    def commit(self, lsn: int, *, used: bool) -> None:
        """Say that a checkpoint holds the state as of now; with `used` it was read from there."""
        self.settle()
        self._before = {}
        self.last_lsn = lsn
        if used:
            self.changes, self.ended_since_any = {}, 0

    def settle(self) -> None:
        """Make the text of all values that differences were applied to."""
        for entry, value, _ in self._open.values():
            home = _inline(_canonical(value))
            entry.packed, entry.digest, entry.bytes = home.packed, home.digest, home.bytes
        self._open = {}

    def committed(self) -> dict[str, dict[str, Entry]]:
        """Return the state as of the last `commit`."""
        then = dict(self.tiers)
        for tier, before in self._before.items():
            entries = then[tier] = dict(then[tier])
            for key, entry in before.items():
                if entry is None:
                    entries.pop(key, None)
                else:
                    entries[key] = entry
        return {tier: entries for tier, entries in then.items() if entries or tier in self.tiers}

    def _journal(self, lsn: int, kind: str, members: dict[str, Any]) -> None:
        if lsn <= self.journal.last_lsn:
            return
        self.journal.take(lsn, kind, members)
        if kind == "experiment.end" and members.get("status") != "aborted":  # as cadence counts
            self.ended_since_any += 1
            self.ended_since_full += 1

    def _change(self, line: ChangeLine, experiment: int | None, phase: str) -> None:
        entries = self.tiers.setdefault(line.tier, {})
        old = entries.get(line.key)
        if old is not None and line.lsn <= old.lsn:
            if line.lsn == old.lsn and line.blob and old.blob is None:
                old.blob, old.type = named(Blob(line.blob, line.blob_bytes)), line.type
            return
        new, difference = None, None
        try:
            if line.k != "delete":
                home, difference = self._new_home(line, old)
                new = _entry(line, experiment, phase, home, None if old is None else old.heat)
        except DamagedError as error:
            self.unknown[line.tier, line.key] = str(error)
        else:
            self.unknown.pop((line.tier, line.key), None)
        self._note(line, old, new, difference)

    def _note(
        self, line: ChangeLine, old: Entry | None, new: Entry | None, how: Difference | None
    ) -> None:
        """Put the new entry, or none, in the old one's place; it is the newest of its tier then."""
        entries, name = self.tiers[line.tier], (line.tier, line.key)
        self._before.setdefault(line.tier, {}).setdefault(line.key, old)
        entries.pop(line.key, None)
        known = self._open.pop(name, None)
        changes = self.changes.setdefault(line.tier, Changes())
        if new is not None:
            entries[line.key] = new
            if how is not None and known is not None:
                self._open[name] = known._replace(entry=new)
            changes.put(new, old, how, known.text_bytes // 2 if known else sys.maxsize)
        elif old is not None:
            changes.delete(old, line.lsn)

    def _new_home(self, line: ChangeLine, old: Entry | None) -> tuple[_Home, Difference | None]:
        """Return where a changed value is; raises DamagedError where nothing says it."""
        if line.diff is None:
            return _home(line.value, line.source, Blob(line.blob, line.blob_bytes)), None
        if old is None or old.lsn != line.from_lsn:
            was = "absent" if old is None else f"as of lsn {old.lsn}"
            raise DamagedError(f"lsn {line.lsn} changes lsn {line.from_lsn} of it, and it is {was}")
        home = _Home(old.digest, old.bytes, old.packed, old.blob)
        if not line.diff:
            return home, Difference([], b"[]", line.from_lsn)
        name = (line.tier, line.key)
        known = self._open.get(name)
        if known is None:
            text = self._text(old)
            known = _Open(old, plain(text), len(text))
        try:
            value = apply(known.value, line.diff)
        except DiffError as error:
            raise DamagedError(f"the difference of lsn {line.lsn} does not fit: {error}") from None
        self._open[name] = known._replace(value=value)
        return _Home("", 0), Difference(line.diff, _canonical(line.diff), line.from_lsn)

    def _text(self, entry: Entry) -> Text:
        """Return the canonical value of an entry that a difference applies to."""
        if entry.packed is not None:
            return entry.packed
        if entry.blob is None or entry.source is not None:
            raise DamagedError(f"lsn {entry.lsn} has a source in place of a value")
        return self._blobs.load(entry.blob)


class _Home(NamedTuple):
    """Where a value is."""

    digest: str
    bytes: int
    """What the entry holds in memory, but for its key."""
    packed: Text | None = None
    blob: Blob | None = None
    source: Source | None = None


def _home(value: Any, source: Any, blob: Blob) -> _Home:
    """Return where a line says that a value is; raises DamagedError where it does not."""
    if source is not NOTHING:
        text = _text_of(source)
        kept = named(blob) if blob.sha256 else None
        return _Home(digest(text), _BARE_BYTES, None, kept, _source(text))
    if blob.sha256:
        return _Home(blob.sha256, _BARE_BYTES, None, named(blob))
    if value is NOTHING:
        raise DamagedError("it holds neither its value nor where that is")
    return _inline(_text_of(value))


def _inline(text: Text) -> _Home:
    return _Home(sha256(text).hexdigest(), _BARE_BYTES + len(text), text, None, None)


def _text_of(value: Any) -> Text:
    return bytes(value) if type(value) is Raw else _canonical(value)


def _entry(  # what a line and its place in the run say
    line: ChangeLine | TierLine, experiment: int | None, phase: str, home: _Home, heat: Any
) -> Entry:
    return Entry(
        key=line.key,
        lsn=line.lsn,
        bytes=home.bytes + len(line.key),
        full_bytes=line.bytes,
        digest=home.digest,
        type=line.type,
        packed=home.packed,
        blob=home.blob,
        source=home.source,
        tokens=line.tokens,
        importance=line.importance,
        experiment=experiment,
        phase=phase,
        ttl_us=line.ttl_us,
        heat=heat,
    )
