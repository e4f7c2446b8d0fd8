"""Share of the binding limit -> level (requirements R8, R9)."""

from __future__ import annotations

from memwatch.config.policy import Thresholds
from memwatch.domain.level import Level


def level_of(share: float | None, thresholds: Thresholds) -> Level:
    """Return the level at a share of the limit; `normal` when nothing is known.

    >>> [level_of(s, Thresholds()) for s in (None, 0.59, 0.60, 0.75, 0.90, 0.95)]
    ['normal', 'normal', 'warn', 'intervene', 'emergency', 'hard']
    """
    if share is None:
        return "normal"
    steps: tuple[tuple[float, Level], ...] = (
        (thresholds.hard, "hard"),
        (thresholds.emergency, "emergency"),
        (thresholds.intervene, "intervene"),
        (thresholds.warn, "warn"),
    )
    return next((level for threshold, level in steps if share >= threshold), "normal")
