"""If it crashed now: the estimate with its terms, what would be lost, and what follows (R12)."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from memwatch.analytics.budget import judge
from memwatch.analytics.recovery.costs import ASSUMED_READ_BYTES_PER_S, Costs, StartSeen, learn
from memwatch.analytics.recovery.errors import error_text
from memwatch.analytics.recovery.estimate import estimate
from memwatch.analytics.recovery.grade import fix_of, grade_of
from memwatch.analytics.recovery.memory import memory_need
from memwatch.analytics.recovery.plain import plain_formula
from memwatch.analytics.recovery.work import Work
from memwatch.analytics.told import Instant
from memwatch.config.policy import CrashBudget
from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.clock import Clock
from memwatch.domain.recovery import DiskRate, PastRecovery, Recovery, RecoveryTerm, Span
from memwatch.domain.snapshot import PAST, Limits, RunInfo
from memwatch.engine.facts import RecoveryFacts
from memwatch.runtime.views.checkpoint_view import CheckpointView
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.run_view import ShownNow

_SHOWN: Final = 5
_KINDS: Final[tuple[Literal["incremental", "full"], ...]] = ("incremental", "full")
_FOREIGN: Final = (
    "only reading the checkpoint is estimated: how long its program takes to start, and to do "
    "again what came after it, is not known"
)


class Known(Struct, frozen=True, kw_only=True):
    """What is known besides the ring when a recovery is estimated."""

    past: tuple[PastRecovery, ...] = ()
    """Drills and restarts of this run, newest first."""
    costs: Costs | None = None
    """What this machine keeps of those of other runs."""
    disk: DiskRate | None = None
    budget: CrashBudget = CrashBudget()
    agent: str = ""


class RecoveryView:
    """Estimates the recovery of one run. Ask under the ring's lock."""

    def __init__(self, ring: Ring, checkpoints: CheckpointView, clock: Clock) -> None:
        self._ring = ring
        self._checkpoints = checkpoints
        self._clock = clock
        self._learnt: tuple[Known, tuple[StartSeen, ...], Costs] | None = None

    def recovery(
        self, run: RunInfo, checkpoints: Checkpoints, limits: Limits, known: Known, now: ShownNow
    ) -> Recovery:
        """Return all of it, as of the instant that is shown."""
        if self._ring.store is not None:
            return self._foreign(checkpoints, known.disk)
        work, state = self._checkpoints.work(), self._ring.state
        terms, rto = self._estimate(work, known)
        ends = [one.duration_us for one in state.recent_experiments if one.duration_us is not None]
        mean_experiment_s = fmean(ends) / 1e6 if ends else None
        plain = plain_formula(
            work, known.disk, checkpoints.stats.write_bytes_per_s, mean_experiment_s
        )
        held = [tier.bytes for tier in state.tiers.values() if tier.bytes is not None]
        binding = limits.binding
        need = memory_need(
            work,
            known.past,
            sum(held) if held else None,
            (binding.name, binding.bytes) if binding else None,
        )
        at_risk_s, experiments = self._at_risk(now.at_us)
        after_s = self._after_s(work, known) if rto else {}
        over = judge(
            known.budget if run.state not in PAST else CrashBudget(),
            rto.likely if rto else None,
            at_risk_s,
            after_s,
        )
        return Recovery(
            rto_s=rto,
            grade=grade_of(rto, over_budget=bool(over.over)) if rto else None,
            terms=terms,
            fix=fix_of(rto, terms, work, after_s) if rto else "",
            plain_s=plain.seconds if plain else None,
            plain=plain.words if plain else "",
            disk=known.disk,
            memory_bytes=need.bytes if need else None,
            memory_fits=need.fits if need else None,
            memory_how=need.how if need else "",
            error=error_text(known.past),
            past=tuple(_shown(one) for one in known.past[:_SHOWN]),
            drill=next((_shown(one) for one in known.past if one.kind == "drill"), None),
            budget=over,
            full_bytes=work.full_bytes or None,
            delta_bytes=work.delta_bytes,
            blob_bytes=work.blob_bytes,
            tail_bytes=work.tail_bytes,
            tail_records=work.tail_records,
            at_risk_s=at_risk_s,
            redo_s=self._redo_s(now.at_us, at_risk_s),
            at_risk_experiments=experiments,
            mean_experiment_s=mean_experiment_s,
        )

    def facts(self, known: Known, now_at_us: int) -> RecoveryFacts:
        """Return what the engine is told, as of an instant on the ring's axis."""
        if self._ring.store is not None:
            return RecoveryFacts()
        work = self._checkpoints.work()
        _, rto = self._estimate(work, known)
        return RecoveryFacts(
            rto_s=rto.likely if rto else None,
            work_s=self._at_risk(now_at_us)[0],
            rto_after_s=self._after_s(work, known) if rto else {},
        )

    # -- a native run --------------------------------------------------------------------------

    def _estimate(self, work: Work, known: Known) -> tuple[tuple[RecoveryTerm, ...], Span | None]:
        """Return the estimate; none where neither a start nor anything to recover was seen."""
        costs = self._costs(known)
        if not costs.starts and not work.log_bytes and not work.full_bytes:
            return (), None
        return estimate(work, costs, known.disk, self._clock.wall_us())

    def _after_s(self, work: Work, known: Known) -> Mapping[str, float]:
        costs, now_us = self._costs(known), self._clock.wall_us()
        return {
            kind: estimate(work.after(kind), costs, known.disk, now_us)[1].likely for kind in _KINDS
        }

    def _costs(self, known: Known) -> Costs:
        """Return what is learnt, anew only when something came to it."""
        starts = self._ring.state.restarts.starts()
        before = self._learnt
        if before is None or before[1] != starts or not _same(before[0], known):
            costs = learn(known.past, starts, known.costs, known.agent)
            before = self._learnt = (known, starts, costs)
        return before[2]

    def _at_risk(self, now_at_us: int) -> tuple[float | None, int]:
        """Return the time and the experiments that no checkpoint holds."""
        state, end = self._ring.state, self._checkpoints.chain().end
        since = end.at if end else state.start.at if state.start else None
        done = state.saved.experiments_since(end.at.lsn if end else 0)
        return self._age_s(since, now_at_us) if since else None, done + self._in_progress()

    def _in_progress(self) -> int:
        state = self._ring.state
        ended = state.recent_experiments[-1].number if state.recent_experiments else None
        return int(state.experiment is not None and state.experiment != ended)

    def _redo_s(self, now_at_us: int, at_risk_s: float | None) -> float | None:
        """Return what is done again with the log whole: the experiment in progress."""
        if at_risk_s is None:
            return None
        began = self._ring.state.experiment_at
        return self._age_s(began, now_at_us) if self._in_progress() and began.lsn else 0.0

    def _age_s(self, instant: Instant, now_at_us: int) -> float:
        return max(now_at_us - self._ring.axis_of(instant), 0) / 1e6

    # -- a store of another program --------------------------------------------------------------

    def _foreign(self, checkpoints: Checkpoints, disk: DiskRate | None) -> Recovery:
        """Return what can be said of one: how long its newest complete checkpoint takes to read."""
        work, last = self._checkpoints.work(), checkpoints.last_recoverable_full
        size = work.full_bytes + work.delta_bytes
        if last is None or not size:
            return Recovery(fix="no complete checkpoint lies there" if last is None else _FOREIGN)
        rate = disk.read_bytes_per_s if disk else None
        seconds = size / (rate or ASSUMED_READ_BYTES_PER_S)
        age_s = max(self._clock.wall_us() - disk.t_us, 0) / 1e6 if disk and rate else None
        load = RecoveryTerm(
            name="load",
            seconds=seconds,
            low_s=seconds / (1.3 if rate else 2),
            high_s=seconds * (1.3 if rate else 2),
            basis="measured" if rate else "assumed",
            age_s=age_s,
            bytes=size,
            how="read cold" if rate else "assumed: the disk's speed is not known yet",
        )
        return Recovery(
            terms=(load,),
            fix=_FOREIGN,
            disk=disk,
            full_bytes=work.full_bytes,
            delta_bytes=work.delta_bytes,
            at_risk_s=checkpoints.age_s,
            redo_s=checkpoints.age_s,
        )


def _shown(done: PastRecovery) -> PastRecovery:
    """Return what a snapshot tells of a recovery: all but what only learning needs."""
    return replace(done, expected=())


def _same(known: Known, other: Known) -> bool:
    same_past = known.past is other.past or known.past == other.past
    return same_past and known.costs is other.costs and known.agent == other.agent
