"""What the builder of snapshots must be told besides the ring: who we are and what we know."""

from __future__ import annotations

from msgspec import Struct, field

from memwatch.analytics.recovery.costs import Costs
from memwatch.config.policy import Policy
from memwatch.domain.command import CommandInfo
from memwatch.domain.control import Alert, EngineInfo, Hold, NotifyInfo, SinceLeft
from memwatch.domain.level import Level
from memwatch.domain.recovery import DiskRate, PastRecovery
from memwatch.domain.snapshot import GuardInfo, Limit
from memwatch.wal.manifest import RunManifest


class RunFacts(Struct, frozen=True, kw_only=True):
    """The run as its directory tells, fixed for the life of a guard."""

    path: str
    manifest: RunManifest
    source: str = "native"
    """`native`, or the kind of a source that another program writes."""


class GuardFacts(Struct, frozen=True, kw_only=True):
    """The guard's own state at one instant."""

    guard: GuardInfo
    limits: tuple[Limit, ...] = ()
    """Limits of the machine (cgroup chain, host), as read last."""
    watch: str = "events"
    watch_why: str = ""
    position: str = ""
    commands: tuple[CommandInfo, ...] = ()
    """Requests, newest last."""
    older_experiments: dict[str, int] = {}
    """Experiments by status in segments that were dropped before this guard read them."""
    past: tuple[PastRecovery, ...] = ()
    """Drills and restarts of this run, newest first."""
    costs: Costs | None = None
    """What this machine keeps of recoveries of all runs."""
    disk_rate: DiskRate | None = None
    """Of the run's disk, as measured last."""
    alive: bool | None = None
    """The agent's process is there; None before it was first looked at."""
    declared: str | None = None
    """The agent's mode by its own word, where that is newer than its log."""
    policy: Policy = field(default_factory=Policy)
    """The one in force, of the agent's phase."""
    policy_source: str = ""
    engine: EngineInfo = EngineInfo()
    levels: dict[str, Level] | None = None
    """The engine's, by resource; None where no engine runs."""
    soft_share: float | None = None
    """The advisory limit in force; None for its start."""
    holds: tuple[Hold, ...] = ()
    alerts: tuple[Alert, ...] = ()
    notify: NotifyInfo | None = None
    since: SinceLeft | None = None
