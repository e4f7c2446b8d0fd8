"""The bytes of a checkpoint: tier files with a manifest, or a file of net changes.

Both appear under their name only when they are complete and on the device (R7).
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from memwatch.agent.checkpoints.capture import Captured, Header
from memwatch.agent.checkpoints.lines import Lines
from memwatch.agent.checkpoints.output import (
    Disk,
    remove_directory,
    write_compressed,
    write_plain,
)
from memwatch.agent.checkpoints.slices import in_order, slices
from memwatch.agent.files import Files
from memwatch.agent.journal import Line
from memwatch.agent.memory.entry import Change, Entry
from memwatch.domain.clock import Clock
from memwatch.wal import codec
from memwatch.wal.checkpoint_format import JOURNAL_FILE, encode_lines
from memwatch.wal.manifest import CheckpointManifest, TierTotals
from memwatch.wal.segment import FORMAT, MANIFEST_FILE, tier_file

_LINES = 128
"""Made in one go: about the time that another thread may wait for the interpreter."""

_encode = msgspec.json.Encoder().encode


class Written(Struct, frozen=True):
    """What was written: bytes of its own files, and the checksum that the commit carries."""

    bytes: int
    sha256: str


class Writer:
    """Writes checkpoints into one folder."""

    def __init__(self, folder: Path, files: Files, clock: Clock) -> None:
        self._folder = folder
        self._files = files
        self._clock = clock
        self._disk = Disk(files)

    def draft(self, captured: Captured, lines: Lines) -> Written:
        """Write what was captured beside its place, durably.

        Raises OSError, LogError, ChangedInPlaceError, and ValueError for a line that is too long.
        """
        draft = self._draft(captured.header)
        if not self._folder.is_dir():
            self._folder.mkdir()
            self._files.sync_directory(self._folder.parent)
        if captured.header.kind == "full":
            written = self._full(draft, captured, lines)
        else:
            part = write_plain(self._files, draft, self._net_lines(captured, lines))
            written = Written(part.bytes, part.sha256)
        lines.check()
        return written

    def publish(self, header: Header) -> None:
        """Put a draft into its place, durably; raises OSError."""
        place = self._folder / header.name
        self._remove(place)  # of that name, but never committed
        self._files.rename(self._draft(header), place)
        self._files.sync_directory(self._folder)

    def discard(self, header: Header) -> None:
        """Remove a draft as far as the system lets us; what stays is swept before the next one."""
        self._remove(self._draft(header))

    def _draft(self, header: Header) -> Path:
        return self._folder / f".{header.name}.draft"

    def _full(self, draft: Path, captured: Captured, lines: Lines) -> Written:
        header, files = captured.header, self._files
        draft.mkdir()
        parts = dict(
            write_compressed(
                files, self._disk, draft, tier_file(tier), _tier_lines(lines, tier, held.values())
            )
            for tier, held in captured.tiers.items()
        )
        if captured.journal:
            told = (_journal_line(line) for line in captured.journal)
            parts[JOURNAL_FILE] = write_plain(files, draft / JOURNAL_FILE, told)
        for line in captured.journal:
            lines.refer(line[2].get("blob"))
        manifest = CheckpointManifest(
            format=FORMAT,
            run_id=header.run_id,
            id=header.id,
            kind=header.kind,
            base=header.base,
            first_lsn=header.first_lsn,
            last_lsn=header.last_lsn,
            tiers={
                tier: TierTotals(len(held), lines.bytes.get(tier, 0))
                for tier, held in captured.tiers.items()
            },
            files=parts,
            began_us=header.began_us,
            committed_us=self._clock.wall_us(),
            experiments=header.experiments,
            open=header.open,
            phase=header.phase,
        )
        text = _encode(manifest)
        files.write_new(draft / MANIFEST_FILE, text)
        files.sync_directory(draft)
        size = len(text) + sum(part.bytes for part in parts.values())
        return Written(size, hashlib.sha256(text).hexdigest())

    def _net_lines(self, captured: Captured, lines: Lines) -> Iterator[bytes]:
        """Yield the lines of an increment, by lsn."""
        told = ((line[0], _journal_line(line)) for line in captured.journal)
        made = (
            (change.lsn, lines.of_change(tier, key, change, entry))
            for some in in_order(_net_changes(captured, lines), attrgetter("change.lsn"))
            for tier, key, change, entry in some
        )
        for _, line in heapq.merge(told, made, key=itemgetter(0)):
            yield line

    def _remove(self, path: Path) -> None:
        if path.is_dir():
            with suppress(OSError):
                remove_directory(self._files, path)
        else:
            self._files.discard(path)


class _Net(NamedTuple):
    """What became of a key; an entry of None is a deletion."""

    tier: str
    key: str
    change: Change
    entry: Entry | None


def _net_changes(captured: Captured, lines: Lines) -> list[_Net]:
    found: list[_Net] = []
    for tier, entries in captured.tiers.items():
        changes = captured.changes.get(tier, {})
        for some in slices(changes.items()):
            found += [
                _Net(tier, key, change, entries.get(key))
                for key, change in some
                if change.was_present or key in entries
            ]
        if captured.persist is not None:
            found += _to_persist(tier, entries, changes, lines)
    return found


def _to_persist(
    tier: str, entries: Mapping[str, Entry], changes: Mapping[str, Change], lines: Lines
) -> Iterator[_Net]:
    """Yield what did not change, but is to be written for the sake of its value."""
    for some in slices(entries.values()):
        for entry in some:
            if lines.persists(entry) and entry.key not in changes:
                yield _Net(tier, entry.key, Change(lsn=entry.lsn, was_present=False), entry)


def _tier_lines(lines: Lines, tier: str, entries: Iterable[Entry]) -> Iterator[bytes]:
    for some in slices(entries, _LINES):
        yield encode_lines([lines.of_entry(tier, entry) for entry in some])


def _journal_line(line: Line) -> bytes:
    lsn, kind, members = line
    return codec.encode(lsn, 0, 0, kind, members)
