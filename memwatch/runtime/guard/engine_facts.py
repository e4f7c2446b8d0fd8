"""What the engine is told: ring, policy, ledger and authority as one value.

Nothing else reaches the engine. Usage is that of the newest look at the process tree, with the
boot clock of that look: the engine knows by itself what is too old to act on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from msgspec import Struct

from memwatch.analytics.growth import Growth, Slope
from memwatch.analytics.told import Instant
from memwatch.config.policy import Policy
from memwatch.config.schema import Profile
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.command import CommandInfo
from memwatch.domain.control import Hold, Pressure
from memwatch.domain.level import EngineMode
from memwatch.domain.snapshot import Disk, Limits, RunState
from memwatch.engine.facts import CheckpointFacts, Facts, RecoveryFacts, ResourceFacts
from memwatch.runtime.views.resource_view import ResourceView
from memwatch.runtime.views.ring import Ring

_RECENT_US = 10_000_000
_MINUTE_US = 60_000_000
_COSTS_KEPT = 32


class Circumstances(Struct, frozen=True, kw_only=True):
    """What the guard knows besides the ring, at one instant."""

    policy: Policy
    limits: Limits
    run_state: RunState = "running"
    mode: EngineMode = "shadow"
    allow: frozenset[str] = frozenset()
    ops: frozenset[str] = frozenset()
    disk: Disk = Disk()
    pressure: Pressure | None = None
    period_s: float = 2.0
    commands: Mapping[str, CommandInfo] = {}
    holds: tuple[Hold, ...] = ()
    approved: frozenset[str] = frozenset()
    declined: frozenset[str] = frozenset()
    released_m_us: int | None = None
    reset_m_us: int | None = None
    recovery: RecoveryFacts = RecoveryFacts()


class FactsBuilder:
    """Builds the engine's facts; used by one thread. The ring's lock is held while it reads."""

    def __init__(self, profile: Profile, ring: Ring) -> None:
        self._ring = ring
        self._spans_s = profile.windows.growth_s
        self._measured = ResourceView(profile, ring)
        self._own_growth: dict[str, tuple[float, Growth]] = {}
        self._costs: OrderedDict[str, tuple[float, float | None]] = OrderedDict()

    def build(self, known: Circumstances, now_at_us: int) -> Facts:
        """Return the facts of this instant."""
        with self._ring.lock:
            return self._build(known, now_at_us)

    def _build(self, known: Circumstances, now_at_us: int) -> Facts:
        state = self._ring.state
        names = ("memory", *(name for name in known.policy.resources if name != "memory"))
        found = (self._resource(name, known, now_at_us) for name in names)
        return Facts(
            mode=known.mode,
            allow=known.allow,
            ops=known.ops,
            run_state=known.run_state,
            start_id=state.start.start_id if state.start else "",
            phase=state.phase,
            experiment=state.experiment,
            resources=tuple(one for one in found if one is not None),
            pressure=known.pressure,
            checkpoint=self._checkpoint(),
            recovery=known.recovery,
            sample_period_s=known.period_s,
            commands=known.commands,
            holds=known.holds,
            approved=known.approved,
            declined=known.declined,
            released_m_us=known.released_m_us,
            reset_m_us=known.reset_m_us,
        )

    # -- resources ---------------------------------------------------------------------------

    def _resource(self, name: str, known: Circumstances, now_at_us: int) -> ResourceFacts | None:
        if name == "disk":
            return self._disk(known.disk, now_at_us)
        series = self._ring.series_of(name)
        last = series.last if series else None
        if series is None or last is None:
            return None
        at_us, used = last
        limit = self._limit(name, known.limits)
        window_s = known.policy.soft.window_s
        return ResourceFacts(
            name=name,
            limit_name=self._limit_name(name, known.limits),
            used=used,
            limit=limit,
            measured_m_us=at_us,
            growth_per_min=_per_min(self._growth(name, window_s, at_us, used)),
            growth_recent_per_min=_per_min(self._ring.slopes(name)[0]),
            time_to_limit_s=self._measured.arrival(name, used, limit, known.run_state, now_at_us),
            mean_10s=_mean([v for _, v in series.between(now_at_us - _RECENT_US, now_at_us + 1)]),
            mean_60s=_mean([v for _, v in series.between(now_at_us - _MINUTE_US, now_at_us + 1)]),
        )

    def _limit(self, name: str, limits: Limits) -> float | None:
        """Return a resource's own limit: a tier's is what the agent says, else all share one."""
        tier = self._ring.state.tiers.get(name.removeprefix("tier:"))
        if name.startswith("tier:") and tier is not None and tier.limit:
            return float(tier.limit)
        return float(limits.binding.bytes) if limits.binding else None

    def _limit_name(self, name: str, limits: Limits) -> str:
        if name.startswith("tier:"):
            return "the tier's own limit"
        return limits.binding.name if limits.binding else ""

    def _growth(self, name: str, window_s: float, at_us: int, used: float) -> Slope | None:
        """Return growth over the soft limit's window: the profile's, else one of our own."""
        if window_s in self._spans_s:
            return self._ring.slopes(name)[self._spans_s.index(window_s)]
        own = self._own_growth.get(name)
        if own is None or own[0] != window_s:
            own = self._own_growth[name] = (window_s, Growth((window_s,)))
        own[1].add(at_us, used)
        return own[1].slopes()[0]

    def _disk(self, disk: Disk, now_at_us: int) -> ResourceFacts | None:
        if not disk.total_bytes or disk.free_bytes is None:
            return None
        series = self._ring.series_of("disk_free")
        last = series.last if series else None
        slope = self._ring.slopes("disk_free")[0]
        growth = -slope.per_min if slope else None
        return ResourceFacts(
            name="disk",
            used=float(disk.total_bytes - disk.free_bytes),
            limit=float(disk.total_bytes),
            measured_m_us=last[0] if last else now_at_us,
            growth_per_min=growth,
            growth_recent_per_min=growth,
        )

    # -- checkpoints -------------------------------------------------------------------------

    def _checkpoint(self) -> CheckpointFacts:
        """Return what checkpoints of this run took, and when the newest one was committed."""
        state = self._ring.state
        done = [one for one in state.checkpoints.values() if one.state == "committed"]
        if not done:
            return CheckpointFacts()
        for one in done:
            if one.id not in self._costs and one.duration_s is not None:
                self._costs[one.id] = (one.duration_s, self._extra_bytes(one))
        while len(self._costs) > _COSTS_KEPT:
            self._costs.popitem(last=False)
        took = sorted(seconds for seconds, _ in self._costs.values())
        extra = [size for _, size in self._costs.values() if size is not None]
        return CheckpointFacts(
            p95_s=took[min(len(took) * 95 // 100, len(took) - 1)] if took else None,
            extra_bytes=max(extra, default=None),
            last_m_us=self._ring.axis_of(state.checkpoint_at[done[-1].id]),
        )

    def _extra_bytes(self, checkpoint: Checkpoint) -> float | None:
        """Return by how much usage rose while a checkpoint was taken; None if nobody looked."""
        series = self._ring.series_of("memory")
        done: Instant = self._ring.state.checkpoint_at[checkpoint.id]
        done_at_us = self._ring.axis_of(done)
        began_at_us = done_at_us - round((checkpoint.duration_s or 0.0) * 1e6)
        before = series.value_at(began_at_us, self._ring.max_gap_us("memory")) if series else None
        if series is None or before is None:
            return None
        during = [value for _, value in series.between(began_at_us, done_at_us + 1)]
        return max(max(during) - before, 0.0) if during else None


def _per_min(slope: Slope | None) -> float | None:
    return slope.per_min if slope else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
