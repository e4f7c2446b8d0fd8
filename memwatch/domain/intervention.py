"""What was done about memory, and what it did (R13). Part of the snapshot."""

from __future__ import annotations

from msgspec import Struct


class Intervention(Struct, frozen=True, kw_only=True):
    """A purge or checkpoint that was done, with usage before and after as we measured it."""

    id: str
    action: str
    tier: str = ""
    origin: str = ""
    """agent, engine, operator."""
    by: str = ""
    """The viewer that asked, where one did."""
    why: str = ""
    state: str = "done"
    asked_at_us: int = 0
    done_at_us: int | None = None
    duration_s: float | None = None
    before: float | None = None
    """Median bytes of the 30 s before: the tier's for a purge of a tier, else the tree's."""
    after_10s: float | None = None
    after_10min: float | None = None
    freed_bytes: float | None = None
    freed_share: float | None = None
    rebound_s: float | None = None
    """Time until usage was back where it had been, when that was seen."""
    claimed: int | None = None
    """What the agent itself said it freed (or wrote, for a checkpoint); the mean of a series."""
    count: int = 1
    """More than one for a series: purges by retention that follow each other in one tier."""
    span_s: float | None = None
    """From the first of a series to its last; before is before the first, after behind the last."""
    overlaps: bool = False
    """Another purge of the tier falls into what was measured: nothing is said of what it freed."""
