"""Ring + facts -> the frozen Snapshot that every viewer sees."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from msgspec.structs import replace

from memwatch.analytics import lights
from memwatch.analytics.growth import Slope, time_to_limit
from memwatch.analytics.told import Instant
from memwatch.config.schema import Profile
from memwatch.domain.clock import Clock
from memwatch.domain.sample import HELD_S, TierSample
from memwatch.domain.snapshot import (
    PAST,
    Checkpoints,
    Disk,
    Limits,
    Processes,
    Progress,
    Resource,
    RunInfo,
    RunState,
    Snapshot,
    Source,
    Tier,
)
from memwatch.domain.text import inert
from memwatch.domain.units import window_label
from memwatch.engine.levels import level_of
from memwatch.runtime.views.checkpoint_view import CheckpointView, cadence_of
from memwatch.runtime.views.facts import GuardFacts, RunFacts
from memwatch.runtime.views.intervention_view import InterventionView
from memwatch.runtime.views.limits_view import limits_of
from memwatch.runtime.views.ring import Ring

CONTRACT_WINDOWS = ("60s", "10min", "24h")
_EVENTS_SHOWN = 12
_OPS_SHOWN = 32
_MODES: dict[str, RunState] = {
    "draining": "draining",
    "paused": "paused",
    "read_only": "read_only",
    "aborting": "aborting",
}
_ENDS: dict[str, RunState] = {"crashed": "crashed", "killed": "killed"}


class _Now(NamedTuple):
    """The instant that is shown: the present, or the end of a run that is over."""

    wall_us: int
    at_us: int
    """On the ring's axis: what ages are measured on."""


