"""Levels of pressure, and the words for what a guard may do about them (R8, contracts)."""

from __future__ import annotations

from typing import Final, Literal, get_args

Level = Literal["normal", "warn", "intervene", "emergency", "hard"]
"""`hard` is the rigid limit behind the three levels of R8 (R9)."""

LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From low to high."""
PLANNED: Final = LEVELS[1:]
"""Levels that something is done about, from low to high."""

EngineMode = Literal["off", "observe", "shadow", "ask", "act"]
"""off: nothing is judged · observe: levels only · shadow: plans are made and not sent · ask: a
person lets each plan go · act: plans are carried out."""
ENGINE_MODES: Final[tuple[EngineMode, ...]] = get_args(EngineMode)
ACTING: Final[tuple[EngineMode, ...]] = ("ask", "act")
"""What is planned may be sent; only for a time, if a person says so."""
PLANNING: Final[tuple[EngineMode, ...]] = ("shadow", *ACTING)
"""Plans are made."""


def rank(level: Level) -> int:
    """Return the place of a level, 0 for `normal`.

    >>> rank("warn") < rank("hard")
    True
    """
    return LEVELS.index(level)
