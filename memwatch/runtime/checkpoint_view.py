"""Checkpoints and the raw figures of a recovery, as the log tells them."""

from __future__ import annotations

from statistics import fmean

from memwatch.analytics.told import Instant
from memwatch.config.schema import CheckpointCadence, Lights
from memwatch.domain.snapshot import PAST, Chain, Checkpoint, Checkpoints, Recovery, RunInfo
from memwatch.runtime.ring import Ring, newest_commit_lsn


class CheckpointView:
    """Reads the ring's checkpoints against the cadence of R5."""

    def __init__(self, ring: Ring, cadence: CheckpointCadence, lights: Lights) -> None:
        self._ring = ring
        self._cadence = cadence
        self._grace = lights.checkpoint_grace

    def checkpoints(self, run: RunInfo, now_at_us: int) -> Checkpoints:
        """Return the last, the recoverable chain, what is due and what is broken.

        `now_at_us` is the instant that is shown, on the axis of the ring.
        """
        state = self._ring.state
        known = list(state.checkpoints.values())
        committed = self._committed()
        last = known[-1] if known else None
        newest = committed[-1] if committed else None
        age_s = self._age_s(state.checkpoint_at[newest.id], now_at_us) if newest else None
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
            count=state.checkpoint_counts["committed"],
        )

    def recovery(self, now_at_us: int) -> Recovery:
        """Return what a recovery would load and replay, and what it would lose."""
        state, full = self._ring.state, self._last_full()
        ends = state.recent_experiments
        durations = [end.duration_us / 1e6 for end in ends if end.duration_us is not None]
        since = ends[-1] if ends else state.start
        return Recovery(
            full_bytes=full.bytes if full else None,
            delta_bytes=self._chain().bytes,
            tail_bytes=self._ring.tail_bytes,
            tail_records=max(state.last_lsn - newest_commit_lsn(state), 0),
            at_risk_s=self._age_s(since.at, now_at_us) if since else None,
            at_risk_experiments=int(self._in_progress()),
            mean_experiment_s=fmean(durations) if durations else None,
        )

    def _age_s(self, instant: Instant, now_at_us: int) -> float:
        return max(now_at_us - self._ring.axis_of(instant), 0) / 1e6

    def _committed(self) -> list[Checkpoint]:
        return [c for c in self._ring.state.checkpoints.values() if c.state == "committed"]

    def _last_full(self) -> Checkpoint | None:
        fulls = [c for c in self._committed() if c.kind == "full"]
        return fulls[-1] if fulls else None

    def _chain(self) -> Chain:
        full = self._last_full()
        at = self._ring.state.checkpoint_at
        since = at[full.id].lsn if full else 0
        deltas = [c for c in self._committed() if c.kind != "full" and at[c.id].lsn > since]
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
        """Whether nobody is writing it any more: another followed, or its process is gone."""
        if one.state != "begun":
            return False
        state = self._ring.state
        of_former_start = state.start is not None and (
            state.checkpoint_at[one.id].lsn < state.start.lsn
        )
        return one is not last or run.state in PAST or of_former_start
