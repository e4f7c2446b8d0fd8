"""What a crash would cost, what checkpoints lie there, and what interventions did: for builders."""

from __future__ import annotations

from memwatch.domain.checkpoints import (
    Bloat,
    Chain,
    Checkpoint,
    Checkpoints,
    CheckpointStats,
    Prune,
)
from memwatch.domain.intervention import (
    ExperimentsAround,
    Intervention,
    ResourceEffect,
    Stage,
)
from memwatch.domain.recovery import (
    MeasuredTerm,
    PastRecovery,
    Recovery,
    RecoveryBudget,
    RecoveryTerm,
    Span,
)

MB = 1_000_000
S_US = 1_000_000
DRILL_US = 10_800 * S_US


def estimate(now_us: int) -> Recovery:
    """Return the estimate of a run that was drilled three hours ago."""
    drill = PastRecovery(
        t_us=now_us - DRILL_US,
        total_s=19.0,
        terms=(MeasuredTerm("load", 8.2, 1_300 * MB), MeasuredTerm("replay", 10.1, 0, 38)),
        bytes=1_320 * MB,
        state_bytes=1_300 * MB,
        memory_bytes=2_000 * MB,
        cold_cache=True,
        matches=True,
        estimate=Span(low=16.0, likely=18.0, high=24.0),
    )
    restart = PastRecovery(
        t_us=now_us - 2 * DRILL_US,
        total_s=17.0,
        kind="restart",
        estimate=Span(low=15.0, likely=18.5, high=23.0),
    )
    measured, drilled = 7_200.0, 10_800.0
    how = "3 drills of this run"
    return Recovery(
        rto_s=Span(low=18.0, likely=21.0, high=26.0),
        grade="good",
        terms=(
            _term("start", 0.9, "measured", measured, how="the last two starts"),
            _term("load", 9.1, "drilled", drilled, 1_400 * MB, how=f"{how}, 6.5 s a GB"),
            _term("read", 0.2, "drilled", drilled, 18 * MB, how=how),
            _term("replay", 10.8, "assumed", None, 212_000, 841, "2-core machine, 78 records/s"),
        ),
        plain_s=24.0,
        plain="1.4G at 410M/s + 18M at 410M/s + 1 experiment of 8.7s",
        memory_bytes=2_100 * MB,
        memory_fits=True,
        memory_how="1.5 × the state, of 7.9G free",
        error="last 5: −8 … +12 %",
        past=(drill, restart),
        drill=drill,
        full_bytes=1_400 * MB,
        delta_bytes=18 * MB,
        tail_bytes=212_000,
        tail_records=841,
        at_risk_s=192.0,
        redo_s=3.2,
        at_risk_experiments=4,
        mean_experiment_s=8.7,
    )


def _term(  # noqa: PLR0917 - one argument per member of the struct
    name: str,
    seconds: float,
    basis: str,
    age_s: float | None,
    size: int | None = None,
    records: int | None = None,
    how: str = "",
) -> RecoveryTerm:
    return RecoveryTerm(
        name=name,  # type: ignore[arg-type]  # a word of the test
        seconds=seconds,
        low_s=seconds * 0.85,
        high_s=seconds * 1.25,
        basis=basis,  # type: ignore[arg-type]  # a word of the test
        age_s=age_s,
        bytes=size,
        records=records,
        how=how,
    )


def load_alone() -> Recovery:
    """Return what is known of a store: how long its load takes."""
    load = RecoveryTerm(
        name="load", seconds=6.6, low_s=3.3, high_s=13.2, basis="measured", bytes=2_700 * MB
    )
    return Recovery(
        rto_s=Span(low=3.3, likely=6.6, high=13.2),
        terms=(load,),
        fix="start and replay of that program are not known",
        redo_s=1_239.0,
        at_risk_s=1_239.0,
        full_bytes=2_700 * MB,
    )


