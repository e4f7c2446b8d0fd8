"""The engine's holds: when its pause ends, and what is done about one that does not help.

Read-only by the hard limit is never ended here: only a person leaves it (R9). A pause ends once
its level is left, when the engine may not act any more (nobody else would end it), or because it
lasted too long without helping; after an emergency the last is no reason (R8). A person who ends it
is respected.
"""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.config.policy import ABORT, Action
from memwatch.domain.control import Hold
from memwatch.domain.level import Level, rank
from memwatch.domain.operations import ENGINE
from memwatch.domain.units import duration_text
from memwatch.engine import cooldown, flight, judge, plans
from memwatch.engine.levels import is_gentle
from memwatch.engine.state import EngineState, PauseStage, PauseState
from memwatch.engine.turn import Turn

_ASK_AGAIN_S = 10.0


def mind(state: EngineState, turn: Turn) -> EngineState:
    """Look after the holds that are in force."""
    if turn.gone:
        return replace(state, pause=None, release_id="") if state.pause else state
    state = _respect(state, turn)
    state = _mind_touched(state, turn)
    if ours(turn, "pause") is None:
        return replace(state, pause=None, release_id="") if state.pause else state
    state = _noted(state, turn)
    pause = state.pause
    if pause is None:
        return state
    if not turn.acts:
        why = f"the engine may not act any more ({turn.facts.mode}): its pause ends"
        kept = "; read-only stays until a person ends it" if ours(turn, "read_only") else ""
        return _release(state, turn, why + kept, "mode")
    if _is_left(state, turn, pause):
        why = f"{pause.resource} left {pause.level} for {state.level(pause.resource)}: resume"
        return _release(state, turn, why, f"exit.{pause.level}")
    if pause.stage == "ends":
        return _release(state, turn, "a pause that does not help ends", "pause.then")
    return _mind_length(state, turn, pause)


def ours(turn: Turn, op: str) -> Hold | None:
    """Return a hold of the engine's, as the agent says or as it is kept."""
    return next((h for h in turn.facts.holds if h.owner == ENGINE and h.op == op), None)


def _noted(state: EngineState, turn: Turn) -> EngineState:
    """Note a pause that came into force, and the highest level that it lasts through."""
    pause = state.pause
    if pause is None:
        by = state.plan or state.last
        paused_by = by is not None and any(step.op == "pause" for step in by.steps)
        resource = by.resource if by is not None and paused_by else "memory"
        level = by.level if by is not None and paused_by else _least_paused(state, turn)
        pause = PauseState(since_m_us=turn.now.m_us, level=level, resource=resource)
    highest = max(pause.level, state.level(pause.resource), key=rank)
    if highest != pause.level:
        pause = replace(pause, level=highest)
    return state if pause is state.pause else replace(state, pause=pause)


def _least_paused(state: EngineState, turn: Turn) -> Level:
    """Return the level of a pause that nobody remembers the plan of."""
    level = state.level()
    return level if _pauses(turn, "memory", level) else "intervene"


def _pauses(turn: Turn, resource: str, level: Level) -> bool:
    rule = cooldown.rule_for(turn.policy, resource, level)
    return any(action.op == "pause" for action in rule.steps)


def _is_left(state: EngineState, turn: Turn, pause: PauseState) -> bool:
    """Whether the level was left, for one that would not pause again at once.

    Usage is looked at as well: levels may have begun anew since the pause did.
    """
    level = state.level(pause.resource)
    if rank(level) >= rank(pause.level) or _pauses(turn, pause.resource, level):
        return False
    if judge.bounds_of(state, turn.policy, pause.resource) is None:
        return True
    return bool(judge.under_exit(state, turn, pause.resource, pause.level))


