"""A full checkpoint -> entries: each file is held against its hash while its lines are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from memwatch.agent.memory.compression import Decompressor
from memwatch.agent.recovery.chain import Commit, Log
from memwatch.agent.recovery.place import Place
from memwatch.agent.recovery.replay import Replayer
from memwatch.domain.errors import DamagedError, RecoveryError
from memwatch.wal import codec
from memwatch.wal.checkpoint_format import JOURNAL_FILE, decode_lines
from memwatch.wal.manifest import CheckpointFile, CheckpointManifest, parse_checkpoint
from memwatch.wal.segment import FORMAT, MANIFEST_FILE, tier_file, tier_of

MANIFEST_BYTES = 1_000_000
_EXPANSION = 1_000
"""No tier's text is so many times its file: keys and numbers differ from line to line."""


class FullLoader:
    """Reads one committed full checkpoint into a replayer that holds nothing yet.

    Every method raises DamagedError, which names the file: then the replayer is of no use.
    """

    def __init__(self, place: Place, log: Log, commit: Commit) -> None:
        self._place = place
        self._log = log
        self._commit = commit
        self._parts = commit.parts
        self.bytes = 0
        """Of the files read."""
        self.entries = 0

    def load(self, replayer: Replayer) -> None:
        """Take over everything; raises RecoveryError for another run's, or a newer format's."""
        manifest = self._manifest()
        self._place.expect(sum(file.bytes for file in manifest.files.values()))
        found = {known[0]: name for name in manifest.files if (known := tier_of(name))}
        for tier, totals in manifest.tiers.items():
            name = found.get(tier, tier_file(tier))
            entries = replayer.tiers[tier] = {}
            self._tier(replayer, tier, name, manifest.files.get(name))
            self.entries += len(entries)
            if len(entries) != totals.entries:
                raise DamagedError(
                    f"{self._name(name)} holds {len(entries)} entries of {totals.entries}"
                )
        if JOURNAL_FILE in manifest.files:
            self._journal(replayer, manifest.files[JOURNAL_FILE])
        # Where the newest ones were lost, no record in the journal tells their numbers.
        journal = replayer.journal
        journal.experiments = max(journal.experiments, manifest.experiments)
        replayer.commit(self._commit.last_lsn, used=True)

    def _manifest(self) -> CheckpointManifest:
        text = self._place.small(*self._parts, MANIFEST_FILE, most_bytes=MANIFEST_BYTES)
        where = self._name(MANIFEST_FILE)
        if hashlib.sha256(text).hexdigest() != self._commit.sha256:
            raise DamagedError(f"{where} is not the one that was committed")
        refuse_newer(text, where)
        try:
            manifest = parse_checkpoint(text)
        except ValueError as error:
            raise DamagedError(f"{where}: {error}") from None
        self._log.check_run(manifest.run_id, where)
        if manifest.last_lsn != self._commit.last_lsn:
            raise DamagedError(f"{where} is of another checkpoint")
        self.bytes += len(text)
        return manifest

    def _tier(self, replayer: Replayer, tier: str, name: str, told: CheckpointFile | None) -> None:
        if told is None:
            raise DamagedError(f"{self._name(name)} is not in the manifest")
        known = tier_of(name)
        for block in self._blocks(name, told, known[1] if known else ""):
            try:
                replayer.load(tier, decode_lines(block), self._commit.last_lsn)
            except (ValueError, RecursionError, DamagedError) as error:
                raise DamagedError(
                    f"{self._name(name)} holds a line that is none: {error}"
                ) from None

    def _journal(self, replayer: Replayer, told: CheckpointFile) -> None:
        for block in self._blocks(JOURNAL_FILE, told, ""):
            for text in block.splitlines():
                try:
                    record = codec.decode(text)
                except codec.DamagedLineError as error:
                    raise DamagedError(f"{self._name(JOURNAL_FILE)} is damaged: {error}") from None
                replayer.journal.take(record.lsn, record.kind, record.members)

    def _blocks(self, name: str, told: CheckpointFile, suffix: str) -> Iterator[bytes]:
        """Yield a file's text, some whole lines at a time."""
        rest = b""
        for text in self._texts(name, told, suffix):
            end = text.rfind(b"\n") + 1
            if end:
                yield rest + text[:end]
            rest = text[end:] if end else rest + text
            if len(rest) >= codec.MAX_LINE_BYTES:
                raise DamagedError(f"{self._name(name)} holds an endless line")
        if rest:
            raise DamagedError(f"{self._name(name)} breaks off inside a line")

    def _texts(self, name: str, told: CheckpointFile, suffix: str) -> Iterator[bytes]:
        """Yield a file's text in pieces; raises when it is not what was written.

        The hash is known at the end only: until then what it yields is not to be believed.
        """
        parts = (*self._parts, name)
        written, size = hashlib.sha256(), 0
        stream = Decompressor(suffix, told.bytes * _EXPANSION)
        with self._place.open(*parts) as file:
            try:
                for piece in self._place.pieces(file, *parts):
                    written.update(piece)
                    size += len(piece)
                    yield from stream.feed(piece)
                stream.finish()
            except DamagedError as error:
                raise self._damaged(name, error) from None
        self.bytes += size
        if size != told.bytes or written.hexdigest() != told.sha256:
            raise DamagedError(f"{self._name(name)} is damaged: its hash is not the manifest's")

    def _damaged(self, name: str, error: DamagedError) -> DamagedError:
        said, where = str(error), self._name(name)
        return error if where in said else DamagedError(f"{where} is damaged: {said}")

    def _name(self, name: str) -> str:
        return "/".join((*self._parts, name))


def refuse_newer(text: bytes, where: str) -> None:
    """Raise RecoveryError for a manifest of a format that only a newer memwatch reads."""
    try:
        stated = msgspec.json.decode(text, type=dict[str, object]).get("format")
    except (ValueError, RecursionError):
        return
    if type(stated) is int and stated > FORMAT:
        raise RecoveryError(
            f"{where} is of format {stated}, newer than this memwatch reads ({FORMAT}): "
            "upgrade memwatch; nothing was changed"
        )
