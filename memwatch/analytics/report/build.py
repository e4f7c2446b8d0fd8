"""Both folds, the checkpoints and the run's last snapshot -> the report. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from memwatch.analytics.advice import advise, not_undone
from memwatch.analytics.checkpoints.bloat import bloat_of
from memwatch.analytics.checkpoints.stats import stats_of
from memwatch.analytics.report.agent_fold import DIED, AgentFold
from memwatch.analytics.report.course import Course, Dwell
from memwatch.analytics.report.deeds import deed_rows, plan_advice, plan_rows
from memwatch.analytics.report.guard_fold import GuardFold
from memwatch.analytics.report.lines import ten_lines
from memwatch.analytics.report.model import (
    Experiments,
    Figures,
    Report,
    Saves,
    Seen,
    Start,
    Stay,
)
from memwatch.config.policy import Policy
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.intervention import Advice, Intervention
from memwatch.domain.level import LEVELS
from memwatch.domain.recovery import PastRecovery
from memwatch.domain.snapshot import GONE, PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import local_time_text
from memwatch.domain.wording import op_text

_HOUR_S = 3600.0


class Sources(NamedTuple):
    """What was read of a run."""

    run: str
    path: str
    agent: AgentFold
    guard: GuardFold
    snapshot: Snapshot | None
    """The newest there is; None where the run's directory is gone."""
    policy: Policy
    past: tuple[PastRecovery, ...] = ()
    """Drills and restarts, newest first."""
    damage: Mapping[str, int] = {}
    first_lsn: int = 1
    """Where the agent's log begins."""
    since_us: int = 0
    now_us: int = 0
    rows: tuple[Checkpoint, ...] = ()
    """Of a foreign store: its checkpoints, newest first."""


def report_of(known: Sources) -> Report:
    """Return the report; its folds are closed by it."""
    agent, guard, snapshot = known.agent, known.guard, known.snapshot
    agent.close()
    guard.close()
    deeds = _deeds(known)
    run = snapshot.run if snapshot else None
    recovery = snapshot.recovery if snapshot else None
    whole = Report(
        run=inert(known.run, 80),
        path=inert(known.path, 200),
        agent=inert(run.agent, 40) if run else "",
        host=inert(run.host, 40) if run else "",
        source=snapshot.checkpoints.source if snapshot else "native",
        state=run.state if run else "gone",
        end=inert(run.end_reason, 120) if run else "",
        span=_span(known),
        notes=tuple(_notes(known)),
        modes=_stays(guard.modes),
        levels=_levels(guard.levels),
        holds=_holds(known),
        memory=_memory(known),
        resources=_resources(known),
        plans=plan_rows(guard.plans.values()),
        deeds=deed_rows(deeds),
        claims=tuple(sorted(agent.claims.values(), key=lambda row: -row.freed_bytes)),
        requests=_requests(guard),
        experiments=_experiments(known),
        checkpoints=_saves(known),
        rto_s=recovery.rto_s if recovery else None,
        grade=(recovery.grade or "") if recovery else "",
        over_budget=recovery.budget.over if recovery else (),
        estimates=tuple(guard.estimates),
        recoveries=_recoveries(known),
        starts=_starts(known),
        damage=dict(known.damage),
        errors=dict(agent.errors.most_common(8)),
        alerts=tuple(guard.alerts),
        alert_count=guard.alert_count,
        gaps=tuple(guard.gaps),
        advice=_advice(known, deeds),
    )
    return replace(whole, lines=ten_lines(whole))


def _span(known: Sources) -> Seen:
    agent, guard = known.agent, known.guard
    begins = [us for us in (agent.first_us, guard.first_us) if us]
    ends = [us for us in (agent.last_us, guard.last_us) if us]
    if not begins and known.rows:
        times = [one.committed_us or one.began_us for one in known.rows]
        begins, ends = [min(times)], [max(times)]
    over = known.snapshot is not None and known.snapshot.run.state in PAST
    if over and agent.last_us:
        ends = [agent.last_us]  # its guard stays a while longer
    from_us = min(begins, default=known.since_us or known.now_us)
    until_us = max(ends, default=known.now_us)
    return Seen(
        from_us=from_us,
        until_us=until_us,
        seconds=max(until_us - from_us, 0) / 1e6,
        agent_s=agent.seconds,
        watched_s=guard.seconds,
        begun_us=_begun_us(known, from_us),
    )


