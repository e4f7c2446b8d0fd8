"""Whether a change of usage is an effect, nothing, or the opposite of what was meant."""

from __future__ import annotations

from memwatch.analytics.efficacy.window import Usage
from memwatch.domain.intervention import Verdict

LEAST_SHARE = 0.02
"""A change under this share of what was used before is no effect."""
_DRIFT_ALLOWED = 1.25
"""Usage that rose by no more than it was rising anyway is nobody's fault, and that fell by no more
than it was falling is nobody's merit."""


def least_change(before: Usage, floor: float = 0.0) -> float:
    """Return the smallest change that is told from noise.

    `floor` is for a resource whose own size says nothing: what is left between two others.
    """
    return max(LEAST_SHARE * abs(before.level), before.noise, floor)


def verdict_of(before: Usage, after: float, elapsed_s: float, floor: float = 0.0) -> Verdict:
    """Judge usage after an intervention against usage before it, `elapsed_s` apart."""
    freed, least = before.level - after, least_change(before, floor)
    drift = _DRIFT_ALLOWED * before.slope_per_s * elapsed_s
    falling = max(-drift, 0.0) if before.came_to is not None else 0.0
    if freed > 0 and freed >= max(least, falling):
        return "effective"
    return "worse" if freed < 0 and -freed >= max(least, drift) else "none"
