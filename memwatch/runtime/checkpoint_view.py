"""Checkpoints and the raw figures of a recovery, as the log tells them."""

from __future__ import annotations

from statistics import fmean

from memwatch.analytics.lights import PAST
from memwatch.config.schema import CheckpointCadence, Lights
from memwatch.domain.snapshot import Chain, Checkpoint, Checkpoints, Recovery, RunInfo
from memwatch.runtime.ring import Ring, newest_commit_lsn


class CheckpointView:
    """Reads the ring's checkpoints against the cadence of R5."""

    def __init__(self, ring: Ring, cadence: CheckpointCadence, lights: Lights) -> None:
        self._ring = ring
        self._cadence = cadence
        self._grace = lights.checkpoint_grace

    def checkpoints(self, run: RunInfo, now_us: int) -> Checkpoints:
        """Return the last, the recoverable chain, what is due and what is broken."""
        state = self._ring.state
        known = list(state.checkpoints.values())
        committed = self._committed()
        last = known[-1] if known else None
        newest = committed[-1] if committed else None
        age_s = None
        if newest is not None and newest.committed_us:
            age_s = max(now_us - newest.committed_us, 0) / 1e6
        since = self._experiments_since()
        reference_s = age_s if age_s is not None else run.uptime_s
        over = run.state not in PAST
        return Checkpoints(
            last=last,
            last_recoverable_full=self._last_full(),
            chain=self._chain(),
            age_s=age_s,
            overdue=over and self._overdue(reference_s, since),
            due_in_s=self._cadence.incremental_s - reference_s if over else None,
            experiments_since=since,
            incomplete=tuple(c.id for c in known if self._incomplete(c, run, last)),
            count=len(committed),
        )

    def recovery(self, now_us: int) -> Recovery:
        """Return what a recovery would load and replay, and what it would lose."""
        state, full = self._ring.state, self._last_full()
        ends = state.recent_experiments
        durations = [end.duration_us / 1e6 for end in ends if end.duration_us is not None]
        since_us = ends[-1].t_us if ends else (state.start.t_us if state.start else 0)
        return Recovery(
            full_bytes=full.bytes if full else None,
            delta_bytes=self._chain().bytes,
            tail_bytes=self._ring.tail_bytes,
            tail_records=max(state.last_lsn - newest_commit_lsn(state), 0),
            at_risk_s=max(now_us - since_us, 0) / 1e6 if since_us else None,
            at_risk_experiments=int(self._in_progress()),
            mean_experiment_s=fmean(durations) if durations else None,
        )

    def _committed(self) -> list[Checkpoint]:
        return [c for c in self._ring.state.checkpoints.values() if c.state == "committed"]

    def _last_full(self) -> Checkpoint | None:
        fulls = [c for c in self._committed() if c.kind == "full"]
        return fulls[-1] if fulls else None

    def _chain(self) -> Chain:
        full = self._last_full()
        since = self._ring.state.checkpoint_lsn[full.id] if full else 0
        lsn_of = self._ring.state.checkpoint_lsn
        deltas = [c for c in self._committed() if c.kind != "full" and lsn_of[c.id] > since]
        return Chain(
            deltas=len(deltas),
            bytes=sum(c.bytes or 0 for c in deltas),
            limit_bytes=self._cadence.chain_bytes,
            entries=sum(c.entries or 0 for c in deltas),
        )

    def _experiments_since(self) -> int:
        since = newest_commit_lsn(self._ring.state)
        ends = self._ring.state.recent_experiments
        return sum(end.lsn > since and end.status != "aborted" for end in ends)

    def _in_progress(self) -> bool:
        state = self._ring.state
        ended = state.recent_experiments[-1].number if state.recent_experiments else None
        return state.experiment is not None and state.experiment != ended

    def _overdue(self, age_s: float, experiments: int) -> bool:
        limit = self._cadence.incremental_experiments * self._grace + 1
        return age_s > self._cadence.incremental_s * self._grace or experiments > limit

    def _incomplete(self, one: Checkpoint, run: RunInfo, last: Checkpoint | None) -> bool:
        return one.state == "begun" and (one is not last or run.state in PAST)
