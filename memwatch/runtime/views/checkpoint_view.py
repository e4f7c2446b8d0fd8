"""Checkpoints and the raw figures of a recovery: as the log tells them and the disk holds them."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

import msgspec

from memwatch.analytics.checkpoints.cadence import Due, Since, next_due
from memwatch.analytics.checkpoints.fold import Saved
from memwatch.analytics.tally import Sums
from memwatch.analytics.told import Instant
from memwatch.config.schema import Lights
from memwatch.domain.checkpoints import Chain, Checkpoint, Checkpoints
from memwatch.domain.policy import Cadence
from memwatch.domain.record import figure
from memwatch.domain.recovery import PastRecovery, Recovery
from memwatch.domain.snapshot import PAST, RunInfo
from memwatch.runtime.views.ring import Ring
from memwatch.wal.manifest import RunManifest

_NAMED = 8


class _Chain(NamedTuple):
    """What a recovery could start from now."""

    full: Saved | None = None
    end: Saved | None = None
    """The newest checkpoint that it could load."""
    deltas: Sums = Sums()
    missing: tuple[str, ...] = ()
    """Committed ones that are not on disk."""


def cadence_of(manifest: RunManifest, usual: Cadence) -> Cadence:
    """Return the cadence that the agent acts by: what it states, else what its profile says."""
    stated = {
        name: type(getattr(usual, name))(value)
        for name, value in manifest.cadence.items()
        if name in usual.__struct_fields__ and _is_span(value)
    }
    return msgspec.structs.replace(usual, **stated)


def _is_span(value: object) -> bool:
    span = figure(value)
    return span is not None and span >= 1


class CheckpointView:
    """Reads the ring's checkpoints against the cadence of R5."""

    def __init__(self, ring: Ring, cadence: Cadence, lights: Lights) -> None:
        self._ring = ring
        self._grace = lights.checkpoint_grace
        self.cadence = cadence
        """That of the agent's present start."""

    def checkpoints(self, run: RunInfo, now_at_us: int) -> Checkpoints:
        """Return the last, the recoverable chain, what is due and what is broken.

        `now_at_us` is the instant that is shown, on the axis of the ring.
        """
        saved = self._ring.state.saved
        known = list(saved.known.values())
        last = known[-1] if known else None
        newest, chain = saved.newest, self._chain()
        due = None if run.state in PAST else self._due(run, now_at_us)
        return Checkpoints(
            last=last,
            last_recoverable_full=chain.full.checkpoint if chain.full else None,
            chain=Chain(
                deltas=chain.deltas.count,
                bytes=chain.deltas.bytes,
                limit_bytes=self.cadence.chain_bytes,
                entries=chain.deltas.entries,
            ),
            age_s=self._age_s(newest.at, now_at_us) if newest else None,
            overdue=due is not None and due.overdue is not None,
            overdue_kind=due.overdue if due else None,
            next_kind=due.kind if due else None,
            due_in_s=due.in_s if due else None,
            due_experiments=due.of_experiments if due else None,
            due_experiments_done=due.experiments if due else None,
            experiments_since=saved.experiments_since(newest.at.lsn if newest else 0),
            incomplete=tuple(c.id for c in known if self._incomplete(c, run, last)),
            missing=chain.missing,
            count=saved.counts["committed"],
        )

    def recovery(self, now_at_us: int, drill: PastRecovery | None) -> Recovery:
        """Return what a recovery would load and replay, and what it would have to do again."""
        state, chain = self._ring.state, self._chain()
        full, end = chain.full, chain.end
        ends = state.recent_experiments
        durations = [one.duration_us / 1e6 for one in ends if one.duration_us is not None]
        since = end.at if end else state.start.at if state.start else None
        covered = end.covers_lsn if end else 0
        done = state.saved.experiments_since(end.at.lsn if end else 0)
        return Recovery(
            full_bytes=full.checkpoint.bytes if full else None,
            delta_bytes=chain.deltas.bytes,
            tail_bytes=self._ring.tail_bytes(covered),
            tail_records=max(state.last_lsn - covered, 0),
            at_risk_s=self._age_s(since, now_at_us) if since else None,
            at_risk_experiments=done + self._in_progress(),
            mean_experiment_s=fmean(durations) if durations else None,
            drill=drill,
        )

    def _age_s(self, instant: Instant, now_at_us: int) -> float:
        return max(now_at_us - self._ring.axis_of(instant), 0) / 1e6

    def _chain(self) -> _Chain:
        """Follow the increments behind the newest full one that is there, to the first gap."""
        saved, disk = self._ring.state.saved, self._ring.on_disk
        full, before, missing = None, None, list[str]()
        for one in reversed(saved.fulls):
            if disk is None or not disk.lacks(one):
                full = one
                break
            missing.append(one.checkpoint.id)
            before = one.at.lsn  # increments behind that one build on it
        if full is None:
            return _Chain(missing=tuple(missing[:1]))
        end = full
        for delta in self._deltas(full.at.lsn, before):
            if disk is not None and disk.lacks(delta):
                missing.append(delta.checkpoint.id)
                before = min(before or delta.at.lsn, delta.at.lsn)
            elif before is None or delta.at.lsn < before:
                end = delta
        sums = saved.deltas.between(full.at.lsn, before)
        return _Chain(full, end, sums, tuple(missing[:_NAMED]))

    def _deltas(self, after: int, before: int | None) -> list[Saved]:
        """Return the increments between two records, as far as they are known one by one."""
        saved = self._ring.state.saved
        found = [
            Saved(saved.at[name], one)
            for name, one in saved.known.items()
            if one.state == "committed" and one.kind != "full"
        ]
        return [
            one for one in found if one.at.lsn > after and one.at.lsn < (before or one.at.lsn + 1)
        ]

    def _due(self, run: RunInfo, now_at_us: int) -> Due:
        """Judge the present start: the agent counts from there on (R5)."""
        state = self._ring.state
        saved, began = state.saved, state.start.at.lsn if state.start else 0
        full = saved.fulls[-1] if saved.fulls and saved.fulls[-1].at.lsn > began else None
        newest = saved.newest if saved.newest and saved.newest.at.lsn > began else None
        chain = saved.deltas.between(full.at.lsn).bytes if full else 0
        return next_due(
            self.cadence,
            self._grace,
            self._since(newest, began, run, now_at_us),
            self._since(full, began, run, now_at_us) if full else None,
            chain,
        )

    def _since(self, saved: Saved | None, began: int, run: RunInfo, now_at_us: int) -> Since:
        experiments = self._ring.state.saved.experiments_since(saved.at.lsn if saved else began)
        return Since(self._age_s(saved.at, now_at_us) if saved else run.uptime_s, experiments)

    def _in_progress(self) -> int:
        state = self._ring.state
        ended = state.recent_experiments[-1].number if state.recent_experiments else None
        return int(state.experiment is not None and state.experiment != ended)

    def _incomplete(self, one: Checkpoint, run: RunInfo, last: Checkpoint | None) -> bool:
        """Whether nobody is writing it any more: another followed, or its process is gone."""
        if one.state != "begun":
            return False
        state = self._ring.state
        of_former_start = state.start is not None and (
            state.checkpoint_at[one.id].lsn < state.start.lsn
        )
        return one is not last or run.state in PAST or of_former_start
