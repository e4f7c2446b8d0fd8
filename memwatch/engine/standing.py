"""Where the engine stands, for views: levels, soft limit, plans, and why nothing is done now."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from memwatch.config.policy import Policy
from memwatch.domain.level import PLANNED, EngineMode, Level
from memwatch.domain.plan import Plan
from memwatch.engine import budget, plans, soft_limit
from memwatch.engine.facts import Facts, Now
from memwatch.engine.state import EngineState
from memwatch.engine.turn import Turn


class Standing(NamedTuple):
    """All that a view shows of it."""

    level: Level
    """Of memory."""
    levels: dict[str, Level]
    """By resource; only those that are not normal, and memory."""
    soft_share: float
    soft_why: str
    plan: Plan | None
    last: Plan | None
    waiting: str
    """Why nothing is done though a level calls for it; empty when nothing calls."""
    open_breakers: tuple[str, ...]
    """Memory's by level, then those of others: `warn`, `tier:recent warn`."""
    missing: dict[str, str]
    """Operations of the policy that may not be used, and why."""


def standing(state: EngineState, facts: Facts, policy: Policy, now: Now) -> Standing:
    """Return where the engine stands after a tick with the same facts."""
    turn = Turn(facts, policy, now)
    levels: dict[str, Level] = {"memory": state.level()}
    levels |= {name: one.level for name, one in state.levels.items() if one.level != "normal"}
    return Standing(
        level=state.level(),
        levels=levels,
        soft_share=soft_limit.share(policy, state.soft),
        soft_why=state.soft.why if state.soft.points else "",
        plan=_shown(state.plan, facts.mode),
        last=state.last,
        waiting=_waiting(state, turn),
        open_breakers=(
            *(level for level in PLANNED if level in state.breakers),
            *sorted(state.breakers.keys() - set(PLANNED)),
        ),
        missing=_missing(turn),
    )


def _shown(plan: Plan | None, mode: EngineMode) -> Plan | None:
    """Return a plan as it is told: one that was just made waits for a person in `ask` alone."""
    if plan is None or plan.state != "proposed" or mode == "ask":
        return plan
    return replace(plan, state="asked")


def _waiting(state: EngineState, turn: Turn) -> str:
    plan = state.plan
    if plan is not None and plan.state == "proposed" and turn.facts.mode == "ask":
        return f"plan {plan.level} waits for a person"
    if plan is not None or turn.gone:
        return ""
    if not turn.plans:
        calls = plans.calls_now(state, turn) if turn.facts.mode == "observe" else []
        if not calls:
            return ""
        return f"{calls[0].key or calls[0].rule}: the engine only observes"
    for call in plans.calls_now(state, turn):
        why_not = plans.hindrance(state, turn, call)
        if why_not:
            return f"{why_not} ({call.rule})" if call.rule.startswith(budget.RULES) else why_not
        left_out = plans.compose(turn, call)
        return "" if left_out.steps else f"no step can be done: {left_out.detail}"
    return ""


def _missing(turn: Turn) -> dict[str, str]:
    levels = turn.policy.levels
    rules = (levels.warn, levels.intervene, levels.emergency, levels.hard)
    named = {action.op for rule in rules for action in (*rule.steps, *rule.escalate)}
    return {op: why for op in sorted(named) if (why := turn.may(op))}
