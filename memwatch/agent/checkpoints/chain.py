"""The chain of checkpoints that recovery goes by, and how one more is written and committed.

A failure is logged as `checkpoint.abort` and told in the outcome; it is never raised, and what the
tiers had changed goes into the next attempt (R5, R7).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from memwatch.agent.checkpoints.cadence import Kind
from memwatch.agent.checkpoints.capture import Captured, Header, capture, release
from memwatch.agent.checkpoints.lines import ChangedInPlaceError, Lines
from memwatch.agent.checkpoints.outcome import Outcome, words
from memwatch.agent.checkpoints.prune import Pruner
from memwatch.agent.checkpoints.slices import in_order
from memwatch.agent.checkpoints.standing import Standing
from memwatch.agent.checkpoints.write import Writer, Written
from memwatch.agent.context import Context
from memwatch.agent.journal import Journal
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.entry import Entry
from memwatch.agent.memory.state_hash import by_key, hash_in_order
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types
from memwatch.domain.errors import LogError, MemwatchError, UnkeepableError
from memwatch.domain.text import inert
from memwatch.wal.segment import CHECKPOINT_DIR

_CAPTURES = 3
"""Attempts while values change in place under our hands, or the base is gone."""


class Chain:
    """Base and reach of the chain. Its methods are called by one thread at a time."""

    def __init__(
        self, context: Context, tiers: Tiers, types: Types, blobs: BlobStore, journal: Journal
    ) -> None:
        self._context, self._tiers = context, tiers
        self._types, self._blobs, self._journal = types, blobs, journal
        self._standing = Standing(context)
        self._pruner = Pruner(context, self._standing, blobs)
        self._writer = Writer(context.path / CHECKPOINT_DIR, context.files, context.clock)
        self._base: str | None = None
        self._last_lsn = 0
        self._referred: set[str] = set()
        """Blobs that some checkpoint of the chain refers to."""

    def resume(self, base: str | None, last_lsn: int) -> None:
        """Go on behind a chain that recovery went by, whose last checkpoint reached `last_lsn`."""
        self._base, self._last_lsn = base, last_lsn

    def break_off(self) -> None:
        """Build on nothing any more: the next one is full."""
        self._base = None

    def capture(self, kind: Kind) -> Captured:
        """Take hold of the state; the agent waits for this. Without a base the kind is full."""
        return capture(self._context, self._tiers, self._journal, kind, self._base, self._last_lsn)

    def extend(self, captured: Captured) -> Outcome:
        """Write and commit what was captured, or say why not."""
        for _ in range(_CAPTURES):
            try:
                if self._has_base(captured.header):
                    return self._take(captured)
                self._tiers.give_back(captured.changes)
                self.break_off()
            except ChangedInPlaceError as error:
                self._tiers.give_back(captured.changes)
                refusal = self._log_changed(error.changed)
                outcome = self._aborted(captured, refusal or str(error))
                if refusal:
                    break
            except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
                self._tiers.give_back(captured.changes)
                return self._aborted(captured, words(error))
            finally:
                release(self._tiers, captured)
            captured = self.capture(captured.asked)
        return outcome

    def _has_base(self, header: Header) -> bool:
        """Whether what an increment would build on is on the disk; raises OSError."""
        return header.base is None or self._standing.has_chain(header.base, self._last_lsn)

    def _take(self, captured: Captured) -> Outcome:
        header, context = captured.header, self._context
        full = header.kind == "full"
        if full:
            context.log.roll()
        about: dict[str, Any] = {"id": header.id, "kind": header.kind, "base": header.base}
        about |= {"first_lsn": header.first_lsn, "last_lsn": header.last_lsn}
        context.record("checkpoint.begin", about)
        self._prune()
        lines = Lines(context, self._tiers, self._types, self._blobs, captured.persist)
        try:
            written = self._writer.draft(captured, lines)
            figures = self._figures(captured, lines, written)
            context.log.sync()  # what has a name must not reach further than the log
            self._blobs.sync()
            self._writer.publish(header)
        except BaseException:
            self._writer.discard(header)
            raise
        context.record("checkpoint.commit", about | figures)
        self._committed(header, written, lines)
        return Outcome(
            id=header.id,
            kind=header.kind,
            committed=True,
            bytes=figures["bytes"],
            sha256=written.sha256,
            path=f"{CHECKPOINT_DIR}/{header.name}",
            stall_us=captured.stall_us,
            persisted=lines.persisted,
            unpersisted=lines.unpersisted,
        )

    def _figures(self, captured: Captured, lines: Lines, written: Written) -> dict[str, Any]:
        header = captured.header
        hashes = {
            tier: hash_in_order(in_order(held.values(), by_key))
            for tier, held in captured.tiers.items()
        }
        first_referred = lines.blobs - (set() if header.kind == "full" else self._referred)
        figures: dict[str, Any] = {
            "bytes": written.bytes + sum(map(self._blobs.stored_bytes, first_referred)),
            "file_bytes": written.bytes,
            "entries": lines.entries,
            "sha256": written.sha256,
            "state_hash": hashes,
            "duration_us": self._context.clock.boot_us() - header.began_boot_us,
            "stall_us": captured.stall_us,
            "experiments": header.experiments,
            "open": header.open,
            "phase": header.phase,
        }
        if header.kind == "full":
            figures["state_bytes"] = sum(lines.bytes.values())
        if captured.asked == "experiment":
            figures |= {"persisted": lines.persisted, "unpersisted": lines.unpersisted}
        return figures

    def _committed(self, header: Header, written: Written, lines: Lines) -> None:
        self._standing.committed(header.id, written.sha256)
        self._last_lsn = header.last_lsn
        if header.kind == "full":
            self._base, self._referred = header.id, lines.blobs
            self._prune(synced=True)
        else:
            self._referred |= lines.blobs
        self._log_changed(lines.drifting)

    def _prune(self, *, synced: bool = False) -> None:
        """Drop what is needless; what cannot be dropped costs room and no checkpoint."""
        try:
            if synced:  # only what survives a power loss makes older ones needless
                self._context.log.sync()
            self._pruner.prune()
        except (OSError, LogError) as error:
            about = {"kind": "prune", "message": f"nothing older was dropped: {error}"}
            with suppress(LogError):
                self._context.record("error", about)

    def _log_changed(self, changed: list[tuple[str, Entry]]) -> str:
        """Log values that were changed in place, if they are still in force; says why not."""
        refusal = ""
        for tier, entry in changed:
            try:
                with self._tiers.lock:
                    if self._tiers[tier].entry(entry.key) is entry:
                        self._tiers[tier].log_mutation(entry.key)
            except UnkeepableError as error:
                why = f"{error}; it was changed in place: put it again"
                about = {"kind": "changed_in_place", "message": why, "tier": tier, "key": entry.key}
                with suppress(LogError):
                    self._context.record("error", about)
                refusal = refusal or why
            except MemwatchError as error:
                refusal = refusal or str(error)
        return refusal

    def _aborted(self, captured: Captured, reason: str) -> Outcome:
        header = captured.header
        about = {"id": header.id, "kind": header.kind, "reason": inert(reason)}
        try:
            self._context.record("checkpoint.abort", about)
        except LogError as second:
            reason += f" ({second})"
        return Outcome(
            id=header.id,
            kind=header.kind,
            committed=False,
            reason=reason,
            stall_us=captured.stall_us,
        )