class SnapshotBuilder:
    """Builds snapshots of one run; keeps nothing but caches of what cannot change any more."""

    def __init__(self, run: RunFacts, profile: Profile, ring: Ring, clock: Clock) -> None:
        self.run = run
        """The run; replaced when the agent began again under a new process."""
        self._profile = profile
        self._ring = ring
        self._clock = clock
        self._windows = tuple(window_label(s) for s in profile.windows.growth_s)
        self._interventions = InterventionView(ring)
        self._checkpoints = CheckpointView(ring, profile.checkpoints, profile.lights)

    def build(self, seq: int, facts: GuardFacts) -> Snapshot:
        """Return the state of the run as known at this instant.

        A run that is over is shown at its last instant.
        """
        with self._ring.lock:
            return self._build(seq, facts)

    def _build(self, seq: int, facts: GuardFacts) -> Snapshot:
        run, now = self._run_info(facts)
        limits = limits_of(self._profile, self._ring, self.run.manifest, facts.limits)
        memory = self._memory(limits, run, now.at_us)
        self._checkpoints.cadence = cadence_of(self.run.manifest, self._profile.checkpoints)
        checkpoints = self._checkpoints.checkpoints(run, now.at_us)
        disk, processes = self._disk(), self._processes()
        progress = self._progress(facts, now.at_us)
        settings = self._profile.lights
        return Snapshot(
            seq=seq,
            t_us=now.wall_us,
            run=run,
            guard=facts.guard,
            level=memory.level if memory else "normal",
            lights=(
                lights.memory_light(memory, limits, run),
                lights.disk_light(disk, facts.guard, settings),
                lights.processes_light(processes, run, settings),
                lights.checkpoint_light(checkpoints, run),
                lights.step_light(progress, run, settings),
            ),
            limits=limits,
            resources=self._resources(memory, disk, run, now),
            tiers=self._tiers(limits, run, now.at_us),
            checkpoints=replace(
                checkpoints, next_fits=_next_fits(checkpoints, disk, settings.disk_critical_bytes)
            ),
            recovery=self._checkpoints.recovery(now.at_us, facts.drill),
            interventions=self._interventions.newest(now.at_us),
            commands=facts.commands,
            disk=disk,
            processes=processes,
            progress=progress,
            events=tuple(self._ring.events(0, _EVENTS_SHOWN)),
            event_seq=self._ring.event_seq,
            source=self._source(facts, now.at_us),
            windows=self._windows,
            chart_window_s=self._profile.windows.chart_s,
            profile_note=self._profile.note,
        )

    def _run_info(self, facts: GuardFacts) -> tuple[RunInfo, _Now]:
        manifest, state = self.run.manifest, self._ring.state
        now = _Now(self._clock.wall_us(), self._ring.mind_clock())
        run_state, reason, end = self._state(facts, now.at_us)
        if end is not None:
            now = _Now(end.t_us, self._ring.axis_of(end))
        started = state.start.at if state.start else Instant(0, manifest.started_us, 0)
        began_us = self._ring.axis_of(started) if state.start else self._ring.to_axis(started.t_us)
        run = RunInfo(
            id=manifest.run_id,
            path=self.run.path,
            agent=inert(manifest.agent, 60),
            profile=inert(manifest.profile, 60),
            host=inert(manifest.host, 60),
            pid=manifest.pid,
            state=run_state,
            phase=state.phase,
            experiment=state.experiment,
            experiment_title=state.experiment_title,
            started_us=started.t_us,
            ended_us=end.t_us if end else None,
            uptime_s=_seconds(began_us, now.at_us) if started.t_us else 0.0,
            end_reason=reason,
            switches={} if end else state.switches,
            ops=() if end else tuple(inert(op, 60) for op in list(manifest.ops)[:_OPS_SHOWN]),
        )
        return run, now

    def _state(self, facts: GuardFacts, now_at_us: int) -> tuple[RunState, str, Instant | None]:
        """Return state, reason and the instant of the end, if the run is over."""
        state = self._ring.state
        if state.end is not None:
            end = state.end
            return _ENDS.get(end.status, "ended"), end.reason or end.status, end.at
        if facts.alive is False:
            last = state.last if state.last.t_us else Instant(0, self.run.manifest.started_us, 0)
            return "crashed", "the process is gone and its log names no end", last
        if state.last.lsn and self._age_s(state.last, now_at_us) > HELD_S:
            return "silent", "", None
        return _MODES.get(state.mode or "", "running"), "", None

    def _age_s(self, instant: Instant, now_at_us: int) -> float:
        return _seconds(self._ring.axis_of(instant), now_at_us)

    def _memory(self, limits: Limits, run: RunInfo, now_at_us: int) -> Resource | None:
        last = self._last("memory")
        if last is None:
            return None
        at_us, used = last
        limit = limits.binding.bytes if limits.binding else None
        slopes = self._ring.slopes("memory")
        share = used / limit if limit else None
        arrival = None
        if self._looks_ahead(run, now_at_us):
            arrival = time_to_limit(used, limit, slopes, self._profile.windows.growth_s)
        return Resource(
            name="memory",
            used=used,
            limit=limit,
            share=share,
            level=level_of(share, self._profile.thresholds),
            growth_per_min=self._growth(slopes),
            time_to_limit_s=arrival,
            at_us=at_us,
        )

    def _looks_ahead(self, run: RunInfo, now_at_us: int) -> bool:
        """Whether the shortest window holds nothing of the way up that each start begins with."""
        return (
            run.state not in PAST
            and self._ring.followed_us(now_at_us) >= self._profile.windows.growth_s[0] * 1e6
        )

    def _resources(
        self, memory: Resource | None, disk: Disk, run: RunInfo, now: _Now
    ) -> tuple[Resource, ...]:
        found = [memory] if memory else []
        unaccounted = self._last("unaccounted")
        if unaccounted is not None:
            at_us, used = unaccounted
            age_us = now.at_us - self._ring.to_axis(at_us)
            unknown = run.state not in PAST and age_us > self._ring.max_gap_us("unaccounted")
            found.append(
                Resource(
                    name="unaccounted",
                    used=None if unknown else used,
                    growth_per_min=self._growth(self._ring.slopes("unaccounted")),
                    at_us=at_us,
                )
            )
        if disk.total_bytes and disk.free_bytes is not None:
            used_bytes = disk.total_bytes - disk.free_bytes
            share = used_bytes / disk.total_bytes
            found.append(
                Resource(name="disk", used=used_bytes, limit=disk.total_bytes, share=share)
            )
        return tuple(found)

    def _tiers(self, limits: Limits, run: RunInfo, now_at_us: int) -> tuple[Tier, ...]:
        samples = self._ring.state.tiers
        order = [name for name in self._profile.tiers if name in samples]
        order += [name for name in samples if name not in order]
        limit = limits.binding.bytes if limits.binding else None
        ahead = self._looks_ahead(run, now_at_us)
        return tuple(self._tier(name, samples[name], limit, ahead=ahead) for name in order)

    def _tier(self, name: str, sample: TierSample, limit: int | None, *, ahead: bool) -> Tier:
        slopes = self._ring.slopes(f"tier:{name}")
        spans_s = self._profile.windows.growth_s
        arrival = None
        if ahead and sample.bytes is not None:
            arrival = time_to_limit(sample.bytes, sample.limit, slopes, spans_s)
        share = sample.bytes / limit if limit and sample.bytes is not None else None
        over_cap = share is not None and share > self._profile.share_cap
        mean = (
            sample.bytes / sample.entries if sample.bytes is not None and sample.entries else None
        )
        return Tier(
            name=name,
            entries=sample.entries,
            bytes=sample.bytes,
            used=sample.bytes,
            time_to_limit_s=arrival,
            tokens=sample.tokens,
            mean_bytes=mean,
            limit=sample.limit,
            share=share,
            level="warn" if over_cap else "normal",
            growth_per_min=self._growth(slopes),
        )

    def _growth(self, slopes: list[Slope | None]) -> dict[str, float | None]:
        figures: dict[str, float | None] = dict.fromkeys(CONTRACT_WINDOWS)
        measured = zip(self._windows, slopes, strict=True)
        return figures | {name: slope.per_min if slope else None for name, slope in measured}

    def _last(self, resource: str) -> tuple[int, float] | None:
        series = self._ring.series_of(resource)
        last = series.last if series else None
        return (self._ring.to_wall(last[0]), last[1]) if last else None

    def _disk(self) -> Disk:
        sample = self._ring.disk
        if sample is None:
            return Disk(path=self.run.path)
        return Disk(
            path=self.run.path,
            total_bytes=sample.total_bytes,
            free_bytes=sample.free_bytes,
            free_share=sample.free_bytes / sample.total_bytes if sample.total_bytes else None,
            run_bytes=sample.run_bytes,
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


def _next_fits(checkpoints: Checkpoints, disk: Disk, reserve_bytes: int) -> bool | None:
    full = checkpoints.last_recoverable_full
    if full is None or full.bytes is None or disk.free_bytes is None:
        return None
    return disk.free_bytes >= 2 * full.bytes + reserve_bytes


def _seconds(from_us: int, until_us: int) -> float:
    return max(until_us - from_us, 0) / 1e6
