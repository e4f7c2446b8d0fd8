"""The checkpoints that a log tells of: the newest by name, and what recovery builds on.

A window of the newest serves lists; full checkpoints and the sums behind them are kept apart, for
hundreds of increments may follow one full checkpoint.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec.structs import replace

from memwatch.analytics.tally import Sums, Tally
from memwatch.analytics.told import Instant
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.record import Record
from memwatch.domain.text import inert

KEPT = 512
"""Newest checkpoints that are known one by one."""
_KEPT_FULLS = 4


class Saved(NamedTuple):
    """A committed checkpoint, and when it was committed."""

    at: Instant
    checkpoint: Checkpoint

    @property
    def covers_lsn(self) -> int:
        """Last record that it holds: those behind it are replayed by a recovery."""
        last_lsn = self.checkpoint.last_lsn
        return self.at.lsn if last_lsn is None else min(last_lsn, self.at.lsn)


class CheckpointFold:
    """Folds `checkpoint.*` records and ends of experiments, in any order of segments."""

    def __init__(self) -> None:
        self.known: dict[str, Checkpoint] = {}
        """Newest checkpoints by id, in order of their lsn."""
        self.at: dict[str, Instant] = {}
        """The newest record of each."""
        self.counts: Counter[str] = Counter()
        """All that ended, by state: committed, aborted."""
        self.fulls: list[Saved] = []
        """The newest committed full ones, oldest first."""
        self.newest: Saved | None = None
        """The newest committed one of any kind."""
        self.covered_lsn = 0
        """Last record that some committed checkpoint holds."""
        self.deltas = Tally()
        """Committed incremental ones, by the lsn of their commit."""
        self.changed = 0
        """Moves when anything of the above does, but for experiments."""
        self.experiments = Tally()
        """Experiments that ended and count for the cadence, by the lsn of their end."""

    def take(self, record: Record) -> None:
        """Take one `checkpoint.begin`, `.commit` or `.abort`."""
        name = inert(record.text("id", f"lsn {record.lsn}"), 80)
        known = self.known.get(name)
        one = checkpoint_of(record, name, known)
        if record.kind != "checkpoint.begin":
            self.counts[one.state] += 1
        at = max(Instant.of(record), self.at.get(name, Instant()))
        self.changed += 1
        if one.state == "committed":
            self._commit(Saved(at, one))
        self._keep(name, one, at)

    def committed(self) -> list[Saved]:
        """Return the complete ones that are known one by one, oldest first."""
        return [
            Saved(self.at[name], one)
            for name, one in self.known.items()
            if one.state == "committed"
        ]

    def experiment_ended(self, lsn: int, status: str) -> None:
        """Count an experiment; aborted ones do not count (R5)."""
        if status != "aborted":
            self.experiments.add(lsn, Sums(1))

    def experiments_since(self, lsn: int) -> int:
        """Return how many experiments ended behind a record."""
        return self.experiments.between(lsn).count

    def _keep(self, name: str, one: Checkpoint, at: Instant) -> None:
        """Keep the newest in order; what a log tells in its order costs no sort."""
        self.known.pop(name, None)
        self.at.pop(name, None)
        newest = next(reversed(self.at.values()), at)
        self.known[name], self.at[name] = one, at
        if at < newest:
            kept = sorted(self.known, key=self.at.__getitem__)
            self.known = {name: self.known[name] for name in kept}
            self.at = {name: self.at[name] for name in kept}
        while len(self.known) > KEPT:
            oldest = next(iter(self.known))
            del self.known[oldest], self.at[oldest]

    def _commit(self, saved: Saved) -> None:
        lsn, one = saved.at.lsn, saved.checkpoint
        self.covered_lsn = max(self.covered_lsn, saved.covers_lsn)
        if self.newest is None or lsn >= self.newest.at.lsn:
            self.newest = saved
        if one.kind != "full":
            size = one.bytes or 0
            own = size if one.file_bytes is None else one.file_bytes
            self.deltas.add(lsn, Sums(1, size, one.entries or 0, own))
            return
        self.deltas.drop(lsn)  # its kind may stand in a beginning that is read later
        others = [full for full in self.fulls if full.at.lsn != lsn]
        self.fulls = sorted([*others, saved], key=lambda full: full.at)[-_KEPT_FULLS:]
        if len(self.fulls) == _KEPT_FULLS:
            self.deltas.forget(self.fulls[0].at.lsn)
            self.experiments.forget(self.fulls[0].at.lsn)


def checkpoint_of(record: Record, name: str, known: Checkpoint | None = None) -> Checkpoint:
    """Return what a `checkpoint.begin`, `.commit` or `.abort` tells, with what is `known` of it."""
    state = {"checkpoint.begin": "begun", "checkpoint.commit": "committed"}.get(
        record.kind, "aborted"
    )
    duration_us, stall_us = record.number("duration_us"), record.number("stall_us")
    began_us = record.t_us - (duration_us or 0)
    said = record.text("kind") or (known.kind if known else "")
    kind = said if said in ("full", "experiment") else "incremental"
    base = inert(record.text("base"), 80) or (known.base if known else None)
    if known is not None and known.state != "begun" and state == "begun":
        # Its end was read first, and may not repeat what its beginning says.
        return replace(known, kind=kind, base=base, began_us=record.t_us)
    return Checkpoint(
        id=name,
        kind=kind,
        state=state,  # type: ignore[arg-type]  # one of the three literals above
        base=base,
        first_lsn=record.number("first_lsn"),
        last_lsn=record.number("last_lsn"),
        bytes=record.number("bytes"),
        file_bytes=record.number("file_bytes"),
        state_bytes=record.number("state_bytes"),
        entries=record.number("entries"),
        began_us=known.began_us if known is not None and known.state == "begun" else began_us,
        committed_us=record.t_us if state == "committed" else None,
        duration_s=duration_us / 1e6 if duration_us is not None else None,
        stall_s=stall_us / 1e6 if stall_us is not None else None,
        reason=inert(record.text("reason"), 120),
    )
