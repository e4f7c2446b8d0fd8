"""How much memory a restore needs at its peak, and whether there is as much. Source: metrics."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from memwatch.analytics.recovery.work import Work, work_of
from memwatch.domain.recovery import PastRecovery
from memwatch.domain.units import bytes_text

_BASE_BYTES = 25_000_000
"""Of a process that recovers nothing."""
_TIMES_STATE = 2.0
"""Of what the tiers hold, where no drill told: values as text, and one of them decoded."""
_DRILLS = 5


class Need(NamedTuple):
    """What a restore needs."""

    bytes: int
    fits: bool | None
    """None where no limit is known."""
    how: str


def memory_need(
    work: Work,
    past: Sequence[PastRecovery],
    tier_bytes: int | None,
    limit: tuple[str, int] | None,
) -> Need | None:
    """Return the peak of a restore against the binding limit; None where nothing tells it.

    `past` is newest first; `tier_bytes` is what the tiers hold now; `limit` is the name and the
    bytes of the limit that binds the agent, of the machine's own free memory too.
    """
    found = _drilled(work, past) or _assumed(tier_bytes)
    if found is None:
        return None
    need, how = found
    if limit is None:
        return Need(need, None, how)
    name, most = limit
    return Need(need, need <= most, f"{how}; {name} {bytes_text(most)}")


def _drilled(work: Work, past: Sequence[PastRecovery]) -> tuple[int, str] | None:
    """Scale what drills held by what there is to load now."""
    drills = [one for one in past if one.kind == "drill" and one.memory_bytes > 0][:_DRILLS]
    if not drills:
        return None
    found = median(_scaled(work, one) for one in drills)
    count = f"{len(drills)} drill{'' if len(drills) == 1 else 's'}"
    return round(found), f"by {count}, scaled to {bytes_text(_stored(work))} to load"


def _scaled(work: Work, drill: PastRecovery) -> float:
    then, now = _stored(work_of(drill.terms)), _stored(work)
    above = max(drill.memory_bytes - _BASE_BYTES, 0)
    return drill.memory_bytes - above + above * (now / then if then else 1.0)


def _stored(work: Work) -> int:
    return work.full_bytes + work.blob_bytes + work.read_bytes


def _assumed(tier_bytes: int | None) -> tuple[int, str] | None:
    if tier_bytes is None:
        return None
    how = f"assumed: {_TIMES_STATE:.0f} × the tiers' {bytes_text(tier_bytes)}"
    return round(_BASE_BYTES + _TIMES_STATE * tier_bytes), how