def _mind_length(state: EngineState, turn: Turn, pause: PauseState) -> EngineState:
    """Escape from a pause without end: reclaim once more, then do as the policy says."""
    rule = turn.policy.pause
    lasted_s = turn.after_s(pause.since_m_us)
    busy = state.plan is not None or (state.last is not None and state.last.effect == "pending")
    if pause.stage == "stays" or busy or lasted_s < rule.longest_s:
        return state
    lasted = f"paused for {duration_text(lasted_s)}"
    still = f"{pause.resource} is still at {state.level(pause.resource)}"
    if pause.stage == "helps":
        why = f"{lasted} (pause.longest_s), {still}: reclaiming once more, then {rule.then}"
        turn.say("shout", why, "pause.longest_s", level=pause.level, resource=pause.resource)
        state = _at_stage(state, pause, "relief")
        return _plan(state, turn, pause, rule.relief, "pause.longest_s", why)
    if _helped(state, pause, rule.longest_s):
        again = replace(pause, stage="helps", since_m_us=turn.now.m_us)
        return replace(state, pause=again)  # it moves: another whole length before giving up
    if pause.stage == "relief" and rule.then == "abort":
        why = f"{lasted}, {still} after reclaiming: abort (pause.then)"
        return _plan(_at_stage(state, pause, "abort"), turn, pause, (ABORT,), "pause.then", why)
    return _give_up(state, turn, pause, f"{lasted}, {still} after reclaiming")


def _helped(state: EngineState, pause: PauseState, longest_s: float) -> bool:
    """Whether a plan that was made since the pause lasts too long had an effect."""
    last, too_long_m_us = state.last, pause.since_m_us + longest_s * 1e6
    return last is not None and last.made_m_us >= too_long_m_us and last.effect == "effective"


def _give_up(state: EngineState, turn: Turn, pause: PauseState, why: str) -> EngineState:
    level, resource = pause.level, pause.resource
    after_emergency = not is_gentle(level)
    if after_emergency or turn.policy.pause.then == "keep":
        because = "after an emergency nothing begins over warn" if after_emergency else "pause.then"
        why += f": it stays until a person ends it ({because})"
        turn.say("shout", why, "pause.then", level=level, resource=resource)
        return _at_stage(state, pause, "stays")
    why += ": it ends without having helped (pause.then)"
    turn.say("shout", why, "pause.then", level=level, resource=resource)
    state = cooldown.begin(state, turn.policy, resource, level, turn.now.m_us)
    return _release(_at_stage(state, pause, "ends"), turn, why, "pause.then")


def _at_stage(state: EngineState, pause: PauseState, stage: PauseStage) -> EngineState:
    return replace(state, pause=replace(pause, stage=stage))


def _plan(
    state: EngineState,
    turn: Turn,
    pause: PauseState,
    actions: tuple[Action, ...],
    rule: str,
    why: str,
) -> EngineState:
    call = plans.Call(pause.level, rule, why, actions, pause.resource)
    made = plans.compose(turn, call)
    return flight.begin(state, turn, made) if made.steps else state


def _release(state: EngineState, turn: Turn, why: str, rule: str) -> EngineState:
    """Ask for the end of the pause; again while it is in force all the same.

    At once where the guard that asked was killed meanwhile: nobody waits for an answer.
    """
    asked = turn.facts.commands.get(state.release_id)
    waits = state.release_id and not (asked is not None and asked.state == "unknown")
    if waits and turn.after_s(state.release_m_us) < _ASK_AGAIN_S:
        return state
    command_id = f"{turn.now.t_us:x}-resume"
    turn.say(
        "ask",
        why,
        rule,
        op="resume",
        args={"owner": ENGINE},
        command_id=command_id,
        level=state.level(),
    )
    return replace(state, release_id=command_id, release_m_us=turn.now.m_us)


def _respect(state: EngineState, turn: Turn) -> EngineState:
    """Mind a person who ended a hold of ours: no plan of the level until its cool-down is over."""
    released = turn.facts.released_m_us
    if released is None or released <= (state.released_m_us or -1):
        return state
    level = state.level()
    if level != "normal":
        until_s = cooldown.rule_for(turn.policy, "memory", level).cooldown_s
        turn.say(
            "suppressed",
            f"a person ended a hold of the engine's: no plan of {level} for {until_s:g} s, unless "
            f"the level rises",
            f"levels.{level}.cooldown_s",
            level=level,
        )
    state = cooldown.begin(state, turn.policy, "memory", level, released)
    return replace(state, released_m_us=released)


def _mind_touched(state: EngineState, turn: Turn) -> EngineState:
    """Forget that the hard limit was touched once a person ended read-only.

    Where it was never made read-only (shadow, an agent that cannot), leaving the level will do.
    """
    touched = state.touched_m_us
    if touched is None or ours(turn, "read_only") is not None:
        return state
    planned = state.plan is not None and state.plan.level == "hard"
    by_person = state.released_m_us is not None and state.released_m_us > touched
    if by_person or (state.level() != "hard" and not planned):
        return replace(state, touched_m_us=None)
    return state
