"""The one frozen value that a frame is drawn from: `status --json` as a struct.

Names are the contract for scripts; members may be added, never renamed. Figures that nobody
measured are None. No series: charts ask for those.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.command import CommandInfo
from memwatch.domain.control import (
    Alert,
    EngineInfo,
    Hold,
    NotifyInfo,
    SinceLeft,
    Suggestion,
)
from memwatch.domain.intervention import Advice, Intervention
from memwatch.domain.level import EngineMode, Level
from memwatch.domain.recovery import Recovery
from memwatch.domain.sample import ProcessInfo

RunState = Literal[
    "running", "draining", "paused", "read_only", "aborting", "ended", "crashed", "killed", "silent"
]
GONE: frozenset[RunState] = frozenset({"crashed", "killed"})
"""States of a run whose process ended without saying so."""
PAST: frozenset[RunState] = GONE | {"ended"}
"""States of a run whose process is no more."""
Word = Literal["ok", "watch", "WARN", "ACT", "CRIT", "no data"]  # watch: level still normal
LightName = Literal["MEMORY", "DISK", "PROCS", "CKPT", "STEP"]
Severity = Literal["info", "notice", "warning", "error"]


class RunInfo(Struct, frozen=True, kw_only=True):
    """The run and the agent's state as it declares it."""

    id: str
    path: str
    agent: str
    profile: str
    host: str
    pid: int
    state: RunState
    phase: str | None = None
    experiment: int | None = None
    experiment_title: str = ""
    started_us: int = 0
    """First `run.begin` of this start."""
    ended_us: int | None = None
    uptime_s: float = 0.0
    end_reason: str = ""
    ops: tuple[str, ...] = ()
    """Operations that the agent takes."""
    switches: dict[str, float] = {}
    """What the agent says is switched on and how far: the demo's `leak`, in MB a minute."""


class Own(Struct, frozen=True, kw_only=True):
    """What the guard itself costs."""

    rss_bytes: int | None = None
    cpu_percent: float | None = None
    disk_bytes: int | None = None


class GuardInfo(Struct, frozen=True, kw_only=True):
    """The guard that watches, and whether it records."""

    engine: EngineMode = "observe"
    pid: int = 0
    start_id: str = ""
    """One start of a guard: sequence numbers of snapshots and events are its own."""
    recording: bool | None = True
    """None for a run that is over and has no guard: nothing is left to record."""
    not_recording_since_us: int | None = None
    not_recording_why: str = ""
    started_us: int = 0
    own: Own = Own()
    backfill_share: float | None = None
    """Share of older segments already indexed; None when all are."""


class Limit(Struct, frozen=True, kw_only=True):
    """A limit and where it comes from; `in_force` is False for one that binds nothing."""

    name: str
    bytes: int
    in_force: bool = True
    why: str = ""


class Limits(Struct, frozen=True, kw_only=True):
    """The binding limit (the smallest in force) and the thresholds as shares of it."""

    binding: Limit | None = None
    others: tuple[Limit, ...] = ()
    warn: float = 0.60
    intervene: float = 0.75
    emergency: float = 0.90
    soft_share: float = 0.60
    hard_share: float = 0.95
    why: str = ""


class Resource(Struct, frozen=True, kw_only=True):
    """Something with a usage and perhaps a limit: `memory`, `unaccounted`, a tier."""

    name: str
    unit: str = "bytes"
    used: float | None = None
    limit: float | None = None
    share: float | None = None
    """`used / limit`, of the binding limit for memory."""
    level: Level = "normal"
    growth_per_min: dict[str, float | None] = {}
    """Robust slope per window ("60s", "10min", "24h"); None while a window holds too little."""
    time_to_limit_s: tuple[float, float] | None = None
    """Earliest and latest arrival at the limit if the measured slopes go on."""
    at_us: int | None = None
    """When it was measured."""


