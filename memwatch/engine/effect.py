"""Whether a plan helped: measured a while after its last step, then escalated or cooled down.

Source: leaks, 7.5; R13.
"""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.domain.level import rank
from memwatch.domain.plan import Effect, Plan
from memwatch.domain.units import bytes_text, duration_text
from memwatch.engine import breaker, cooldown, flight, judge, plans
from memwatch.engine.explain import points_text
from memwatch.engine.levels import is_gentle
from memwatch.engine.state import EngineState
from memwatch.engine.trend import falling
from memwatch.engine.turn import Turn, known

_PATIENCE = 4
"""So many times the wait for a fresh measurement; then the effect stays unmeasured."""


def measure(state: EngineState, turn: Turn) -> EngineState:
    """Judge the newest plan once its time has come."""
    plan = state.last
    if plan is None or plan.effect != "pending":
        return state
    after_s = turn.policy.measure.after_s
    if turn.after_s(plan.done_m_us) < after_s:
        return state
    resource = turn.resources.get(plan.resource)
    due_m_us = plan.done_m_us + round(after_s * 1e6)
    measured = resource is not None and turn.fresh(resource) and resource.measured_m_us >= due_m_us
    if not measured and not turn.gone and turn.after_s(plan.done_m_us) < _PATIENCE * after_s:
        return state
    after = known(resource.used) if resource is not None and measured else None
    judged = replace(plan, after_bytes=after)
    judged = replace(judged, effect=_effect(state, turn, judged))
    why = _why(turn, judged)
    turn.say(
        "effect",
        why,
        "measure.enough_share",
        level=plan.level,
        resource=plan.resource,
        plan=judged,
        value=judged.freed_bytes,
    )
    state = breaker.count(replace(state, last=judged), turn, judged)
    return _escalated(state, turn, judged, why)


def _effect(state: EngineState, turn: Turn, plan: Plan) -> Effect:
    freed, resource = plan.freed_bytes, turn.resources.get(plan.resource)
    limit = known(resource.limit) if resource is not None else None
    if freed is None or not limit:
        return "unmeasured"
    enough = turn.policy.measure.enough_share * limit
    if freed >= enough or judge.under_exit(state, turn, plan.resource, plan.level):
        return "effective"
    return "worse" if freed <= -enough else "none"


def _why(turn: Turn, plan: Plan) -> str:
    if plan.effect == "unmeasured":
        return f"plan {plan.level}: usage could not be measured afterwards"
    rule = turn.policy.measure
    freed = plan.freed_bytes or 0.0
    moved = f"freed {bytes_text(freed)}" if freed >= 0 else f"usage rose by {bytes_text(-freed)}"
    least = f"{points_text(rule.enough_share)} of the limit or its exit level"
    wanted = f"reached {least}" if plan.effect == "effective" else f"not {least}"
    return f"plan {plan.level}: {moved} in {duration_text(rule.after_s)}, {wanted}"


def _escalated(state: EngineState, turn: Turn, plan: Plan, why: str) -> EngineState:
    """Try what comes next, once, if the level lasts; a cool-down does not hold that back."""
    if (
        plan.effect not in ("none", "worse")
        or not turn.plans
        or turn.gone
        or state.plan is not None
    ):
        return state
    rule = cooldown.rule_for(turn.policy, plan.resource, plan.level)
    lasts = rank(state.level(plan.resource)) >= rank(plan.level)
    if not rule.escalate or not lasts or plan.rule != plans.path_of(plan.resource, plan.level):
        return state
    resource = turn.resources.get(plan.resource)
    if resource is None or (is_gentle(plan.level) and falling(resource, turn.policy.measure)):
        return state
    path = f"{plan.rule}.escalate"
    made = plans.compose(turn, plans.Call(plan.level, path, why, rule.escalate, plan.resource))
    return flight.begin(state, turn, made) if made.steps else state
