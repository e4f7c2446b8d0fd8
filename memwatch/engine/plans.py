"""Which plan is made now, and of what steps (R8; contracts, "Plans")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from memwatch.config.policy import Action
from memwatch.domain.level import PLANNED, Level, rank
from memwatch.domain.operations import ENGINE, HOLDS
from memwatch.domain.plan import Plan, Step
from memwatch.domain.text import inert
from memwatch.domain.units import local_time_text
from memwatch.engine import breaker, budget, cooldown, explain, flight, outlook
from memwatch.engine.judge import bounds_of
from memwatch.engine.levels import is_gentle, reached
from memwatch.engine.state import EngineState
from memwatch.engine.trend import falling
from memwatch.engine.turn import Turn, share_of, slot


class Call(NamedTuple):
    """A level, the outlook or a budget calls for a plan."""

    level: Level
    rule: str
    why: str
    actions: tuple[Action, ...]
    resource: str = "memory"
    key: str = ""
    """Slot of its cool-down and breaker; empty for one that has none."""
    why_not: str = ""
    """Why nothing is done about it now, where that is known already."""


def react(state: EngineState, turn: Turn) -> EngineState:
    """Make at most one plan: that of the highest level which calls for one."""
    if not turn.plans or turn.gone:
        return state
    state = budget.mind(state, turn)
    calls = calls_now(state, turn)
    over = {topic for topic in state.told if _is_over(state, turn, topic)}
    if over:
        state = replace(state, told={k: v for k, v in state.told.items() if k not in over})
    for call in calls:
        if state.plan is not None and not _preempts(call, state.plan):
            continue
        why_not = hindrance(state, turn, call)
        if why_not:
            state = _tell_once(state, turn, call, why_not)
            continue
        made = compose(turn, call)
        if not made.steps:
            state = _tell_once(state, turn, call, f"no step of it can be done: {made.detail}")
            continue
        if call.rule.startswith("outlook."):
            state = replace(state, outlook_m_us=turn.now.m_us)
        if call.rule.startswith(budget.RULES):
            state = budget.note(state, turn)
        told = {k: v for k, v in state.told.items() if k != _topic(call)}
        return flight.begin(replace(state, told=told), turn, made)
    return state


def calls_now(state: EngineState, turn: Turn) -> list[Call]:
    """Return what calls for a plan at this instant, the highest level first."""
    calls = [
        call
        for name in ("memory", *turn.policy.resources)
        if (call := _by_level(state, turn, name))
    ]
    outcry = outlook.look(state, turn)
    if outcry is not None:
        calls.append(Call("warn", outcry.rule, outcry.why, turn.policy.outlook.steps))
    calls += [
        Call("warn", one.rule, one.why, one.actions, why_not=one.why_not)
        for one in budget.look(state, turn)
    ]
    calls.sort(key=lambda call: -rank(call.level))  # stable: memory goes first among equals
    return calls


def _by_level(state: EngineState, turn: Turn, name: str) -> Call | None:
    """Return the call of a resource's level, as far as its usage still presses.

    A level lasts until its exit; done again is only what usage calls for now.
    """
    level = state.level(name)
    if level == "normal" or not _acted_on(turn, name, level):
        return None
    resource = turn.resources.get(name)
    if resource is None or not turn.fresh(resource):
        return None
    share, bounds = share_of(resource), bounds_of(state, turn.policy, name)
    if share is None or bounds is None:
        return None
    now = max(reached(share, bounds.enter), state.least if name == "memory" else "normal", key=rank)
    level = min(level, now, key=rank)
    rule = cooldown.rule_for(turn.policy, name, level)
    if not rule.steps:
        return None
    since = state.levels[name].over_m_us[rank(level) - 1]
    over_s = turn.after_s(since) if since is not None else 0.0
    why = explain.pressing(resource, share, level, bounds, over_s)
    return Call(level, path_of(name, level), why, rule.steps, name, slot(name, level))


def _acted_on(turn: Turn, name: str, level: Level) -> bool:
    """Whether anything is done about a resource at this level or a milder one."""
    return any(
        cooldown.rule_for(turn.policy, name, milder).steps for milder in PLANNED[: rank(level)]
    )


def path_of(resource: str, level: Level) -> str:
    """Return the path of the rule that says what is done about a level.

    >>> path_of("memory", "warn"), path_of("disk", "warn")
    ('levels.warn', 'resources.disk.levels.warn')
    """
    if resource == "memory":
        return f"levels.{level}"
    return f"resources.{inert(resource, 60)}.levels.{level}"


def hindrance(state: EngineState, turn: Turn, call: Call) -> str:
    """Return why a plan that is called for is not made now; empty when nothing hinders it."""
    if call.rule.startswith(budget.RULES):
        return call.why_not
    if call.key in state.breakers:
        return f"breaker open: plans of {call.key} had no effect, until a person resets it"
    left_s = cooldown.left_s(state, call.key, turn.now.m_us) if call.key else 0.0
    if left_s:
        until_us = turn.now.t_us + round(left_s * 1e6)  # a time of day stands still on a screen
        return f"cool-down of {call.level} until {local_time_text(until_us, '%H:%M:%S')}"
    resource = turn.resources.get(call.resource)
    gentle = is_gentle(call.level)
    if gentle and resource is not None and falling(resource, turn.policy.measure):
        return "usage is falling (measure.falling_share)"
    return ""


def compose(turn: Turn, call: Call) -> Plan:
    """Return the plan of a call; its `detail` names what was left out."""
    now, facts = turn.now, turn.facts
    plan_id = f"{now.t_us:x}-{call.level}"
    left_out = [f"{action.op} {why}" for action in call.actions if (why := turn.may(action.op))]
    able = [action for action in call.actions if not turn.may(action.op)]
    return Plan(
        id=plan_id,
        level=call.level,
        rule=call.rule,
        resource=call.resource,
        why=call.why,
        steps=_steps(plan_id, able, turn),
        detail="; ".join(left_out),
        dry=facts.mode == "shadow",
        made_us=now.t_us,
        made_m_us=now.m_us,
    )


def _steps(plan_id: str, actions: Sequence[Action], turn: Turn) -> tuple[Step, ...]:
    in_force = {hold.op for hold in turn.facts.holds if hold.owner == ENGINE and hold.effective}
    steps = []
    for place, action in enumerate(actions):
        step = Step(
            op=action.op,
            args=action.args,
            patience_s=action.patience_s,
            command_id=f"{plan_id}.{place}",
        )
        if action.op in HOLDS and action.op in in_force:
            step = replace(step, state="done", detail="in force already")
        steps.append(step)
    return tuple(steps)


def _preempts(call: Call, plan: Plan) -> bool:
    if rank(call.level) > rank(plan.level):
        return True
    urgent = call.resource == "memory" and not is_gentle(call.level)
    return urgent and plan.resource != "memory" and rank(call.level) == rank(plan.level)


def _topic(call: Call) -> str:
    return call.key or call.rule


def _is_over(state: EngineState, turn: Turn, topic: str) -> bool:
    """Whether the level that something was told about was left: not with each swing of usage."""
    if topic.startswith(budget.RULES):
        return budget.over_and_done(turn, topic)
    resource, level = breaker.parts(topic)
    return rank(state.level(resource)) < rank(level)


def _tell_once(state: EngineState, turn: Turn, call: Call, why_not: str) -> EngineState:
    """Say that nothing is done, and why; again only when the reason is another one."""
    reason = why_not.partition(",")[0]  # the figure behind it changes with each tick
    topic = _topic(call)
    if state.told.get(topic) == reason:
        return state
    after_its_plan = reason.startswith("cool-down") and _was_planned(state, call)
    if not after_its_plan:
        turn.say(
            "suppressed",
            f"{why_not}; {call.why}",
            call.rule,
            level=call.level,
            resource=call.resource,
        )
    return replace(state, told={**state.told, topic: reason})


def _was_planned(state: EngineState, call: Call) -> bool:
    """Whether a plan was made since the level was entered: then that it cools down is no news."""
    entered = state.levels.get(call.resource)
    last = state.last
    return entered is not None and last is not None and last.made_m_us >= entered.since_m_us
