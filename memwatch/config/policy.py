"""The policy: when the guard does what (R8 to R10). Every number is a default.

Shares are of the binding limit, times in seconds. A phase has a policy of its own: the same one
with what `phases.<name>` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from memwatch.domain.level import EngineMode
from memwatch.domain.policy import Keep


class Thresholds(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares at which a level is entered (R8), and the rigid one (R9)."""

    warn: float = 0.60
    intervene: float = 0.75
    emergency: float = 0.90
    hard: float = 0.95


class Exit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares under which a level is left, once usage stayed there for `dwell_s`."""

    warn: float = 0.55
    intervene: float = 0.70
    emergency: float = 0.60
    """After an emergency the next experiment starts only under warn (R8)."""
    dwell_s: float = 300.0


class Enter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long usage must be over a threshold before its level is entered.

    A level is entered at once when usage is already over the next one, or is on its way there
    faster than this time.
    """

    warn_s: float = 60.0
    intervene_s: float = 60.0
    emergency_s: float = 0.0
    samples: int = 3
    """So many samples over it do as well, however short their time."""


class Forecast(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time to the limit under which the soft limit is lowered by `points`."""

    under_s: float
    points: float


class SoftLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The advisory limit (R9): it carries the actions of warn and moves with growth."""

    start: float | None = None
    """None: starts at `thresholds.warn`."""
    growth_bytes_per_min: int = 50_000_000
    growth_share_per_min: float | None = None
    """For small limits: growth over this share of the limit a minute counts as well."""
    window_s: float = 600.0
    points: float = 0.10
    """It is lowered by so much while growth is above that."""
    max_above: float = 0.0
    """How far stable memory may lift it over its start."""
    floor: float = 0.20
    """It never goes under this share."""
    forecast: tuple[Forecast, ...] = (
        Forecast(under_s=14_400, points=0.05),
        Forecast(under_s=3_600, points=0.10),
        Forecast(under_s=900, points=0.15),
    )
    """Beyond R9; an empty list leaves the literal rule."""
    step_s: float = 600.0
    """At most one step in this time, up or down; the first one is at once."""
    relax_share: float = 0.25
    """It rises again once growth stayed under this share of what lowered it …"""
    relax_windows: int = 2
    """… for so many times `window_s`."""


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One step of a plan."""

    op: str
    args: dict[str, Any] = {}
    patience_s: float = 30.0
    """The plan goes on without an answer after this time."""


CHECKPOINT: Final = Action(op="checkpoint", args={"kind": "incremental"})
PURGE_EXPIRED: Final = Action(op="purge", args={"how": "expired"})
ABORT: Final = Action(op="abort_experiment", args={"save": "best_effort"}, patience_s=15.0)
RECLAIM_ALL: Final = (Action(op="purge", args={"how": "reclaim"}), Action(op="reclaim"))
"""Memory is reclaimed fully (R8)."""


class LevelRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done about a level."""

    steps: tuple[Action, ...] = ()
    escalate: tuple[Action, ...] = ()
    """What is tried next when the steps had no effect."""
    cooldown_s: float = 600.0
    """Before the same is done again while the level lasts."""


def _warn() -> LevelRule:
    return LevelRule(
        steps=(CHECKPOINT, PURGE_EXPIRED), escalate=(Action(op="purge"), Action(op="reclaim"))
    )


def _intervene() -> LevelRule:
    return LevelRule(
        steps=(
            Action(op="pause", patience_s=10.0),
            Action(op="checkpoint", args={"kind": "experiment"}, patience_s=60.0),
            Action(op="purge", args={"tier": "history", "how": "compress"}),
        ),
        escalate=RECLAIM_ALL,
    )


def _emergency() -> LevelRule:
    return LevelRule(
        steps=(ABORT, Action(op="pause", patience_s=5.0), *RECLAIM_ALL),
        cooldown_s=120.0,
    )


def _hard() -> LevelRule:
    return LevelRule(
        steps=(Action(op="read_only", patience_s=5.0), ABORT, *RECLAIM_ALL),
        cooldown_s=300.0,
    )


class Levels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Plans by level. The hard limit's is left by a person alone (R9)."""

    warn: LevelRule = field(default_factory=_warn)
    intervene: LevelRule = field(default_factory=_intervene)
    emergency: LevelRule = field(default_factory=_emergency)
    hard: LevelRule = field(default_factory=_hard)


class Outlook(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Acting on time, not level: a checkpoint while it fits and while there is time."""

    steps: tuple[Action, ...] = (CHECKPOINT, PURGE_EXPIRED)
    """What is done then; an empty list: nothing."""
    checkpoint_factor: float = 2.0
    """Times the p95 of past checkpoint durations …"""
    sample_factor: float = 3.0
    """… plus so many sample periods …"""
    margin_s: float = 30.0
    """… plus this: with less time to the limit, a checkpoint is taken."""
    assumed_s: float = 300.0
    """Instead of all three until a checkpoint was measured."""
    headroom_factor: float = 1.2
    """With less room than so many times the memory that a checkpoint takes, likewise."""
    reserve_share: float = 0.25
    """That memory, as a share of usage, until it was measured. Only judged while usage grows."""
    apart_s: float = 60.0
    """One in half of the time that is left, and never two nearer than this."""


class CrashBudget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a crash may cost at most (R12): over it a checkpoint is taken that brings it under."""

    recover_s: float | None = None
    """Seconds until it is back, by the estimate; None: no such limit."""
    work_s: float | None = None
    """Seconds of work that no checkpoint holds."""
    apart_s: float = 120.0
    """Two of its checkpoints are never nearer than this."""


class Measure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a plan helped."""

    after_s: float = 15.0
    """From its last step to the measurement."""
    enough_share: float = 0.05
    """Of the limit: less than so much freed, and the level not left, is no effect."""
    falling_share: float = 0.01
    """Usage of the last 10 s that lies so far below that of the last 60 s is falling: it
    suppresses what is not urgent."""


class Pause(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The engine's pause."""

    lease_s: float = 120.0
    """It ends by itself so long after the guard died."""
    longest_s: float = 1800.0
    """A pause that did not bring usage under the exit level by then does not help."""
    relief: tuple[Action, ...] = RECLAIM_ALL
    """What is tried once more then."""
    then: Literal["release", "abort", "keep"] = "release"
    """What is done when that did not help either; it is always shouted. After an emergency the
    pause stays whatever is said here: the next experiment starts only under warn (R8)."""


class Breaker(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Stops what does not help, loudly."""

    after: int = 2
    """Plans of a level in a row without effect."""


class PressureRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """PSI as second witness, in percent of time; only the agent's own cgroup raises a level."""

    use: bool = True
    some: float = 10.0
    """`some` of the last 10 s and 60 s over it: one level up, from warn."""
    full_intervene: float = 10.0
    full_emergency: float = 40.0
    hold_s: float = 10.0


class ResourceRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Levels and actions for a resource other than memory, as shares of its own limit."""

    warn: float | None = None
    intervene: float | None = None
    emergency: float | None = None
    exit_points: float = 0.05
    levels: Levels = Levels(
        warn=LevelRule(), intervene=LevelRule(), emergency=LevelRule(), hard=LevelRule()
    )


class PhasePolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a phase may have of its own (R10): all but the engine's authority."""

    limit_bytes: int | None = None
    """The policy's own limit; the smallest in force binds."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    exit: Exit = field(default_factory=Exit)
    enter: Enter = field(default_factory=Enter)
    soft: SoftLimit = field(default_factory=SoftLimit)
    levels: Levels = field(default_factory=Levels)
    outlook: Outlook = field(default_factory=Outlook)
    budget: CrashBudget = field(default_factory=CrashBudget)
    measure: Measure = field(default_factory=Measure)
    pause: Pause = field(default_factory=Pause)
    breaker: Breaker = field(default_factory=Breaker)
    pressure: PressureRule = field(default_factory=PressureRule)
    retention: dict[str, Keep] = {}
    """By tier; the agent is asked to keep so (`retain`). Mostly said of a phase."""
    resources: dict[str, ResourceRule] = {}
    """By name: `tier:workspace`, `unaccounted`, `disk`, …"""
    ask_s: float = 600.0
    """A proposed plan waits so long for a person."""
    disk_reserve_bytes: int = 4_000_000
    """Kept for guard.wal, so that a full disk does not forbid acting."""


class Policy(PhasePolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of it."""

    mode: EngineMode = "shadow"
    """Of the engine, until a person says otherwise."""
    allow: tuple[str, ...] = (
        "checkpoint",
        "purge",
        "reclaim",
        "retain",
        "pause",
        "read_only",
        "abort_experiment",
    )
    """What the engine may do by itself; `end_run` only by a policy that says so."""


PHASES: Final[Mapping[str, Mapping[str, Any]]] = {
    "verification": {
        "levels": {
            "intervene": {
                "steps": [
                    {"op": "pause", "patience_s": 10.0},
                    {"op": "checkpoint", "args": {"kind": "experiment"}, "patience_s": 60.0},
                    {"op": "purge", "args": {"tier": "history", "how": "reclaim"}},
                ]
            }
        }
    }
}
"""What phases have of their own unless a file says otherwise of the same key. R8: in verification
old history goes to disk rather than into a compressed copy in memory."""