def _begun_us(known: Sources, from_us: int) -> int:
    """Return when the run's present start began if that is clearly before what is told of."""
    begun_us = known.snapshot.run.started_us if known.snapshot else 0
    return begun_us if 0 < begun_us < from_us - 5_000_000 else 0


def _notes(known: Sources) -> list[str]:
    notes = []
    agent, guard = known.agent, known.guard
    if known.snapshot is None:
        notes.append("The run's directory is gone: what follows is what its guard wrote down.")
    foreign = known.snapshot is not None and known.snapshot.checkpoints.source != "native"
    if not guard.first_us and not agent.first_us and not known.rows:
        notes.append("Nothing was written in this time.")
    elif not guard.first_us:
        what = "levels, alerts and what interventions really freed are not known"
        notes.append(f"No guard watched in this time: {what}.")
    dropped = known.first_lsn > 1 and agent.log_from_us > known.since_us and not foreign
    if dropped and agent.first_us:
        when = local_time_text(agent.log_from_us, "%H:%M:%S")
        counted = "; the guard had counted its experiments and checkpoints" if guard.tallies else ""
        notes.append(
            f"The agent dropped its log from before {when} behind a checkpoint{counted}. What is "
            "told of single experiments, checkpoints and purges is from then on."
        )
    if foreign:
        notes.append("A checkpoint store has no log: what its program did is seen by its files.")
    return notes


def _levels(levels: Dwell) -> tuple[Stay, ...]:
    seconds = levels.seconds()
    return tuple(
        Stay(name=level, seconds=seconds.get(level, 0.0), times=levels.entered[level])
        for level in reversed(LEVELS)
        if seconds.get(level) or levels.entered[level]
    )


def _holds(known: Sources) -> tuple[Stay, ...]:
    """Return holds by the agent's log; by the guard's where the agent dropped more than a bit."""
    agent, guard = known.agent, known.guard
    whole = agent.seconds >= 0.95 * _span(known).seconds
    return _stays(agent.holds if whole or not guard.first_us else guard.holds)


def _stays(dwell: Dwell) -> tuple[Stay, ...]:
    return tuple(
        Stay(name=name, seconds=seconds, times=max(dwell.entered[name], 1))
        for name, seconds in dwell.times()
    )


def _memory(known: Sources) -> Figures | None:
    guard, agent = known.guard, known.agent
    if guard.memory.peak is not None:
        return _figures("memory", guard.memory, guard.limit, guard.limit_name)
    if agent.memory.peak is None:
        return None
    limits = known.snapshot.limits if known.snapshot else None
    binding = limits.binding if limits else None
    name = "memory, as the agent says"
    return _figures(
        name, agent.memory, binding.bytes if binding else None, binding.name if binding else ""
    )


def _resources(known: Sources) -> tuple[Figures, ...]:
    found = []
    if known.guard.unaccounted.peak is not None:
        found.append(_figures("unaccounted", known.guard.unaccounted))
    tiers = [_figures(name, course) for name, course in known.agent.tiers.items()]
    return (*found, *sorted(tiers, key=lambda it: -(it.peak or 0.0)))


def _figures(
    name: str, course: Course, limit: float | None = None, limit_name: str = ""
) -> Figures:
    return Figures(
        name=name,
        first=course.first,
        peak=course.peak,
        peak_us=course.peak_us,
        last=course.last,
        limit=limit,
        limit_name=inert(limit_name, 60),
        per_min=course.per_min,
    )


def _deeds(known: Sources) -> list[Intervention]:
    """Return interventions, newest first: those the guard wrote down, else what is shown now."""
    written = sorted(known.guard.deeds.values(), key=lambda one: one.asked_at_us, reverse=True)
    if written or known.snapshot is None:
        return written
    return [one for one in known.snapshot.interventions if one.asked_at_us >= known.since_us]


