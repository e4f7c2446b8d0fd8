"""Pressure stall information as a second witness: it raises a level that usage has already given.

Only a group of the agent's own counts, and only from warn up: a group that is full of page cache
reclaims, stalls a little and counts events in perfect health. Source: leaks, 7.6.
"""

from __future__ import annotations

from msgspec import Struct

from memwatch.config.policy import PressureRule
from memwatch.domain.control import Pressure
from memwatch.domain.level import Level, rank


class PressureState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Since when pressure is over its thresholds, by the boot clock; None while it is not."""

    some_m_us: int | None = None
    full_intervene_m_us: int | None = None
    full_emergency_m_us: int | None = None
    events: int | None = None
    """As counted last; None before the first look."""
    events_m_us: int | None = None
    """When it rose last."""


def watch(
    state: PressureState, pressure: Pressure | None, rule: PressureRule, m_us: int
) -> PressureState:
    """Take a look at it."""
    if pressure is None or pressure.scope != "cgroup" or not rule.use:
        return PressureState()
    some = pressure.some_avg10 > rule.some and pressure.some_avg60 > rule.some
    rose = state.events is not None and pressure.events > state.events
    return PressureState(
        some_m_us=_since(state.some_m_us, some, m_us),
        full_intervene_m_us=_since(
            state.full_intervene_m_us, pressure.full_avg10 > rule.full_intervene, m_us
        ),
        full_emergency_m_us=_since(
            state.full_emergency_m_us, pressure.full_avg10 > rule.full_emergency, m_us
        ),
        events=pressure.events,
        events_m_us=m_us if rose else state.events_m_us,
    )


def least_level(state: PressureState, rule: PressureRule, m_us: int) -> Level:
    """Return the level that pressure calls for where usage is at warn at least; `normal`: none.

    `some` calls for intervene and no more; a step of the group's events is an emergency once
    `full` agrees that work stands still.
    """
    hold_us = rule.hold_s * 1e6
    raised: list[Level] = ["normal"]
    if _held(state.full_emergency_m_us, m_us, hold_us):
        raised.append("emergency")
    if _held(state.full_intervene_m_us, m_us, hold_us):
        raised.append("intervene")
        if state.events_m_us is not None and m_us - state.events_m_us <= hold_us:
            raised.append("emergency")
    if state.some_m_us is not None:
        raised.append("intervene")
    return max(raised, key=rank)


def _since(before: int | None, over: bool, m_us: int) -> int | None:
    if not over:
        return None
    return m_us if before is None else before


def _held(since: int | None, m_us: int, hold_us: float) -> bool:
    return since is not None and m_us - since >= hold_us
