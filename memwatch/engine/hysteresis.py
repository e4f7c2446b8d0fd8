"""Levels that do not flap: entered when held or urgent, left after a dwell under the exit share.

Each measurement is judged once. A gap in the measurements delays leaving, never entering: that
usage stayed low is not proven by silence. Source: R8; leaks, 7.1.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memwatch.config.policy import Enter, Exit
from memwatch.domain.level import PLANNED, Level, rank
from memwatch.engine.levels import Bounds, reached

_NEVER: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
_NONE = (0, 0, 0, 0)


class LevelState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Level of one resource, and what is under way to another one. Times are of the boot clock."""

    level: Level = "normal"
    since_m_us: int = 0
    over_m_us: tuple[int | None, int | None, int | None, int | None] = _NEVER
    """Since when usage is over the share of warn, intervene, emergency, hard."""
    over_samples: tuple[int, int, int, int] = _NONE
    """So many measurements in a row."""
    under_m_us: int | None = None
    """Since when usage is under the exit share of the level."""
    measured_m_us: int = 0
    """The newest measurement that was judged, while anything is under way."""


class Reading(NamedTuple):
    """One measurement."""

    share: float
    at_m_us: int
    rise_per_s: float = 0.0
    """Growth as a share of the limit; 0 when it does not grow."""
    least: Level = "normal"
    """Level that another witness (pressure) calls for, whatever the share."""
    gap_s: float = 10.0
    """More time than this between two measurements is a gap."""


class Move(NamedTuple):
    """A level that was entered or left."""

    before: Level
    after: Level
    how: str
    """In words: `for 60 s`, `already over the next`, …"""


def judge(
    state: LevelState, reading: Reading, bounds: Bounds, enter: Enter, leave: Exit
) -> tuple[LevelState, Move | None]:
    """Take one measurement."""
    idle = state.level == "normal" and state.over_samples == _NONE and reading.least == "normal"
    if idle and reached(reading.share, bounds.enter) == "normal":
        return state, None
    counted = _counted(state, reading, bounds)
    for place in (3, 2, 1, 0):
        if PLANNED[place] == counted.level:
            break
        how = _entered(counted, reading, bounds, enter, place)
        if how:
            return _moved(counted, reading, PLANNED[place], how)
    return _left(counted, state, reading, bounds, leave)


def _counted(state: LevelState, reading: Reading, bounds: Bounds) -> LevelState:
    since = list(state.over_m_us)
    counts = list(state.over_samples)
    for place, at in enumerate(bounds.enter):
        if at is None or reading.share < at:
            since[place], counts[place] = None, 0
        else:
            counts[place] += 1
            if since[place] is None:
                since[place] = reading.at_m_us
    return LevelState(
        level=state.level,
        since_m_us=state.since_m_us,
        over_m_us=(since[0], since[1], since[2], since[3]),
        over_samples=(counts[0], counts[1], counts[2], counts[3]),
        under_m_us=state.under_m_us,
        measured_m_us=reading.at_m_us,
    )


def _entered(state: LevelState, reading: Reading, bounds: Bounds, enter: Enter, place: int) -> str:
    """Return how a level is entered by this measurement; empty when it is not."""
    if reading.least == PLANNED[place]:
        return "pressure"
    since, at = state.over_m_us[place], bounds.enter[place]
    if since is None or at is None:
        return ""
    hold_s = (enter.warn_s, enter.intervene_s, enter.emergency_s, 0.0)[place]
    held_s = (reading.at_m_us - since) / 1e6
    if held_s >= hold_s:
        return f"for {hold_s:g} s" if hold_s else "at once"
    if state.over_samples[place] >= enter.samples:
        return f"in {enter.samples} samples"
    following = next((share for share in bounds.enter[place + 1 :] if share is not None), None)
    if following is None:
        return ""
    if reading.share >= following:
        return "already over the next"
    return "on its way to the next" if _soon(reading, following, hold_s) else ""


def _soon(reading: Reading, threshold: float, within_s: float) -> bool:
    return reading.rise_per_s > 0 and reading.share + reading.rise_per_s * within_s >= threshold


def _left(
    counted: LevelState, state: LevelState, reading: Reading, bounds: Bounds, leave: Exit
) -> tuple[LevelState, Move | None]:
    """Leave the level when usage stayed under its exit share."""
    if counted.level == "normal":
        return counted, None
    end = bounds.leave[rank(counted.level) - 1]
    low = end is None or reading.share < end
    if not low or rank(reading.least) >= rank(counted.level):
        return replace(counted, under_m_us=None), None
    gap = reading.at_m_us - state.measured_m_us > reading.gap_s * 1e6
    since = reading.at_m_us if state.under_m_us is None or gap else state.under_m_us
    if reading.at_m_us - since < leave.dwell_s * 1e6:
        return replace(counted, under_m_us=since), None
    lower = max(reached(reading.share, _below(bounds, counted.level)), reading.least, key=rank)
    return _moved(counted, reading, lower, f"for {leave.dwell_s:g} s")


def _below(bounds: Bounds, level: Level) -> tuple[float | None, ...]:
    """Return the exit shares of the levels under one."""
    return tuple(
        share if place < rank(level) - 1 else None for place, share in enumerate(bounds.leave)
    )


def _moved(state: LevelState, reading: Reading, to: Level, how: str) -> tuple[LevelState, Move]:
    after = replace(state, level=to, since_m_us=reading.at_m_us, under_m_us=None)
    return after, Move(state.level, to, how)
