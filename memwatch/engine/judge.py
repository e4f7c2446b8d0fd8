"""Levels of all resources, the soft limit and pressure: what is so, before anything is done."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.config.policy import Policy
from memwatch.domain.level import Level, rank
from memwatch.engine import breaker, explain, hysteresis, pressure, soft_limit
from memwatch.engine.facts import ResourceFacts
from memwatch.engine.hysteresis import LevelState, Move, Reading
from memwatch.engine.levels import Bounds, is_gentle, level_of, memory_bounds, resource_bounds
from memwatch.engine.state import EngineState
from memwatch.engine.turn import Turn, share_of, slot

_GAP_PERIODS = 3
_NORMAL = LevelState()


def bounds_of(state: EngineState, policy: Policy, name: str) -> Bounds | None:
    """Return where levels of a resource begin and end; None for one without levels."""
    if name == "memory":
        return memory_bounds(policy, soft_limit.share(policy, state.soft))
    rule = policy.resources.get(name)
    return resource_bounds(rule) if rule is not None else None


def under_exit(state: EngineState, turn: Turn, name: str, level: Level) -> str:
    """Say how a resource lies under the end of a level at this instant; empty while it does not.

    Where pressure calls for the level, low usage is no reason to think that it is over.
    """
    resource, bounds = turn.resources.get(name), bounds_of(state, turn.policy, name)
    by_pressure = name == "memory" and rank(state.least) >= rank(level)
    if resource is None or bounds is None or by_pressure or not turn.fresh(resource):
        return ""
    share, end = share_of(resource), bounds.leave[rank(level) - 1]
    if share is None or end is None or share >= end:
        return ""
    return f"{explain.percent_text(share)}, under {explain.points_text(end)}"


def judge(state: EngineState, turn: Turn) -> EngineState:
    """Bring levels, soft limit and pressure up to the facts."""
    if turn.gone:
        return _let_go(state, turn)
    state = _move_soft_limit(state, turn)
    state = _witness(_without_rule(state, turn), turn)
    levels: dict[str, LevelState] | None = None
    moves: list[tuple[ResourceFacts, Move]] = []
    for resource in turn.facts.resources:
        before = state.levels.get(resource.name, _NORMAL)
        after, move = _measure(state, turn, resource, before)
        if after is not before:
            levels = dict(state.levels) if levels is None else levels
            levels[resource.name] = after
        if move is not None:
            moves.append((resource, move))
    if levels is not None:
        state = replace(state, levels=levels)
    for resource, move in moves:
        state = _note_move(state, turn, resource, move)
    return state


def judge_literally(state: EngineState, turn: Turn) -> EngineState:
    """Follow the thresholds as written, with nothing around them: the engine is off."""
    memory = turn.memory
    if memory is None or turn.gone or not turn.fresh(memory):
        return _let_go(state, turn) if turn.gone else state
    share = share_of(memory)
    level, before = level_of(share, turn.policy.thresholds), state.level()
    rest = {"memory": LevelState(level=level, since_m_us=turn.now.m_us)}
    if level == before and state.levels.keys() <= rest.keys():
        return state
    if level != before and share is not None:
        rule = f"thresholds.{before if level == 'normal' else level}"
        why = f"{explain.usage_text(memory, share)}: {level} ({rule}, engine off)"
        turn.say("level", why, rule, level=level, value=share, limit=memory.limit)
    return replace(state, levels=rest, least="normal")


def _without_rule(state: EngineState, turn: Turn) -> EngineState:
    """Forget levels of resources that the policy does not name any more."""
    named = turn.policy.resources
    if all(name in named or name == "memory" for name in state.levels):
        return state
    kept = {k: v for k, v in state.levels.items() if k in named or k == "memory"}
    return replace(state, levels=kept)


def _measure(
    state: EngineState, turn: Turn, resource: ResourceFacts, before: LevelState
) -> tuple[LevelState, Move | None]:
    """Judge a measurement that is new."""
    bounds = bounds_of(state, turn.policy, resource.name)
    if bounds is None or resource.measured_m_us <= before.measured_m_us or not turn.fresh(resource):
        return before, None
    share = share_of(resource)
    if share is None:
        return before, None
    rise = resource.growth_recent_per_min
    reading = Reading(
        share=share,
        at_m_us=resource.measured_m_us,
        rise_per_s=rise / 60 / resource.limit if rise and resource.limit and rise > 0 else 0.0,
        least=state.least if resource.name == "memory" else "normal",
        gap_s=_GAP_PERIODS * turn.stale_s(resource.name),
    )
    return hysteresis.judge(before, reading, bounds, turn.policy.enter, turn.policy.exit)


def _note_move(state: EngineState, turn: Turn, resource: ResourceFacts, move: Move) -> EngineState:
    """Tell a change of level, and what hangs on it."""
    share, bounds = share_of(resource), bounds_of(state, turn.policy, resource.name)
    if share is None or bounds is None:
        return state
    rises = rank(move.after) > rank(move.before)
    words = explain.entered if rises else explain.left
    rule = explain.rule_of(resource.name, move.after) if rises else f"exit.{move.before}"
    why = words(resource, share, move, bounds)
    turn.say(
        "level",
        why,
        rule,
        level=move.after,
        resource=resource.name,
        value=share,
        limit=resource.limit,
    )
    if rises and not is_gentle(move.after):
        state = _urgent(state, turn, slot(resource.name, move.after))
    if resource.name == "memory" and move.after == "hard":
        state = replace(state, touched_m_us=turn.now.m_us)
    return state


def _urgent(state: EngineState, turn: Turn, key: str) -> EngineState:
    """Clear the way for an emergency that is entered: it waits for no cool-down and no breaker."""
    cooldowns = {k: until for k, until in state.cooldowns.items() if k != key}
    return breaker.half_open(replace(state, cooldowns=cooldowns), turn, key)


def _move_soft_limit(state: EngineState, turn: Turn) -> EngineState:
    memory = turn.memory
    if memory is None or not turn.fresh(memory):
        return state
    soft, shift = soft_limit.step(state.soft, memory, turn.policy, turn.now.m_us)
    if shift is not None:
        turn.say(
            "soft_limit", shift.why, shift.rule, level="warn", value=shift.after, limit=memory.limit
        )
    return state if soft is state.soft else replace(state, soft=soft)


def _witness(state: EngineState, turn: Turn) -> EngineState:
    rule, m_us = turn.policy.pressure, turn.now.m_us
    seen = pressure.watch(state.pressure, turn.facts.pressure, rule, m_us)
    least: Level = "normal"
    if _is_high(state, turn):
        least = pressure.least_level(seen, rule, m_us)
    if seen == state.pressure and least == state.least:
        return state
    return replace(state, pressure=seen, least=least)


def _is_high(state: EngineState, turn: Turn) -> bool:
    """Whether usage by itself is at warn, or was and has not come under its end."""
    memory, bounds = turn.memory, bounds_of(state, turn.policy, "memory")
    if state.level() == "normal" or bounds is None or memory is None:
        return False
    share, end = share_of(memory), bounds.leave[0]
    return share is not None and end is not None and share >= end


def _let_go(state: EngineState, turn: Turn) -> EngineState:
    """Return to normal: the agent is gone, and its memory with it."""
    level: Level = state.level()
    if not state.levels:
        return state
    if level != "normal":
        why = f"the agent is gone ({turn.facts.run_state}), and its memory with it"
        turn.say("level", why, "run", level="normal")
    return replace(state, levels={}, least="normal")