def over_budget(found: Recovery) -> Recovery:
    """Return the same with a budget that it is over, and a poor grade."""
    said = ("recovery 74 s is over your 60 s",)
    return Recovery(
        rto_s=Span(low=61.0, likely=74.0, high=97.0),
        grade="watch",
        terms=found.terms,
        fix="chain of 48M: a full checkpoint saves 52 s",
        memory_bytes=9_000 * MB,
        memory_fits=False,
        memory_how="2 × the state, of 7.9G free",
        budget=RecoveryBudget(recover_s=60.0, over=said, checkpoint="full"),
        at_risk_s=192.0,
        redo_s=3.2,
        at_risk_experiments=4,
    )


def chain(now_us: int, count: int = 33) -> list[Checkpoint]:
    """Return `count` checkpoints of our own format, newest first: each fourth is a full one."""
    found = []
    for number in range(count, 0, -1):
        full = number % 4 == 1
        began_us = now_us - (count - number + 1) * 27 * S_US
        found.append(
            Checkpoint(
                id=f"C-{number}",
                kind="full" if full else "incremental",
                state="committed",
                base=None if full else f"C-{(number - 1) // 4 * 4 + 1}",
                bytes=4_200_000 if full else 900_000,
                entries=126 if full else 11,
                began_us=began_us,
                committed_us=began_us + (S_US // 10 if full else S_US // 25),
                duration_s=0.1 if full else 0.04,
                reason="cadence",
            )
        )
    return found


def native(now_us: int, age_s: float, since: int) -> Checkpoints:
    """Return the checkpoints of a run in our own format."""
    newest = chain(now_us)
    full = next(one for one in newest if one.kind == "full")
    return Checkpoints(
        last=newest[0],
        last_recoverable_full=full,
        newest=tuple(newest[:8]),
        chain=Chain(deltas=2, bytes=1_800_000, limit_bytes=5_000_000, entries=31),
        age_s=age_s,
        next_kind="incremental",
        due_in_s=27 - age_s,
        experiments_since=since,
        next_bytes=4_300_000,
        next_fits=True,
        count=len(newest),
        stats=CheckpointStats(
            complete=33,
            duration_p50_s=0.05,
            duration_p95_s=0.1,
            full_bytes_p50=4_200_000,
            full_bytes_p95=4_300_000,
            growth_bytes=31_000,
            every_s=27.0,
            total_bytes=31 * MB,
            write_bytes_per_s=42_000_000,
            time_share=0.004,
        ),
        bloat=Bloat(verdict="stable", why="full ones grow 0.7 % each, as the state does"),
        prune=Prune(why="the agent prunes by itself: two full ones stay"),
    )


def trainer(now_us: int) -> Checkpoints:
    """Return the directory of a trainer whose newest checkpoint is torn."""
    rows = [
        Checkpoint(
            id=f"checkpoint-{step}",
            kind="full",
            state="committed",
            bytes=2_700 * MB,
            began_us=now_us - age_s * S_US,
            committed_us=now_us - age_s * S_US + 21 * S_US,
            duration_s=21.0,
            step=step,
            files=9,
            partial=step == 1_000,
        )
        for step, age_s in ((1_500, 1_260), (1_000, 2_460), (500, 3_660))
    ]
    torn = Checkpoint(
        id="checkpoint-2000",
        kind="full",
        state="incomplete",
        bytes=1_200 * MB,
        began_us=now_us - 60 * S_US,
        step=2_000,
        files=3,
        reason="no trainer_state.json, model.safetensors holds 1.2G of 2.7G",
    )
    return Checkpoints(
        source="directory",
        last=torn,
        last_recoverable_full=rows[0],
        newest=(torn, *rows),
        age_s=1_239.0,
        overdue=True,
        overdue_kind="full",
        next_bytes=2_700 * MB,
        next_fits=False,
        incomplete=("checkpoint-2000",),
        count=4,
        stats=CheckpointStats(
            complete=3, failed=1, duration_p50_s=21.0, duration_p95_s=21.0,
            full_bytes_p50=2_700 * MB, full_bytes_p95=2_700 * MB, every_s=1_200.0,
            total_bytes=9_300 * MB, time_share=0.018,
        ),
        bloat=Bloat(
            verdict="bloat",
            why="8.1G written for 2.7G of state, none was pruned",
            do="save_total_limit: 3 would hold 8.1G at most",
        ),
        prune=Prune(why="none may go: the newest is incomplete"),
    )  # fmt: skip


def deeds(now_us: int) -> tuple[Intervention, ...]:
    """Return interventions of every verdict, newest first."""
    purge = Intervention(
        id="engine-1.2",
        action="purge",
        tier="workspace",
        how="expired",
        origin="engine",
        why="soft limit",
        plan="61f-warn",
        asked_at_us=now_us - 400 * S_US,
        done_at_us=now_us - 399 * S_US,
        duration_s=0.9,
        verdict="effective",
        effects=(
            ResourceEffect(
                resource="tier:workspace", before=61.8 * MB, after_10s=25.2 * MB, freed=36.6 * MB,
                freed_share=0.59, rebound_s=360.0, verdict="effective",
            ),
            ResourceEffect(
                resource="memory", before=112 * MB, after_10s=98 * MB, freed=14 * MB,
                freed_share=0.125, held_s=390.0, verdict="effective",
            ),
        ),
        before=61.8 * MB,
        after_10s=25.2 * MB,
        freed_bytes=36.6 * MB,
        freed_share=0.59,
        rebound_s=360.0,
        claimed=48 * MB,
        differs=True,
        confounders=("experiment 97 began meanwhile",),
        experiments=ExperimentsAround(
            before=3, after=3, before_s=8.7, after_s=9.1, before_ok=3, after_ok=2
        ),
    )  # fmt: skip
    reclaim = Intervention(
        id="screen-7",
        action="reclaim",
        origin="operator",
        why="key P",
        asked_at_us=now_us - 300 * S_US,
        duration_s=1.4,
        verdict="none",
        effects=(
            ResourceEffect(
                resource="memory", before=112 * MB, after_10s=111.5 * MB, freed=0.5 * MB,
                freed_share=0.004, verdict="none",
            ),
        ),
        stages=(
            Stage(name="garbage", freed_bytes=400_000, duration_s=0.3),
            Stage(name="allocator", error="no malloc_trim here"),
        ),
        before=112 * MB,
        after_10s=111.5 * MB,
        freed_bytes=0.5 * MB,
        freed_share=0.004,
    )  # fmt: skip
    compact = Intervention(
        id="c-1",
        action="compact",
        origin="agent",
        why="context 80 %",
        asked_at_us=now_us - 200 * S_US,
        duration_s=12.0,
        verdict="effective",
        effects=(
            ResourceEffect(
                resource="tokens:context", unit="tokens", before=142_000, after_10s=38_000,
                freed=104_000, freed_share=0.73, held_s=190.0, verdict="effective",
            ),
            ResourceEffect(resource="memory", before=112 * MB, after_10s=112 * MB, freed=0,
                           freed_share=0.0, verdict="none"),
        ),
        before=142_000,
        after_10s=38_000,
        freed_bytes=104_000,
        freed_share=0.73,
        held_s=190.0,
    )  # fmt: skip
    worse = Intervention(
        id="r-1",
        action="restart",
        origin="agent",
        why="crashed",
        asked_at_us=now_us - 100 * S_US,
        duration_s=17.0,
        verdict="worse",
        before=98 * MB,
        after_10s=128 * MB,
        freed_bytes=-30 * MB,
        freed_share=-0.31,
    )
    pending = Intervention(
        id="p-1", action="pause", origin="engine", why="intervene", asked_at_us=now_us - 4 * S_US,
        duration_s=0.2, before=128 * MB, pause_s=4.0,
    )  # fmt: skip
    return pending, worse, compact, reclaim, purge
