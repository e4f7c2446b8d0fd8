"""Ring + facts -> the frozen Snapshot that every viewer sees."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from memwatch.analytics import lights
from memwatch.analytics.advice import advise
from memwatch.analytics.suggest import suggest
from memwatch.analytics.told import Instant
from memwatch.config.schema import Profile
from memwatch.domain.clock import Clock
from memwatch.domain.command import CommandInfo
from memwatch.domain.level import Level
from memwatch.domain.snapshot import (
    PAST,
    Disk,
    Limits,
    Processes,
    Progress,
    Resource,
    Snapshot,
    Source,
)
from memwatch.engine.levels import level_of
from memwatch.runtime.views.checkpoint_view import CheckpointView, cadence_of
from memwatch.runtime.views.facts import GuardFacts, RunFacts
from memwatch.runtime.views.intervention_view import InterventionView
from memwatch.runtime.views.limits_view import limits_of
from memwatch.runtime.views.recovery_view import Known, RecoveryView
from memwatch.runtime.views.resource_view import ResourceView
from memwatch.runtime.views.ring import Ring
from memwatch.runtime.views.run_view import RunView

_EVENTS_SHOWN = 12
_COMMANDS_SHOWN = 6
_LEARNT_FROM = 100
"""Newest interventions that advice looks at: a snapshot shows fewer."""


class SnapshotBuilder:
    """Builds snapshots of one run; keeps nothing but caches of what cannot change any more."""

    def __init__(self, run: RunFacts, profile: Profile, ring: Ring, clock: Clock) -> None:
        self._profile = profile
        self._ring = ring
        self._run = RunView(run, ring, clock, profile.lights.checkpoint_grace)
        self._measured = ResourceView(profile, ring)
        self.interventions = InterventionView(ring, profile.windows)
        """For all rows of it: a snapshot shows a few."""
        self.checkpoints = CheckpointView(ring, profile.checkpoints, profile.lights)
        self._recovery = RecoveryView(ring, self.checkpoints, clock)

    @property
    def run(self) -> RunFacts:
        """The run; replaced when the agent began again under a new process."""
        return self._run.run

    @run.setter
    def run(self, run: RunFacts) -> None:
        self._run.run = run

    def build(self, seq: int, facts: GuardFacts) -> Snapshot:
        """Return the state of the run as known at this instant.

        A run that is over is shown at its last instant.
        """
        with self._ring.lock:
            return self._build(seq, facts)

    def _build(self, seq: int, facts: GuardFacts) -> Snapshot:
        run, now = self._run.info(facts.alive, facts.declared)
        limits = self._limits(facts)
        disk, processes = self._disk(), self._processes()
        resources = tuple(
            replace(one, level=_level(one, facts))
            for one in self._measured.resources(limits, disk, run.state, now)
        )
        memory = next((one for one in resources if one.name == "memory"), None)
        space = next((one for one in resources if one.name == "disk"), None)
        self.checkpoints.cadence = cadence_of(self.run.manifest, self._profile.checkpoints)
        settings = self._profile.lights
        checkpoints = self.checkpoints.checkpoints(run, now.at_us)
        known = _known(facts, self.run)
        recovery = self._recovery.recovery(run, checkpoints, limits, known, now)
        progress = self._progress(facts, now.at_us)
        snapshot = Snapshot(
            seq=seq,
            t_us=now.wall_us,
            run=run,
            guard=facts.guard,
            level=memory.level if memory else "normal",
            lights=(
                lights.memory_light(memory, limits, run),
                lights.disk_light(disk, facts.guard, settings, space.level if space else "normal"),
                lights.processes_light(processes, run, settings),
                lights.checkpoint_light(checkpoints, run, recovery.budget),
                lights.step_light(progress, run, settings, foreign=self._ring.store is not None),
            ),
            limits=limits,
            resources=resources,
            tiers=self._measured.tiers(limits, run.state, facts.levels or {}, now.at_us),
            checkpoints=checkpoints,
            recovery=recovery,
            interventions=self.interventions.newest(
                now.at_us,
                facts.commands,
                limits.binding.bytes if limits.binding else None,
                over=run.state in PAST,
            ),
            commands=tuple(_short(one) for one in facts.commands[-_COMMANDS_SHOWN:]),
            disk=disk,
            processes=processes,
            progress=progress,
            events=tuple(self._ring.events(0, _EVENTS_SHOWN)),
            event_seq=self._ring.event_seq,
            source=self._source(facts, now.at_us),
            windows=self._measured.windows,
            chart_window_s=self._profile.windows.chart_s,
            engine=facts.engine,
            holds=facts.holds,
            since=facts.since,
            alerts=facts.alerts,
            notify=facts.notify,
            profile_note=self._profile.note,
        )
        past = self.interventions.rows(_LEARNT_FROM)
        advice = advise(past, recovery, checkpoints, limits, facts.policy, memory)
        learnt = replace(snapshot, interventions=tuple(past))
        return replace(snapshot, suggestion=suggest(learnt), advice=advice)

    def _limits(self, facts: GuardFacts) -> Limits:
        manifest = self.run.manifest
        found = limits_of(self._profile, self._ring, manifest, facts.limits, facts.policy)
        soft = found.soft_share if facts.soft_share is None else facts.soft_share
        return replace(found, soft_share=soft, why=f"policy: {facts.policy_source or 'built in'}")

    def _age_s(self, instant: Instant, now_at_us: int) -> float:
        return _seconds(self._ring.axis_of(instant), now_at_us)

    def _disk(self) -> Disk:
        sample, store_bytes = self._ring.disk, self._ring.store_bytes
        if sample is None:
            return Disk(path=self.run.path, run_bytes=store_bytes)
        return Disk(
            path=self.run.path,
            total_bytes=sample.total_bytes,
            free_bytes=sample.free_bytes,
            free_share=sample.free_bytes / sample.total_bytes if sample.total_bytes else None,
            run_bytes=sample.run_bytes if store_bytes is None else store_bytes,
        )

    def _processes(self) -> Processes:
        tree = self._ring.tree
        if tree is None:
            return Processes()
        return Processes(
            count=tree.processes,
            orphans=tree.orphans,
            threads=tree.threads,
            fds=tree.fds,
            members=tree.members,
        )

    def _progress(self, facts: GuardFacts, now_at_us: int) -> Progress:
        state = self._ring.state
        ends = state.recent_experiments
        per_hour = None
        if len(ends) >= 2:
            span_s = self._age_s(ends[0].at, self._ring.axis_of(ends[-1].at))
            per_hour = (len(ends) - 1) * 3600 / span_s if span_s else None
        return Progress(
            last_step_s=self._age_s(state.progress, now_at_us) if state.progress.lsn else None,
            last_record_us=state.last_t_us or None,
            experiments=dict(state.experiments + Counter(facts.older_experiments)),
            per_hour=per_hour,
            best=state.best,
            steps=state.steps,
        )

    def _source(self, facts: GuardFacts, now_at_us: int) -> Source:
        state = self._ring.state
        faults = state.faults
        broken = ("damaged", "fused", "overlong", "torn", "refused")
        lost = ("gap", "repeated", "truncated", "replaced", "vanished")
        return Source(
            kind=self.run.source,
            position=facts.position,
            records=state.records,
            last_lsn=state.last_lsn,
            lag_s=self._age_s(state.last, now_at_us) if state.last.lsn else None,
            damaged=sum(faults[kind] for kind in broken),
            gaps=sum(faults[kind] for kind in lost),
            unknown=state.unknown,
            watch="events" if facts.watch == "events" else "polling",
            watch_why=facts.watch_why,
        )


def _short(info: CommandInfo) -> CommandInfo:
    """Return a request without what only who asked needs; that of a plan is measured as a row."""
    return replace(info, result={}) if info.plan and info.state == "done" else info


def _known(facts: GuardFacts, run: RunFacts) -> Known:
    return Known(
        past=facts.past,
        costs=facts.costs,
        disk=facts.disk_rate,
        budget=facts.policy.budget,
        agent=run.manifest.agent,
    )


def _level(resource: Resource, facts: GuardFacts) -> Level:
    """Return the engine's level of a resource; without an engine the thresholds' for memory."""
    if facts.levels is not None:
        return facts.levels.get(resource.name, "normal")
    if resource.name != "memory":
        return "normal"
    return level_of(resource.share, facts.policy.thresholds)


def _seconds(from_us: int, until_us: int) -> float:
    return max(until_us - from_us, 0) / 1e6
