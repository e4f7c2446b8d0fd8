"""A report as values: names are the contract of `memwatch report --json`; members may be added.

Times are wall clock in microseconds, durations seconds, sizes bytes. None is "nobody measured".
All text that a log said is inert.
"""

from __future__ import annotations

from msgspec import Struct

from memwatch.domain.checkpoints import Bloat, Checkpoint, CheckpointStats
from memwatch.domain.intervention import Advice
from memwatch.domain.recovery import PastRecovery, Span


class Line(Struct, frozen=True):
    """One of the ten."""

    label: str
    text: str


class Seen(Struct, frozen=True, kw_only=True):
    """The time that is told of, and how much of it was seen."""

    from_us: int
    until_us: int
    seconds: float
    agent_s: float
    """The agent's log covers so much of it: its process was there."""
    watched_s: float
    """The guard was there."""
    begun_us: int = 0
    """When the run's present start began, where that is earlier: not all of it is told of."""


class Figures(Struct, frozen=True, kw_only=True):
    """One resource over that time."""

    name: str
    first: float | None = None
    peak: float | None = None
    peak_us: int = 0
    last: float | None = None
    limit: float | None = None
    limit_name: str = ""
    per_min: float | None = None
    """Robust growth over it, its last day at most."""


class Stay(Struct, frozen=True, kw_only=True):
    """A level, or a mode: how long, how often."""

    name: str
    seconds: float
    times: int


class PlanRow(Struct, frozen=True, kw_only=True):
    """Plans that were called for by one rule."""

    rule: str
    level: str
    plans: int = 0
    dry: int = 0
    effective: int = 0
    without_effect: int = 0
    worse: int = 0
    not_measured: int = 0
    only_saved: int = 0
    """Meant to free nothing: checkpoints in time, for a budget."""
    freed_bytes: float | None = None
    """Sum over those that were measured; negative where usage rose."""
    failed_steps: int = 0


class DeedRow(Struct, frozen=True, kw_only=True):
    """Interventions of one kind, as we measured them."""

    what: str
    by: str
    times: int
    effective: int = 0
    without_effect: int = 0
    worse: int = 0
    not_measured: int = 0
    resource: str = ""
    freed_bytes: float | None = None
    """Sum over those that were measured."""
    freed_median: float | None = None
    freed_share: float | None = None
    """Median."""
    memory_median: float | None = None
    """What they freed of the process tree, where `resource` is another one."""
    took_s: float | None = None
    pause_s: float = 0.0
    back_s: float | None = None
    """Median of those that came back."""
    came_back: int = 0
    held: int = 0
    claimed_bytes: int | None = None
    differs: int = 0
    experiments_before_s: float | None = None
    """Median of the three experiments before each, and of the three after."""
    experiments_after_s: float | None = None


class ClaimRow(Struct, frozen=True, kw_only=True):
    """Purges of a tier by one cause, as the agent itself tells them."""

    tier: str
    cause: str
    times: int
    entries: int
    freed_bytes: int


class Estimate(Struct, frozen=True, kw_only=True):
    """What a crash would have cost: the worst moment of a span of time."""

    t_us: int
    rto_s: Span
    grade: str = ""


class Start(Struct, frozen=True, kw_only=True):
    """A start of the agent after the first one, or its end without a word."""

    t_us: int
    what: str
    experiment: int | None = None
    """In progress when the process ended."""
    redo_s: float | None = None
    """Work on it until then: done again."""
    down_s: float | None = None
    recovered: str = ""
    lost: tuple[str, ...] = ()


class AlertRow(Struct, frozen=True, kw_only=True):
    """An alert, and when it was over."""

    t_us: int
    key: str
    severity: str
    text: str
    lasted_s: float | None = None
    """None: it stands, or ended with the run."""
    stands: bool = False


class Gap(Struct, frozen=True, kw_only=True):
    """A time in which nobody watched."""

    from_us: int
    until_us: int
    why: str


class Experiments(Struct, frozen=True, kw_only=True):
    """What the run achieved."""

    by_status: dict[str, int] = {}
    per_hour: float | None = None
    best: str = ""
    mean_s: float | None = None
    """Of those whose end lies in the log."""


class Saves(Struct, frozen=True, kw_only=True):
    """Checkpoints over that time."""

    by_kind: dict[str, int] = {}
    failed: int = 0
    counted: int = 0
    """More than those in the log where the agent dropped older log, but the guard had counted."""
    stats: CheckpointStats = CheckpointStats()
    bloat: Bloat = Bloat()
    rows: tuple[Checkpoint, ...] = ()
    """Of a foreign store: those that lie there, newest first."""
    deleted: int = 0


class Report(Struct, frozen=True, kw_only=True):
    """All of it."""

    run: str
    path: str
    agent: str
    host: str
    source: str
    state: str
    end: str = ""
    span: Seen
    lines: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()
    """What the report cannot know, and why."""
    modes: tuple[Stay, ...] = ()
    """Of the engine."""
    levels: tuple[Stay, ...] = ()
    holds: tuple[Stay, ...] = ()
    """The agent paused, read-only, draining."""
    memory: Figures | None = None
    resources: tuple[Figures, ...] = ()
    """Unaccounted and tiers."""
    plans: tuple[PlanRow, ...] = ()
    deeds: tuple[DeedRow, ...] = ()
    """Most bytes freed first."""
    claims: tuple[ClaimRow, ...] = ()
    requests: dict[str, int] = {}
    """Of people, by operation and what became of them."""
    experiments: Experiments = Experiments()
    checkpoints: Saves = Saves()
    rto_s: Span | None = None
    """At the end."""
    grade: str = ""
    over_budget: tuple[str, ...] = ()
    """What a crash would cost at the end beyond what the policy allows, in words."""
    estimates: tuple[Estimate, ...] = ()
    recoveries: tuple[PastRecovery, ...] = ()
    """Drills and restarts, oldest first."""
    starts: tuple[Start, ...] = ()
    damage: dict[str, int] = {}
    errors: dict[str, int] = {}
    """What the agent said of errors, most frequent first."""
    alerts: tuple[AlertRow, ...] = ()
    alert_count: int = 0
    gaps: tuple[Gap, ...] = ()
    advice: tuple[Advice, ...] = ()
