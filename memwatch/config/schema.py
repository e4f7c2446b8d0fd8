"""Settings of a profile: what one kind of agent looks like, and how it is watched.

Every number is a default that a profile file may change; none is a constant elsewhere in code.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from memwatch.domain.policy import KEEP, Cadence, Keep

MB = 1_000_000


class Windows(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Time spans of figures and charts, in seconds."""

    growth_s: tuple[float, float, float] = (60.0, 600.0, 86400.0)
    chart_s: float = 3600.0
    before_s: float = 30.0
    """Of usage before an intervention (metrics, "Interventions")."""
    settle_s: float = 10.0
    """So long after it the first look at what it did."""
    late_s: float = 600.0
    """The second look, at what freed its memory late."""
    rebound_s: float = 3600.0
    """So long it is watched whether usage comes back."""


class Lights(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the lights beside MEMORY change their word."""

    disk_warn_bytes: int = 10_000 * MB
    disk_act_bytes: int = 3_000 * MB
    disk_critical_bytes: int = 1_000 * MB
    processes_warn: int = 64
    processes_act: int = 256
    orphans_watch: int = 1
    step_watch_s: float = 120.0
    step_warn_s: float = 360.0
    """Six minutes without progress: the silence people take for a stall."""
    checkpoint_grace: float = 1.5
    """A checkpoint is overdue at this multiple of its cadence."""


class Probe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often the process tree and the disk are measured, in seconds."""

    period_s: float = 2.0
    disk_s: float = 10.0


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent of one kind looks like."""

    name: str
    about: str = ""
    note: str = ""
    """One line for the screen when windows or cadences are not the usual ones."""
    tiers: tuple[str, ...] = ("workspace", "recent", "verified", "history")
    memory_limit_bytes: int | None = None
    """Limit of the policy for the process tree; None leaves the cgroup's or the host's."""
    share_cap: float = 0.30
    retention: dict[str, Keep] = field(default_factory=lambda: dict(KEEP))
    """By tier; a file changes what it names, of the tiers that it names."""
    checkpoints: Cadence = Cadence()
    windows: Windows = field(default_factory=Windows)
    lights: Lights = field(default_factory=Lights)
    probe: Probe = field(default_factory=Probe)
    policy: dict[str, Any] = {}
    """What agents of this kind want of the policy (`config.policy`); checked where it is loaded."""
    file: str = field(default="", name="<file>")
    """Where it was read from; no setting."""
