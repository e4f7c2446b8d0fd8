"""Holding what a crash may cost: a checkpoint once the estimate is over the policy's budget.

Source: R12; issue of recovery and checkpoints. The judgement itself is `analytics.budget`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from memwatch.analytics.budget import VAIN, Crossing, crossings
from memwatch.config.policy import Action
from memwatch.engine import explain
from memwatch.engine.levels import is_gentle
from memwatch.engine.state import BudgetState, EngineState
from memwatch.engine.turn import Turn

RULES: Final = "budget."
"""How the rules of such plans begin."""
_MOVED_ON = 0.10
"""By such a share of itself a figure must move before what did not help is tried again."""

_LEAD_SHARE = 0.1
"""Work is saved before its budget is over by this share of it at most."""
_SETTLED = 0.9
"""Share of a budget under which what was told about it is told anew."""
_PATIENCE_S = 120.0
"""Nothing else hangs on its checkpoint: a large one may take its time."""


class Demand(NamedTuple):
    """A checkpoint is wanted, or would be if it helped."""

    rule: str
    why: str
    actions: tuple[Action, ...]
    why_not: str
    """Why it is not taken now; empty when it may be."""


def mind(state: EngineState, turn: Turn) -> EngineState:
    """Follow what the newest of its checkpoints did, until its time apart is over.

    A figure that went under its budget is forgotten, one that did not is remembered as it is then.
    """
    tried = state.budget.tried
    if not tried:
        return state
    resting = _rest_s(state, turn) > 0 or _in_flight(state)
    now = {one.rule: one.figure_s for one in _crossings(turn) if one.rule in tried}
    after = now if resting else {rule: tried[rule] for rule in now}
    return state if after == tried else replace(state, budget=replace(state.budget, tried=after))


def look(state: EngineState, turn: Turn) -> tuple[Demand, ...]:
    """Return what is over its budget, and what is done about it.

    In an emergency nothing waits for a checkpoint, so none is asked for here. Neither is one where
    usage is measured, but not just now; nor before the effect of the newest plan is known.
    """
    memory = turn.memory
    if not is_gentle(state.level()) or (memory is not None and not turn.fresh(memory)):
        return ()
    measuring = state.last is not None and state.last.effect == "pending"
    return () if measuring else tuple(_demand(state, turn, one) for one in _crossings(turn))


def over_and_done(turn: Turn, topic: str) -> bool:
    """Whether what was told about a budget is over: not with each swing around it."""
    return bool(held(turn, topic, _SETTLED))


def note(state: EngineState, turn: Turn) -> EngineState:
    """Remember that a checkpoint was planned for what is over now."""
    tried: dict[str, float] = {
        one.rule: one.figure_s for one in _crossings(turn) if one.kind is not None
    }
    return replace(state, budget=BudgetState(planned_m_us=turn.now.m_us, tried=tried))


def held(turn: Turn, rule: str, share: float = 1.0) -> str:
    """Say that a figure is within a share of its budget; empty while it is over, or not known."""
    budget, facts = turn.policy.budget, turn.facts.recovery
    of_work = rule == "budget.work_s"
    limit_s = budget.work_s if of_work else budget.recover_s
    figure_s = facts.work_s if of_work else facts.rto_s
    if limit_s is None:
        return "there is no such budget any more"
    lead_s = _lead_s(turn) if of_work else 0.0
    if figure_s is None or figure_s > share * (limit_s - lead_s):
        return ""
    return f"within its budget again ({rule})"


def _crossings(turn: Turn) -> tuple[Crossing, ...]:
    budget, facts = turn.policy.budget, turn.facts.recovery
    if budget.recover_s is None and budget.work_s is None:
        return ()
    return crossings(budget, facts.rto_s, facts.work_s, facts.rto_after_s, _lead_s(turn))


def _lead_s(turn: Turn) -> float:
    """Return how long before its budget is over work must be saved, to be saved in time.

    A checkpoint is complete a while after it is asked for, and that is noticed at a look.
    """
    most_s, facts = _LEAD_SHARE * (turn.policy.budget.work_s or 0.0), turn.facts
    return min((facts.checkpoint.p95_s or 0.0) + facts.sample_period_s, most_s)


def _demand(state: EngineState, turn: Turn, crossing: Crossing) -> Demand:
    why = explain.over_budget(crossing)
    if crossing.kind is None:
        return Demand(crossing.rule, why, (), "no checkpoint brings it under")
    action = Action(op="checkpoint", args={"kind": crossing.kind}, patience_s=_PATIENCE_S)
    return Demand(crossing.rule, why, (action,), _why_not(state, turn, crossing))


def _why_not(state: EngineState, turn: Turn, crossing: Crossing) -> str:
    if _rest_s(state, turn) > 0:
        return "a checkpoint for it was just taken"
    before_s = state.budget.tried.get(crossing.rule)
    if before_s is not None and abs(crossing.figure_s - before_s) <= _MOVED_ON * before_s:
        return VAIN
    return ""


def _rest_s(state: EngineState, turn: Turn) -> float:
    planned_m_us = state.budget.planned_m_us
    return 0.0 if planned_m_us is None else turn.policy.budget.apart_s - turn.after_s(planned_m_us)


def _in_flight(state: EngineState) -> bool:
    return state.plan is not None and state.plan.rule.startswith(RULES)
