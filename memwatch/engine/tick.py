"""One step of the threshold engine: what is known in, decisions with their reasons out. Pure.

It is called for each new measurement, each answer and each second. In order: what changed around
us, levels, answers, effects, the newest call for a plan, the plan's next step, holds, retention.
Source: R8 to R10, D5; contracts, "Plans".
"""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.config.policy import Policy
from memwatch.domain.level import PLANNING
from memwatch.engine import breaker, cooldown, effect, flight, holds, judge, plans, retention
from memwatch.engine.decision import Decision
from memwatch.engine.facts import Facts, Now
from memwatch.engine.state import BudgetState, EngineState
from memwatch.engine.turn import Turn


def tick(
    state: EngineState, facts: Facts, policy: Policy, now: Now
) -> tuple[EngineState, tuple[Decision, ...]]:
    """Return the state after this instant and what was decided, in the order to carry it out.

    Decisions are to be written down first. `ask` and `withdraw` go to the ledger, unless they are
    `dry`; an `ask` may come again with the same id. Nothing is raised for any facts.
    """
    turn = Turn(facts, policy, now)
    if now.m_us < state.at_m_us:
        state = state.rebased()  # the boot clock only begins anew with another boot
    state = _changes(state, turn)
    judged = judge.judge_literally if facts.mode == "off" else judge.judge
    state = judged(state, turn)
    state = cooldown.expire(breaker.mind(state, turn), now.m_us)
    state = flight.hear(state, turn)
    state = effect.measure(state, turn)
    state = plans.react(state, turn)
    state = flight.go_on(state, turn)
    state = holds.mind(state, turn)
    state = retention.mind(state, turn)
    state = replace(state, at_m_us=now.m_us, mode=facts.mode, start_id=facts.start_id)
    return state, tuple(turn.decisions)


def _changes(state: EngineState, turn: Turn) -> EngineState:
    """Mind what changed around us: the agent, or what the engine may do."""
    facts = turn.facts
    if state.start_id and facts.start_id and facts.start_id != state.start_id:
        state = flight.end(state, turn, "unknown", "the agent began anew", cools=False)
        state = retention.forget(state)
    if turn.gone:
        why = f"the agent is gone ({facts.run_state})"
        state = flight.end(state, turn, "unknown", why, cools=False)
    if facts.mode == state.mode:
        return state
    plan = state.plan
    if plan is not None and (facts.mode not in PLANNING or plan.dry != (facts.mode == "shadow")):
        why = f"withdrawn: the engine is switched to {facts.mode}"
        state = flight.end(state, turn, "expired", why, cools=False)
    if state.mode == "shadow":
        # What was only tried dry holds nothing back.
        state = retention.forget(
            replace(state, cooldowns={}, told={}, outlook_m_us=None, budget=BudgetState())
        )
    if facts.mode == "off":
        state = replace(state, told={}, ineffective={}, breakers={}, cooldowns={})
    return state