def _requests(guard: GuardFold) -> dict[str, int]:
    counts: dict[str, int] = {}
    for op, state in guard.requests.values():
        what = f"{op_text(op)} {state}"
        counts[what] = counts.get(what, 0) + 1
    return dict(sorted(counts.items(), key=lambda it: -it[1]))


def _experiments(known: Sources) -> Experiments:
    agent, counts = known.agent, dict(known.agent.experiments)
    best = agent.best
    for tally in known.guard.tallies:
        best = best or inert(tally.best, 40)
        for status, number in tally.experiments.items():
            counts[status] = counts.get(status, 0) + number
    seconds = _span(known).seconds
    total = sum(counts.values())
    return Experiments(
        by_status=dict(sorted(counts.items(), key=lambda it: -it[1])),
        per_hour=total * _HOUR_S / seconds if total and seconds > 0 else None,
        best=best,
        mean_s=agent.took_us / agent.took / 1e6 if agent.took else None,
    )


def _saves(known: Sources) -> Saves:
    agent, snapshot = known.agent, known.snapshot
    if snapshot is not None and snapshot.checkpoints.source != "native":
        saved = snapshot.checkpoints
        kinds: dict[str, int] = {}
        for one in known.rows:
            if one.state != "committed":
                continue
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
        return Saves(
            by_kind=kinds,
            failed=saved.stats.failed,
            counted=saved.stats.complete,
            stats=saved.stats,
            bloat=saved.bloat,
            rows=known.rows,
            deleted=known.guard.stores["deleted"],
        )
    counts: dict[str, int] = {}
    for _, one in agent.saved:
        counts[one.kind] = counts.get(one.kind, 0) + 1
    counted = agent.counted_saves + sum(tally.checkpoints for tally in known.guard.tallies)
    complete = len(agent.saved)
    stats = stats_of(agent.saved, complete=complete, failed=agent.failed_saves, total_bytes=None)
    return Saves(
        by_kind=counts,
        failed=agent.failed_saves,
        counted=max(counted, complete),
        stats=stats,
        bloat=bloat_of(agent.saved, "native"),
    )


def _recoveries(known: Sources) -> tuple[PastRecovery, ...]:
    """Return drills and restarts of the time told of, oldest first; a restart is in both files."""
    found = {(one.t_us, one.kind): one for one in (*known.guard.restarts, *known.past)}
    return tuple(found[key] for key in sorted(found) if key[0] >= known.since_us)


def _starts(known: Sources) -> tuple[Start, ...]:
    """Return deaths and starts: by the agent's log, and those that only the guard saw."""
    agent = known.agent
    seen = [
        Start(
            t_us=death.t_us,
            what=DIED + ("" if death.down_s is None else ", was there again"),
            down_s=death.down_s,
        )
        for death in known.guard.deaths
        if not agent.first_us or death.t_us < agent.first_us
    ]
    return (*seen, *agent.starts, *_last_death(known))


def _last_death(known: Sources) -> Sequence[Start]:
    """Return the end of a run whose process went without a word."""
    agent, snapshot = known.agent, known.snapshot
    if snapshot is None or snapshot.run.state not in GONE:
        return ()
    number, since_us = agent.open or (None, None)
    redo_s = None if since_us is None else agent.seconds - (since_us - agent.from_us) / 1e6
    what = f"{DIED} ({snapshot.run.state}), not started again"
    return (Start(t_us=agent.last_us, what=what, experiment=number, redo_s=redo_s),)


def _advice(known: Sources, deeds: list[Intervention]) -> tuple[Advice, ...]:
    snapshot = known.snapshot
    if snapshot is None:
        return ()
    by_plans = plan_advice(plan_rows(known.guard.plans.values()), known.policy)
    by_deeds = advise(
        deeds,
        snapshot.recovery,
        snapshot.checkpoints,
        snapshot.limits,
        known.policy,
        snapshot.resource("memory"),
    )
    return tuple(not_undone((*by_plans, *by_deeds)))
