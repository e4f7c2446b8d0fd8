"""The circuit breaker: what does not help is stopped, loudly: while it is open, an alert stands.

It blocks repeats at one level; a higher level is never blocked, and an emergency that is entered
anew gets one try (half open). It closes once the level was normal for a dwell, or by a person.
"""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.domain.level import PLANNED, Level
from memwatch.domain.plan import Plan
from memwatch.engine.state import EngineState
from memwatch.engine.turn import Turn, slot


def count(state: EngineState, turn: Turn, plan: Plan) -> EngineState:
    """Count a plan that was measured; opens when too many in a row had no effect."""
    key = slot(plan.resource, plan.level)
    if plan.effect == "effective":
        rest = {k: n for k, n in state.ineffective.items() if k != key}
        return replace(state, ineffective=rest)
    if plan.effect not in ("none", "worse"):
        return state
    failed = state.ineffective.get(key, 0) + 1
    state = replace(state, ineffective={**state.ineffective, key: failed})
    if failed < turn.policy.breaker.after or key in state.breakers:
        return state
    why = (
        f"{failed} plans of {plan.level} in a row without effect on {plan.resource} "
        f"(breaker.after): none is repeated until it was normal for a while or a person resets"
    )
    turn.say("breaker", why, "breaker.after", level=plan.level, resource=plan.resource)
    return replace(state, breakers={**state.breakers, key: turn.now.m_us})


def half_open(state: EngineState, turn: Turn, key: str) -> EngineState:
    """Allow one try: an emergency was entered anew."""
    if key not in state.breakers:
        return state
    tries = {**state.ineffective, key: turn.policy.breaker.after - 1}
    breakers = {k: since for k, since in state.breakers.items() if k != key}
    return replace(state, breakers=breakers, ineffective=tries)


def mind(state: EngineState, turn: Turn) -> EngineState:
    """Close what a person reset, or what calmed down."""
    if not state.ineffective and not state.breakers:
        return state
    reset = turn.facts.reset_m_us
    by_person = {k for k, since in state.breakers.items() if reset is not None and reset > since}
    calm = {key for key in (*state.ineffective, *state.breakers) if _calm(state, turn, key)}
    closed = by_person | calm
    if not closed:
        return state
    for key in sorted(closed & state.breakers.keys()):
        resource, level = parts(key)
        why = "by a person (reset)" if key in by_person else "it was normal for exit.dwell_s"
        why = f"breaker of {key} closed: {why}"
        turn.say("breaker", why, "breaker.after", level=level, resource=resource)
    return replace(
        state,
        breakers={k: v for k, v in state.breakers.items() if k not in closed},
        ineffective={k: v for k, v in state.ineffective.items() if k not in closed},
        cooldowns={k: v for k, v in state.cooldowns.items() if k not in by_person},
    )


def _calm(state: EngineState, turn: Turn, key: str) -> bool:
    found = state.levels.get(parts(key)[0])
    if found is None:  # at normal, with nothing under way: the agent is another one, or the policy
        return True
    dwelt_s = turn.after_s(found.since_m_us)
    return found.level == "normal" and dwelt_s >= turn.policy.exit.dwell_s


def parts(key: str) -> tuple[str, Level]:
    """Split a slot into resource and level."""
    resource, _, level = key.rpartition(" ")
    for known in PLANNED:
        if level == known:
            return resource or "memory", known
    return resource, "normal"
