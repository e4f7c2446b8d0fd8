"""What an agent and those who watch it go by alike; every number is a default."""

from __future__ import annotations

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
