"""Checkpoints of the tiers: when one is due, and how it is begun, written and committed.

A full one is a directory with a file per tier, an incremental one a file of log lines with the
net changes. Either is written beside, synced, renamed into place, then committed in the log; only
a committed one is recoverable. A checkpoint that fails is logged and never stops the agent.
Sources: requirements R5, R6, R7; `memwatch.wal.segment` names the files.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from memwatch.agent.checkpoints.prune import Pruner
from memwatch.agent.checkpoints.write import Header, Written, state_hashes, write_delta, write_full
from memwatch.agent.context import Context
from memwatch.agent.memory.tiers import Tiers
from memwatch.domain.errors import LogError
from memwatch.wal.segment import CHECKPOINT_DIR, delta_name, full_name

Kind = Literal["full", "incremental"]

RETRY_S = 10.0
"""After a failure the next attempt waits this long, then twice as long, up to an hour."""


class Cadence(Struct, frozen=True, kw_only=True):
    """When a checkpoint is due, whichever comes first (R5)."""

    incremental_experiments: int = 3
    incremental_s: float = 900.0
    full_experiments: int = 20
    full_s: float = 7200.0
    chain_bytes: int = 50_000_000


class Outcome(Struct, frozen=True, kw_only=True):
    """How an attempt ended."""

    id: str
    kind: Kind
    committed: bool
    bytes: int = 0
    sha256: str = ""
    path: str = ""
    """Relative to the run directory."""
    reason: str = ""


class Checkpointer:
    """Takes checkpoints of the tiers, from the agent's own thread at a safe point."""

    def __init__(self, context: Context, tiers: Tiers, cadence: Cadence | None = None) -> None:
        self._context = context
        self._dir = context.path / CHECKPOINT_DIR
        self._clock = context.clock
        self._tiers = tiers
        self._cadence = cadence or Cadence()
        self._pruner = Pruner(context)
        self._base: str | None = None
        """Newest committed full checkpoint of this start; without one the next is a full one."""
        self._last_lsn = 0
        self._chain_bytes = 0
        self._since_any = self._since_full = 0
        self._any_us = self._full_us = self._clock.boot_us()
        self._retry_us = 0
        self._retry_s = RETRY_S

    def experiment_finished(self) -> None:
        """Count an experiment; failed ones count, aborted ones are not told here (R5)."""
        self._since_any += 1
        self._since_full += 1

    def due(self) -> Kind | None:
        """Return which kind is due now; a first one is always full, as increments need a base."""
        now_us, cadence = self._clock.boot_us(), self._cadence
        if now_us < self._retry_us:
            return None
        if self._base is not None and (
            self._since_full >= cadence.full_experiments
            or now_us - self._full_us >= cadence.full_s * 1e6
            or self._chain_bytes > cadence.chain_bytes
        ):
            return "full"
        if (
            self._since_any >= cadence.incremental_experiments
            or now_us - self._any_us >= cadence.incremental_s * 1e6
        ):
            return "incremental" if self._base is not None else "full"
        return None

    def take(self, kind: Kind) -> Outcome:
        """Take a checkpoint now; a failure is logged, told in the outcome, and never raised."""
        if self._base is None:
            kind = "full"
        began_us = self._clock.boot_us()
        header = self._header(kind)
        try:
            self._pruner.prune()
            outcome = self._attempt(header, began_us)
        except (OSError, LogError, ValueError, TypeError, RecursionError) as error:
            return self._aborted(header, error)
        self._committed(header, outcome)
        return outcome

    def _header(self, kind: Kind) -> Header:
        last_lsn = self._context.log.last_lsn
        first_lsn = 1 if kind == "full" else self._last_lsn + 1
        name = full_name(last_lsn) if kind == "full" else delta_name(first_lsn, last_lsn)
        return Header(
            run_id=self._context.run_id,
            id=name.removesuffix(".wal"),
            name=name,
            kind=kind,
            base=None if kind == "full" else self._base,
            first_lsn=first_lsn,
            last_lsn=last_lsn,
            began_us=self._clock.wall_us(),
        )

    def _attempt(self, header: Header, began_us: int) -> Outcome:
        if header.kind == "full":
            self._context.log.roll()
        about: dict[str, Any] = {"id": header.id, "kind": header.kind, "base": header.base}
        about |= {"first_lsn": header.first_lsn, "last_lsn": header.last_lsn}
        self._context.record("checkpoint.begin", about)
        self._dir.mkdir(exist_ok=True)
        with self._tiers.lock:
            written = self._write(header)
            hashes = state_hashes(self._tiers)
        took_us = self._clock.boot_us() - began_us
        figures = {
            "bytes": written.bytes,
            "entries": written.entries,
            "sha256": written.sha256,
            "state_hash": hashes,
            "duration_us": took_us,
            "stall_us": took_us,
        }
        self._context.record("checkpoint.commit", about | figures)
        return Outcome(
            id=header.id,
            kind="full" if header.kind == "full" else "incremental",
            committed=True,
            bytes=written.bytes,
            sha256=written.sha256,
            path=f"{CHECKPOINT_DIR}/{header.name}",
        )

    def _write(self, header: Header) -> Written:
        if header.kind == "full":
            return write_full(self._dir, header, self._tiers, self._clock, self._context.files)
        return write_delta(self._dir, header, self._tiers, self._clock, self._context.files)

    def _committed(self, header: Header, outcome: Outcome) -> None:
        for tier in self._tiers.values():
            tier.forget_changes(header.last_lsn)
        self._last_lsn = header.last_lsn
        self._any_us = self._clock.boot_us()
        self._since_any = 0
        self._retry_us, self._retry_s = 0, RETRY_S
        if outcome.kind == "incremental":
            self._chain_bytes += outcome.bytes
            return
        self._base = header.id
        self._full_us, self._since_full, self._chain_bytes = self._any_us, 0, 0
        try:
            self._context.log.sync()
            self._pruner.full_committed(header.last_lsn)
            self._pruner.prune()
        except (OSError, LogError):
            return  # the next checkpoint tries again

    def _aborted(self, header: Header, error: Exception) -> Outcome:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self._retry_us = self._clock.boot_us() + round(self._retry_s * 1e6)
        self._retry_s = min(self._retry_s * 2, 3600.0)
        about = {"id": header.id, "kind": header.kind, "reason": reason}
        try:
            self._context.record("checkpoint.abort", about)
        except LogError as second:
            reason += f" ({second})"
        kind: Kind = "full" if header.kind == "full" else "incremental"
        return Outcome(id=header.id, kind=kind, committed=False, reason=reason)
