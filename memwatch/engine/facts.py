"""What the engine is told at one instant: nothing else reaches it, so a replay decides alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from memwatch.domain.command import CommandInfo
from memwatch.domain.control import Hold, Pressure
from memwatch.domain.level import EngineMode
from memwatch.domain.snapshot import RunState


class Now(NamedTuple):
    """The instant: wall clock for people, boot clock for every rate and duration."""

    t_us: int
    m_us: int


class ResourceFacts(Struct, frozen=True, kw_only=True):
    """One resource as measured last; `memory` is the tree's usage of the binding limit."""

    name: str
    limit_name: str = ""
    """Which limit binds, for people: `cgroup /x memory.max`."""
    used: float | None = None
    limit: float | None = None
    measured_m_us: int = 0
    """Boot clock; an old measurement decides nothing."""
    growth_per_min: float | None = None
    """Robust slope over the window of the soft limit."""
    growth_recent_per_min: float | None = None
    """Over the shortest window."""
    time_to_limit_s: tuple[float, float] | None = None
    mean_10s: float | None = None
    mean_60s: float | None = None


class CheckpointFacts(Struct, frozen=True, kw_only=True):
    """What checkpoints cost in this run so far."""

    p95_s: float | None = None
    extra_bytes: float | None = None
    """Memory that one took on top, at most."""
    last_m_us: int | None = None
    """Boot clock at which the newest one was committed."""


class RecoveryFacts(Struct, frozen=True, kw_only=True):
    """What a crash would cost now."""

    rto_s: float | None = None
    """Likely seconds until it is back."""
    work_s: float | None = None
    """Work that no checkpoint holds."""
    rto_after_s: Mapping[str, float] = {}
    """The same estimate right after a checkpoint, by kind: incremental, full."""


class Facts(Struct, frozen=True, kw_only=True):
    """All of it."""

    mode: EngineMode
    allow: frozenset[str]
    ops: frozenset[str]
    """What the agent takes now, holds included."""
    run_state: RunState = "running"
    start_id: str = ""
    phase: str | None = None
    """As the agent declares it; never an inferred one (R10)."""
    experiment: int | None = None
    resources: tuple[ResourceFacts, ...] = ()
    """`memory` is one of them when it was ever measured."""
    pressure: Pressure | None = None
    checkpoint: CheckpointFacts = CheckpointFacts()
    recovery: RecoveryFacts = RecoveryFacts()
    sample_period_s: float = 2.0
    commands: Mapping[str, CommandInfo] = {}
    """Requests of the engine by id, as the ledger knows them: one that is missing was lost."""
    holds: tuple[Hold, ...] = ()
    """In force, as the agent says, and those that we keep."""
    approved: frozenset[str] = frozenset()
    declined: frozenset[str] = frozenset()
    """Plans that a person let go, or not."""
    released_m_us: int | None = None
    """When a person last released a hold of the engine."""
    reset_m_us: int | None = None
    """When a person last closed the breakers."""

    def resource(self, name: str) -> ResourceFacts | None:
        """Return a resource by name."""
        return next((one for one in self.resources if one.name == name), None)
