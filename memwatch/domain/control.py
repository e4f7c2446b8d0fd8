"""What the guard does and may do, what holds the agent, and what happened meanwhile.

Parts of the snapshot; names are the contract for scripts, members may be added.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from memwatch.domain.level import EngineMode, Level
from memwatch.domain.plan import Plan


class Pressure(Struct, frozen=True, kw_only=True):
    """Pressure stall information (PSI), in percent of time; None where it is not told.

    `scope` says whose: only a group of the agent's own may raise a level.
    """

    scope: Literal["cgroup", "system"]
    some_avg10: float
    some_avg60: float
    full_avg10: float
    events: int = 0
    """Sum of `max` and `oom` in memory.events of the group; it only rises."""


class Hold(Struct, frozen=True, kw_only=True):
    """A hold on the agent, as the agent itself says that it is in force, or as we keep it."""

    id: str
    op: str
    """pause, read_only."""
    owner: str
    """`engine`, `ctl`, or a viewer."""
    since_us: int = 0
    ends_us: int | None = None
    """Wall clock; None: until it is released."""
    reason: str = ""
    effective: bool = False
    """The agent says so."""
    drained: bool = False
    """No experiment is in progress any more."""


class EngineInfo(Struct, frozen=True, kw_only=True):
    """The threshold engine: whether it acts, what it is at, why it waits."""

    mode: EngineMode = "observe"
    allow: tuple[str, ...] = ()
    """Operations that it may use by itself."""
    policy_allow: tuple[str, ...] | None = None
    """Those that the policy lets it use, whatever a person said; None: not told."""
    until_us: int | None = None
    """Wall clock until which the mode is in force; None: until the run ends."""
    by: str = ""
    """Who set the mode: a viewer, `policy`, `default`."""
    asked: bool = False
    """A person was asked what the engine may do, for this run."""
    will: str = ""
    """`WILL ACT (warn, intervene, emergency)` or `WILL NOT ACT (shadow)`."""
    policy: str = ""
    """Where the policy in force comes from."""
    policy_error: str = ""
    """Why a changed policy was not taken over; the one before stays."""
    epoch: int = 0
    plan: Plan | None = None
    """The one in flight, or proposed and waiting for a person."""
    last: Plan | None = None
    """The one before."""
    waiting: str = ""
    """Why nothing is done now though a level would call for it: cool-down, falling, breaker."""
    open_breakers: tuple[str, ...] = ()
    """Levels whose plans were without effect: they are not repeated until a person resets. Of
    memory `warn`, …, of another resource with its name: `tier:recent warn`."""
    soft_why: str = ""
    """Which rule moved the soft limit, when, and what brings it back."""
    pressure: Pressure | None = None
    missing: dict[str, str] = {}
    """Operations of the policy that this agent lacks, and why."""
    stop_file: str = ""
    """The file that keeps all engines of this user from acting, while it exists."""


class Suggestion(Struct, frozen=True, kw_only=True):
    """What a person could do now, and what it gained before in this run."""

    op: str
    args: dict[str, Any] = {}
    text: str = ""
    """One line: "purge workspace, expired first: ~400 MB, back in ~6 min"."""
    gain_bytes: float | None = None
    back_s: float | None = None
    """Time until what it freed was used again."""
    basis: str = ""
    """How often and when that was measured."""


class Alert(Struct, frozen=True, kw_only=True):
    """Something that a person should know, raised once and cleared once."""

    key: str
    """memory, silent, crashed, recording, breaker, disk, …"""
    severity: Literal["notice", "warning", "error"]
    text: str
    raised_us: int
    bell: bool = False
    """Viewers ring for it, once: the bell is among the configured channels."""


class ChannelInfo(Struct, frozen=True, kw_only=True):
    """One way to tell people who do not look: whether it works. Never its address."""

    name: str
    """Its kind, with a number behind it where there are several."""
    state: Literal["", "sent", "failed", "held"] = ""
    """What became of the newest notice; `held` waits for the end of the quiet hours."""
    at_us: int | None = None
    detail: str = ""
    waiting: int = 0
    """Notices that are still to be sent."""
    dropped: int = 0
    """Notices that gave way to newer ones, unsent."""
    tested_us: int | None = None
    """When a test notice last got through."""


class NotifyInfo(Struct, frozen=True, kw_only=True):
    """How people are told: the channels, and the sign of life that the guard sends out."""

    channels: tuple[ChannelInfo, ...] = ()
    heartbeat: ChannelInfo | None = None
    """None: nobody would notice if this guard died."""
    error: str = ""
    """Why nothing of config.yaml is followed: nobody is told of anything."""


class SinceLeft(Struct, frozen=True, kw_only=True):
    """What happened since the last viewer closed."""

    from_us: int
    """When it closed; the begin of the guard's record where none was there before."""
    first: bool = False
    """Nobody ever looked."""
    highest: Level = "normal"
    levels: dict[str, int] = {}
    """How often each level was entered."""
    experiments: dict[str, int] = {}
    """Ended meanwhile, by status."""
    best: str = ""
    checkpoints: int = 0
    purges: int = 0
    freed_bytes: float = 0
    """By purges, as far as it was measured."""
    plans: int = 0
    holds: int = 0
    lost: int = 0
    """Gaps, damage and recoveries with a loss."""
    starts: int = 0
    """The agent began again so often."""
    alerts: int = 0
    lines: tuple[str, ...] = ()
    """The same in words, most important first."""