class Tier(Struct, frozen=True, kw_only=True):
    """One memory tier of the agent, from its own `sample` records."""

    name: str
    entries: int | None = None
    bytes: int | None = None
    unit: str = "bytes"
    used: float | None = None
    """The same as `bytes`: a tier reads like any other resource."""
    tokens: int | None = None
    mean_bytes: float | None = None
    limit: int | None = None
    """Bytes that the agent lets it grow to."""
    time_to_limit_s: tuple[float, float] | None = None
    """Earliest and latest arrival at its own limit."""
    share: float | None = None
    """Of the binding limit (the share cap of R2 is measured in it)."""
    level: Level = "normal"
    growth_per_min: dict[str, float | None] = {}


class Disk(Struct, frozen=True, kw_only=True):
    path: str = ""  # of the run: this is about its file system
    total_bytes: int | None = None
    free_bytes: int | None = None
    free_share: float | None = None
    run_bytes: int | None = None


class Processes(Struct, frozen=True, kw_only=True):
    """The process tree, largest members first."""

    count: int = 0
    orphans: int = 0
    threads: int = 0
    fds: int | None = None
    members: tuple[ProcessInfo, ...] = ()


class Progress(Struct, frozen=True, kw_only=True):
    """What the run achieves."""

    last_step_s: float | None = None
    last_record_us: int | None = None
    experiments: dict[str, int] = {}
    """Count by status: kept, discarded, failed, crashed, aborted, done."""
    per_hour: float | None = None
    best: str = ""
    steps: int = 0


class Source(Struct, frozen=True, kw_only=True):
    """How well we read the run."""

    kind: str = "native"
    position: str = ""
    records: int = 0
    last_lsn: int = 0
    lag_s: float | None = None
    damaged: int = 0
    gaps: int = 0
    unknown: int = 0
    """Records of a kind this version does not know: kept and shown."""
    watch: Literal["events", "polling"] = "events"
    watch_why: str = ""


class Light(Struct, frozen=True, kw_only=True):
    """One of the five answers to "is it fine?"."""

    name: LightName
    word: Word
    figure: str
    meaning: str = ""


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened, as one inert line of text."""

    seq: int
    t_us: int
    kind: str
    """checkpoint.full, checkpoint.incremental, purge, phase, experiment, fault, note, mode, …"""
    text: str
    severity: Severity = "info"
    origin: str = ""


class Snapshot(Struct, frozen=True, kw_only=True):
    """Everything the dashboard shows at one instant."""

    seq: int
    t_us: int
    run: RunInfo
    guard: GuardInfo
    level: Level = "normal"
    lights: tuple[Light, ...] = ()
    limits: Limits = Limits()
    resources: tuple[Resource, ...] = ()
    tiers: tuple[Tier, ...] = ()
    checkpoints: Checkpoints = Checkpoints()
    recovery: Recovery = Recovery()
    interventions: tuple[Intervention, ...] = ()
    commands: tuple[CommandInfo, ...] = ()
    disk: Disk = Disk()
    processes: Processes = Processes()
    progress: Progress = Progress()
    events: tuple[Event, ...] = ()
    event_seq: int = 0
    """Tells whether a viewer missed some: `events` are the newest few."""
    source: Source = Source()
    windows: tuple[str, ...] = ("60s", "10min", "24h")
    """Growth windows of the profile, shortest first."""
    chart_window_s: float = 3600.0
    """Time span that charts show at first."""
    engine: EngineInfo = EngineInfo()
    holds: tuple[Hold, ...] = ()
    suggestion: Suggestion | None = None
    advice: tuple[Advice, ...] = ()
    """What the run's past teaches, most useful first; a handful."""
    since: SinceLeft | None = None
    """None while nobody left."""
    alerts: tuple[Alert, ...] = ()
    """Those that are raised."""
    notify: NotifyInfo | None = None
    """None for a run that has no guard."""
    profile_note: str = ""  # said on screen when the profile shortens windows or cadences

    def resource(self, name: str) -> Resource | None:
        """Return a resource by name."""
        return next((r for r in self.resources if r.name == name), None)
