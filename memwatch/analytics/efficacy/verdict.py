"""Whether a change of usage is an effect, nothing, or the opposite of what was meant."""

from __future__ import annotations

from memwatch.analytics.efficacy.window import Usage
from memwatch.domain.intervention import Verdict

LEAST_SHARE = 0.02
"""A change under this share of what was used before is no effect."""
_GROWTH_ALLOWED = 1.25
"""Usage that rose by no more than it was rising anyway is nobody's fault."""


def least_change(before: Usage, floor: float = 0.0) -> float:
    """Return the smallest change that is told from noise.

    `floor` is for a resource whose own size says nothing: what is left between two others.
    """
    return max(LEAST_SHARE * abs(before.median), before.noise, floor)


def verdict_of(before: Usage, after: float, elapsed_s: float, floor: float = 0.0) -> Verdict:
    """Judge usage after an intervention against usage before it, `elapsed_s` apart."""
    freed, least = before.median - after, least_change(before, floor)
    if freed > 0 and freed >= least:
        return "effective"
    explained = _GROWTH_ALLOWED * max(before.slope_per_s, 0.0) * elapsed_s
    return "worse" if freed < 0 and -freed >= max(least, explained) else "none"
