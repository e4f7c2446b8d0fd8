"""Cool-downs: what was just done is not done again at once (contracts, "Plans").

They hold back repeats of a level and of the milder ones, never a higher level, and never an
emergency that is entered anew.
"""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.config.policy import LevelRule, Policy
from memwatch.domain.level import PLANNED, Level, rank
from memwatch.engine.state import EngineState
from memwatch.engine.turn import slot

_NO_RULE = LevelRule()


def rule_for(policy: Policy, resource: str, level: Level) -> LevelRule:
    """Return what is done about a level of a resource."""
    if level == "normal":
        return _NO_RULE
    if resource == "memory":
        levels = policy.levels
    elif resource in policy.resources:
        levels = policy.resources[resource].levels
    else:
        return _NO_RULE
    found: LevelRule = getattr(levels, level)
    return found


def begin(
    state: EngineState, policy: Policy, resource: str, level: Level, m_us: int
) -> EngineState:
    """Cool down from `m_us` on: this level, and the milder ones, for which more was just done."""
    ends = dict(state.cooldowns)
    for milder in PLANNED[: rank(level)]:
        key = slot(resource, milder)
        until = m_us + round(rule_for(policy, resource, milder).cooldown_s * 1e6)
        ends[key] = max(until, ends.get(key, 0))
    return replace(state, cooldowns=ends)


def left_s(state: EngineState, key: str, m_us: int) -> float:
    """Seconds that a slot still cools down; 0 when it does not."""
    return max(state.cooldowns.get(key, 0) - m_us, 0) / 1e6


def expire(state: EngineState, m_us: int) -> EngineState:
    """Forget those that are over."""
    if all(until > m_us for until in state.cooldowns.values()):
        return state
    return replace(state, cooldowns={k: u for k, u in state.cooldowns.items() if u > m_us})
