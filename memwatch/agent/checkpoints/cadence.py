"""When a checkpoint is due (R5): counts and times, no files. Pure but for its lock."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memwatch.domain.policy import Cadence
from memwatch.host.forked import new_lock

Kind = Literal["full", "incremental", "experiment"]
"""`experiment` is an incremental one that holds the rebuildable values of the current one too."""

RETRY_S = 10.0
"""After a failure the next attempt waits this long, then twice as long, up to an hour."""
_LONGEST_RETRY_S = 3600.0


class Mark(Struct, frozen=True):
    """Where the counts stood when a checkpoint was captured: what happens later counts on."""

    at_us: int
    since_any: int
    since_full: int


class Schedule:
    """Knows what was done since the checkpoints before. Times are of the boot clock."""

    def __init__(self, cadence: Cadence, now_us: int) -> None:
        self._cadence = cadence
        self._lock = new_lock()
        self._has_base = self._owes_full = False
        self._chain_bytes = self._since_any = self._since_full = 0
        self._any_us = self._full_us = now_us
        self._retry_us = 0
        self._retry_s = RETRY_S

    def resume(self, since_any: int, since_full: int, chain_bytes: int) -> None:
        """Go on with the counts of an earlier start that left a full checkpoint."""
        self._has_base = True
        self._since_any, self._since_full = since_any, since_full
        self._chain_bytes = chain_bytes

    def owe_full(self) -> None:
        """Make a full one due at once: the chain of before is not to be built upon."""
        self._owes_full = True

    def experiment_finished(self) -> None:
        """Count an experiment; failed ones count, aborted ones are not told here."""
        with self._lock:
            self._since_any += 1
            self._since_full += 1

    def due(self, now_us: int) -> Kind | None:
        """Return which kind is due; a first one is always full, as increments need a base."""
        cadence = self._cadence
        if now_us < self._retry_us:
            return None
        if self._owes_full or (
            self._has_base
            and (
                self._since_full >= cadence.full_experiments
                or now_us - self._full_us >= cadence.full_s * 1e6
                or self._chain_bytes > cadence.chain_bytes
            )
        ):
            return "full"
        if (
            self._since_any >= cadence.incremental_experiments
            or now_us - self._any_us >= cadence.incremental_s * 1e6
        ):
            return "incremental" if self._has_base else "full"
        return None

    def mark(self, now_us: int) -> Mark:
        """Return where the counts stand."""
        with self._lock:
            return Mark(now_us, self._since_any, self._since_full)

    def committed(self, kind: Kind, mark: Mark, size_bytes: int) -> None:
        """Begin anew from where the counts stood when the checkpoint was captured."""
        with self._lock:
            self._since_any -= mark.since_any
            self._any_us = mark.at_us
            self._retry_us, self._retry_s = 0, RETRY_S
            if kind != "full":
                self._chain_bytes += size_bytes
                return
            self._since_full -= mark.since_full
            self._full_us, self._chain_bytes = mark.at_us, 0
            self._has_base, self._owes_full = True, False

    def failed(self, now_us: int) -> None:
        """Put off the next attempt."""
        self._retry_us = now_us + round(self._retry_s * 1e6)
        self._retry_s = min(self._retry_s * 2, _LONGEST_RETRY_S)
