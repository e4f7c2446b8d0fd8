"""How large the next full checkpoint will be, and whether it has room."""

from __future__ import annotations


def next_bytes(last_bytes: int | None, growth_bytes: float | None) -> int | None:
    """Return what the next one takes, by the last and by growth; None before the first.

    Shrinking is not counted on.
    """
    if last_bytes is None:
        return None
    return last_bytes + max(round(growth_bytes or 0.0), 0)


def has_room(needed_bytes: int | None, free_bytes: int | None, reserve_bytes: int) -> bool | None:
    """Whether two of them fit beside the reserve: one is written before an older one goes."""
    if needed_bytes is None or free_bytes is None:
        return None
    return free_bytes >= 2 * needed_bytes + reserve_bytes
