"""Whether usage falls or grows, apart from how high it is. Source: leaks, 7.5 (as in oomd)."""

from __future__ import annotations

from memwatch.config.policy import Measure
from memwatch.engine.facts import ResourceFacts


def falling(resource: ResourceFacts, rule: Measure) -> bool:
    """Say whether the last 10 s lie well below the last 60 s.

    >>> facts = ResourceFacts(name="memory", limit=1000, mean_10s=480, mean_60s=500)
    >>> falling(facts, Measure()), falling(facts, Measure(falling_share=0.05))
    (True, False)
    """
    recent, longer, limit = resource.mean_10s, resource.mean_60s, resource.limit
    if recent is None or longer is None or not limit:
        return False
    return longer - recent > rule.falling_share * limit


def growing(resource: ResourceFacts) -> bool:
    """Say whether usage rises now, by the shortest window that knows."""
    recent = resource.growth_recent_per_min
    pace = resource.growth_per_min if recent is None else recent
    return pace is not None and pace > 0
