"""What an agent and those who watch it go by alike; every number is a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Cadence(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a checkpoint is due, whichever comes first (R5)."""

    incremental_experiments: int = 3
    """Finished since any checkpoint; aborted ones do not count."""
    incremental_s: float = 900.0
    full_experiments: int = 20
    """Finished since the newest full one."""
    full_s: float = 7200.0
    chain_bytes: int = 50_000_000
    """Of the increments since the newest full one; beyond it a full one is due at once."""


class Keep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tier keeps (R1, R2); None is without limit. Who uses one checks its figures."""

    count: int | None = None
    """Entries."""
    experiments: int | None = None
    """Entries of the last so many experiments stay complete."""
    ttl_s: float | None = None
    bytes: int | None = None
    """Most bytes in memory; over it the oldest leave memory. None: the share cap."""
    delete: bool = True
    """False: what retention or a purge takes is only moved to disk (`verified`)."""
    intermediate: bool = False
    """Its entries are the first to go once the phase they were put in is over (R3)."""
    importance: float = 0.5
    """For recovery, from 0 to 1: purges weigh it."""
    demote_to: str | None = None
    """Tier that gets a summary of each experiment that leaves."""


KEEP: Final[Mapping[str, Keep]] = {
    "workspace": Keep(count=200, intermediate=True, importance=0.3),
    "recent": Keep(experiments=5, demote_to="history", importance=0.7),
    "verified": Keep(delete=False, importance=1.0),
    "history": Keep(experiments=20, importance=0.5),
}
"""The four tiers of an experiment engine, and what they keep unless told otherwise (R1)."""
