"""A plan under way: its steps are asked for one after another, each is acknowledged or waited for.

A step that is refused, fails or is not answered in time does not stop the plan (R8); it is named.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from memwatch.domain.command import FINAL_STATES, CommandState
from memwatch.domain.plan import Plan, Step
from memwatch.domain.units import duration_text
from memwatch.engine import budget, cooldown, judge
from memwatch.engine.levels import is_gentle
from memwatch.engine.state import EngineState
from memwatch.engine.turn import Turn

AGAIN_S = 2.0
"""A request that the ledger does not know after this time was lost, and is handed over again."""
FREEING = frozenset({"purge", "reclaim", "compact", "abort_experiment", "end_run", "retain"})
"""Operations that are meant to free memory: without one there is nothing to measure."""


def begin(state: EngineState, turn: Turn, plan: Plan) -> EngineState:
    """Take up a plan; one that is in its way ends."""
    if state.plan is not None:
        state = end(state, turn, "expired", f"pre-empted by {plan.level}", cools=False)
    if state.last is not None and state.last.effect == "pending":
        state = replace(state, last=replace(state.last, effect="unmeasured"))
    if turn.facts.mode == "ask":
        turn.tell(plan, plan.why)
    return replace(state, plan=plan)


def hear(state: EngineState, turn: Turn) -> EngineState:
    """Take in what became of the requests of the plan in flight."""
    if state.plan is not None:
        state = replace(state, plan=_heard(state.plan, turn))
    last = state.last
    if last is not None and last.effect == "pending":
        state = replace(state, last=_heard(last, turn))
    return state


def go_on(state: EngineState, turn: Turn) -> EngineState:
    """Move the plan on as far as it goes now: give up waiting, ask for the next step, or end it."""
    plan = state.plan
    if plan is None:
        return state
    if plan.state == "proposed":
        state = _started(state, turn, plan)
    while (plan := state.plan) is not None and plan.in_flight:
        if plan.at == len(plan.steps):
            return _finished(state, turn, plan)
        if not _is_behind(plan, turn):
            return _hand_over_again(state, turn, plan)
        plan = _passed(plan, turn)
        if plan.at < len(plan.steps):
            recovered = _recovered(state, turn, plan)
            if recovered:
                state = replace(state, plan=plan)
                return end(state, turn, _outcome(plan), recovered, cools=False)
            if not _may_ask(turn, plan):
                return replace(state, plan=plan)
            plan = _ask(turn, plan)
            state = replace(state, handed_over_m_us=turn.now.m_us)
        state = replace(state, plan=plan)
    return state


def end(
    state: EngineState, turn: Turn, outcome: CommandState, detail: str, *, cools: bool = True
) -> EngineState:
    """End the plan in flight: take back what was not begun, cool down, measure where it pays.

    `cools` says whether a plan that was never begun holds the next one back as well.
    """
    plan = state.plan
    if plan is None:
        return state
    for step in plan.steps:
        if step.asked_us and step.state not in FINAL_STATES and not plan.dry:
            _take_back(turn, plan, step)
    measured = (
        not plan.dry and plan.before_bytes is not None and any(s.op in FREEING for s in plan.steps)
    )
    whole = plan.at == len(plan.steps)
    plan = replace(
        plan,
        state=outcome,
        steps=tuple(_closed(step) for step in plan.steps),
        detail="; ".join(text for text in (detail, plan.detail) if text),
        effect="pending" if measured and whole else "unmeasured",
        done_m_us=turn.now.m_us,
    )
    turn.tell(plan, plan.detail or f"all {len(plan.steps)} steps done")
    state = replace(state, plan=None, last=plan)
    begun = any(step.asked_us for step in plan.steps)
    if not _of_level(plan) or not (begun or cools):
        return state
    return cooldown.begin(state, turn.policy, plan.resource, plan.level, turn.now.m_us)


def _heard(plan: Plan, turn: Turn) -> Plan:
    changed = False
    steps = []
    for step in plan.steps:
        told = turn.facts.commands.get(step.command_id)
        if (
            told is not None
            and step.asked_us
            and told.state != step.state
            and _newer(step, told.state)
        ):
            changed = True
            steps.append(replace(step, state=told.state, detail=told.detail))
        else:
            steps.append(step)
    if not changed:
        return plan
    heard = replace(plan, steps=tuple(steps))
    if heard.state == "asked" and any(step.state != "asked" for step in steps if step.asked_us):
        heard = replace(heard, state="running")
    turn.tell(heard, _progress_text(heard))
    return heard


def _newer(step: Step, state: CommandState) -> bool:
    """Say whether a state is news: a final answer stays, that waiting was given up is none."""
    return state != "proposed" and (step.state not in FINAL_STATES or step.state == "expired")


def _started(state: EngineState, turn: Turn, plan: Plan) -> EngineState:
    """Let a proposed plan go, or end it: declined, too late, or not needed any more."""
    facts = turn.facts
    if plan.id in facts.declined:
        return end(state, turn, "refused", "declined by a person")
    if facts.mode == "ask" and plan.id not in facts.approved:
        if turn.after_s(plan.made_m_us) >= turn.policy.ask_s:
            return end(
                state, turn, "expired", f"nobody answered in {turn.policy.ask_s:g} s (ask_s)"
            )
        recovered = _recovered(state, turn, plan)
        return end(state, turn, "expired", recovered, cools=False) if recovered else state
    before = turn.usage(plan.resource)
    going = replace(plan, state="asked", at=0, before_bytes=before)
    turn.tell(going, going.why)
    return replace(state, plan=going)


def _is_behind(plan: Plan, turn: Turn) -> bool:
    """Whether the step in work is over, or not begun: something can be done."""
    step = plan.steps[plan.at]
    if step.state in FINAL_STATES or not step.asked_us:
        return True
    return turn.after_s(step.asked_us) >= step.patience_s


def _passed(plan: Plan, turn: Turn) -> Plan:
    """Step over what is done or was waited for long enough."""
    at = plan.at
    step = plan.steps[at]
    if step.state == "proposed":
        return plan
    if step.state not in FINAL_STATES:
        _take_back(turn, plan, step)
        waited = f"no answer in {duration_text(step.patience_s)}"
        if step.state != "asked":
            waited = f"not done in {duration_text(step.patience_s)}"
        plan = _with_step(plan, at, state="expired", detail=waited)
    at += 1
    while at < len(plan.steps) and plan.steps[at].state in FINAL_STATES:
        at += 1
    return replace(plan, at=at)


def _may_ask(turn: Turn, plan: Plan) -> bool:
    """Say whether to ask now: a gentle plan does not while usage is not known."""
    resource = turn.resources.get(plan.resource)
    if resource is None and plan.rule.startswith(budget.RULES):
        return True  # what a crash costs is known all the same
    return not is_gentle(plan.level) or turn.fresh(resource)


def _ask(turn: Turn, plan: Plan) -> Plan:
    """Hand over the step in work; what may not be used any more is stepped over."""
    at, step = plan.at, plan.steps[plan.at]
    why_not = turn.may(step.op)
    if why_not:
        return _with_step(plan, at, state="refused", detail=why_not)
    _hand_over(turn, plan, step)
    if plan.dry:
        return _with_step(
            plan, at, state="done", detail="dry run: not sent", asked_us=turn.now.m_us
        )
    return _with_step(plan, at, state="asked", asked_us=turn.now.m_us)


def _hand_over(turn: Turn, plan: Plan, step: Step) -> None:
    turn.say(
        "ask",
        plan.why,
        plan.rule,
        level=plan.level,
        resource=plan.resource,
        plan=plan,
        op=step.op,
        args=step.args,
        command_id=step.command_id,
        dry=plan.dry,
    )


def _hand_over_again(state: EngineState, turn: Turn, plan: Plan) -> EngineState:
    """Hand a lost request over once more: the same id is the same request, obeyed once."""
    step = plan.steps[plan.at]
    lost = step.state == "asked" and step.command_id not in turn.facts.commands
    if not lost or turn.may(step.op) or turn.after_s(state.handed_over_m_us) < AGAIN_S:
        return state
    recovered = _recovered(state, turn, plan)
    if recovered:
        return end(state, turn, _outcome(plan), recovered, cools=False)
    _hand_over(turn, plan, step)
    return replace(state, handed_over_m_us=turn.now.m_us)


def _take_back(turn: Turn, plan: Plan, step: Step) -> None:
    turn.say(
        "withdraw",
        f"{step.op} of plan {plan.level} is not waited for any more",
        plan.rule,
        level=plan.level,
        resource=plan.resource,
        op=step.op,
        command_id=step.command_id,
    )


def _of_level(plan: Plan) -> bool:
    """Whether a plan is about a level, which is left and cools down: not about time or a crash."""
    return not plan.rule.startswith(("outlook.", budget.RULES))


def _recovered(state: EngineState, turn: Turn, plan: Plan) -> str:
    """Return why a gentle plan is not needed any more; empty while it is.

    Judged on the newest measurement just before each step. An emergency is carried through: R8
    wants its memory reclaimed fully.
    """
    if plan.rule.startswith(budget.RULES):
        within = budget.held(turn, plan.rule)
        return f"{within}; it is not needed" if within else ""
    if not is_gentle(plan.level) or not _of_level(plan) or plan.rule.startswith("pause."):
        return ""
    under = judge.under_exit(state, turn, plan.resource, plan.level)
    return f"recovered: {under}; the rest is not needed" if under else ""


def _finished(state: EngineState, turn: Turn, plan: Plan) -> EngineState:
    """All steps are behind it: say which of them did not do."""
    failed = [
        f"{step.op} {step.state}" + (f" ({step.detail})" if step.detail else "")
        for step in plan.steps
        if step.state != "done"
    ]
    return end(state, turn, _outcome(plan), "; ".join(failed))


def _outcome(plan: Plan) -> CommandState:
    """Done when any step is; else what most tells why not."""
    states = [step.state for step in plan.steps if step.state in FINAL_STATES]
    order: tuple[CommandState, ...] = ("done", "unknown", "failed", "refused")
    return next((state for state in order if state in states), "expired")


def _closed(step: Step) -> Step:
    if step.state in FINAL_STATES:
        return step
    detail = step.detail or ("withdrawn" if step.asked_us else "not begun")
    return replace(step, state="expired", detail=detail)


def _progress_text(plan: Plan) -> str:
    return ", ".join(f"{step.op} {step.state}" for step in plan.steps if step.asked_us)


def _with_step(plan: Plan, at: int, **changes: Any) -> Plan:
    steps = list(plan.steps)
    steps[at] = replace(steps[at], **changes)
    return replace(plan, steps=tuple(steps))
