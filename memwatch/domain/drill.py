"""A recovery that was done for practice, as it is kept and shown: `memwatch drill` (R12)."""

from __future__ import annotations

from msgspec import Struct


class DrillTerm(Struct, frozen=True):
    """A part of the time that a drill took: load, read, decode, replay."""

    name: str
    seconds: float
    bytes: int


class Drill(Struct, frozen=True, kw_only=True):
    """The newest recovery that was done for practice: `memwatch drill`."""

    t_us: int
    """When it was done."""
    total_s: float
    terms: tuple[DrillTerm, ...] = ()
    bytes: int = 0
    """Read from disk."""
    memory_bytes: int = 0
    """Most that its process held."""
    cold_cache: bool = False
    """The files came from the disk, not from the system's memory."""
    matches: bool | None = None
    """Whether the state had the hash that the agent logged; None where it logged none."""
    lossy: bool = False
    """Whether anything was lost."""
