"""What was measured: the process tree, the tiers, and a series cut into columns."""

from __future__ import annotations

from msgspec import Struct

HELD_S = 75.0
"""An agent samples on change and at least each minute: its last sample holds this long, and a
shorter silence is none."""


class ProcessInfo(Struct, frozen=True, kw_only=True):
    """One process of the watched tree."""

    pid: int
    ppid: int
    start_ticks: int
    name: str
    """Executable or script name, inert text."""
    rss_bytes: int
    swap_bytes: int = 0
    threads: int = 1
    age_s: float = 0.0
    orphan: bool = False
    """Its parent left the tree (it was re-parented) while it lives on."""


class TreeSample(Struct, frozen=True, kw_only=True):
    """One look at the agent's process and all descendants ever seen.

    Usage is resident plus swapped bytes, shared pages counted in each process (a plain sum
    over-counts them). Source: metrics, requirement R11.
    """

    t_us: int
    m_us: int
    alive: bool
    """The agent's own process is there, with the identity it registered."""
    rss_bytes: int = 0
    swap_bytes: int = 0
    processes: int = 0
    orphans: int = 0
    threads: int = 0
    fds: int | None = None
    """Open descriptors of the agent's own process; None when not permitted."""
    members: tuple[ProcessInfo, ...] = ()
    """The largest few, by resident + swapped bytes."""

    @property
    def used_bytes(self) -> int:
        """Resident plus swapped bytes of the tree."""
        return self.rss_bytes + self.swap_bytes


class TierSample(Struct, frozen=True, kw_only=True):
    """What the agent says about one tier; members not known are None, never 0."""

    entries: int | None = None
    bytes: int | None = None
    tokens: int | None = None
    limit: int | None = None


class DiskSample(Struct, frozen=True, kw_only=True):
    """The file system that holds the run."""

    t_us: int
    total_bytes: int
    free_bytes: int
    """Free for us, not for root."""
    free_inodes: int | None = None
    run_bytes: int | None = None
    """Log, checkpoints and blobs of the run."""


class Column(Struct, frozen=True, array_like=True):
    """One column of a chart: what a series did between two instants.

    A mean could hide the peak that mattered, so there is none. `gap` says that nothing was
    recorded there; `min`, `max` and `last` are None then.
    """

    min: float | None
    max: float | None
    last: float | None
    gap: bool = False


GAP = Column(None, None, None, gap=True)
