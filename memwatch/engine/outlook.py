"""Acting on time instead of level: a checkpoint while it fits and while there is time.

Source: leaks, 7.3.
"""

from __future__ import annotations

from typing import NamedTuple

from memwatch.config.policy import Outlook
from memwatch.engine import explain
from memwatch.engine.facts import CheckpointFacts, ResourceFacts
from memwatch.engine.levels import is_gentle
from memwatch.engine.state import EngineState
from memwatch.engine.trend import growing
from memwatch.engine.turn import Turn, known


class Outcry(NamedTuple):
    """A checkpoint is wanted now."""

    rule: str
    why: str


def look(state: EngineState, turn: Turn) -> Outcry | None:
    """Return why a checkpoint is due by time or room; None when it is not.

    In an emergency nothing waits for a checkpoint, so none is asked for here.
    """
    memory = turn.memory
    if memory is None or not turn.fresh(memory) or not is_gentle(state.level()):
        return None
    if not turn.policy.outlook.steps or not growing(memory):
        return None
    arrival_s = memory.time_to_limit_s[0] if memory.time_to_limit_s else None
    if not _rested(state, turn, arrival_s):
        return None
    return _by_time(memory, arrival_s, turn) or _by_room(memory, turn)


def _rested(state: EngineState, turn: Turn, arrival_s: float | None) -> bool:
    """One checkpoint per half of the time that is left; one that was just committed counts."""
    half_s = turn.policy.levels.warn.cooldown_s if arrival_s is None else arrival_s / 2
    made = (state.outlook_m_us, turn.facts.checkpoint.last_m_us)
    newest = max((m_us for m_us in made if m_us is not None), default=None)
    return newest is None or turn.after_s(newest) >= max(half_s, turn.policy.outlook.apart_s)


def _by_time(memory: ResourceFacts, arrival_s: float | None, turn: Turn) -> Outcry | None:
    if arrival_s is None:
        return None
    needed_s, basis = time_needed(turn.facts.checkpoint, turn.policy.outlook, turn)
    if arrival_s >= needed_s:
        return None
    return Outcry("outlook.time", explain.soon(memory, arrival_s, needed_s, basis))


def time_needed(checkpoint: CheckpointFacts, rule: Outlook, turn: Turn) -> tuple[float, str]:
    """Return how many seconds must be left for a checkpoint, and what that rests on."""
    if checkpoint.p95_s is None:
        return rule.assumed_s, "none was measured yet"
    wait_s = rule.sample_factor * turn.facts.sample_period_s + rule.margin_s
    return rule.checkpoint_factor * checkpoint.p95_s + wait_s, "by its p95"


def _by_room(memory: ResourceFacts, turn: Turn) -> Outcry | None:
    """Only while it still fits: one that does not might be what gets the agent killed."""
    used, limit = known(memory.used), known(memory.limit)
    if used is None or not limit:
        return None
    rule, extra = turn.policy.outlook, turn.facts.checkpoint.extra_bytes
    takes = rule.reserve_share * used if extra is None else extra
    room = limit - used
    if not takes <= room < rule.headroom_factor * takes:
        return None
    basis = "assumed" if extra is None else "as measured"
    needed = rule.headroom_factor * takes
    return Outcry("outlook.room", explain.tight(memory, room, needed, basis))
