"""Holds, plans and modes in words, the same on every panel. Pure."""

from __future__ import annotations

from memwatch.domain.command import FINAL_STATES
from memwatch.domain.control import EngineInfo, Hold
from memwatch.domain.level import EngineMode
from memwatch.domain.plan import Plan, Step
from memwatch.domain.text import inert
from memwatch.domain.wording import op_text, request_text
from memwatch.ui.format import moment_text

_MODES: dict[EngineMode, str] = {
    "off": "judges nothing",
    "observe": "watches levels, plans nothing",
    "shadow": "plans, and sends nothing",
    "ask": "plans, and a person lets each plan go",
    "act": "carries its plans out",
}
"""What the guard does in each mode of its engine."""


def owner_words(owner: str) -> str:
    """Return whose hold it is; a viewer that gave no name is some person's."""
    return _OWNERS.get(owner) or inert(owner, 24)


_WILL_NOT = "WILL NOT ACT"
_OWNERS = {"engine": "the guard", "operator": "a person", "keep": "a person"}


def reason_words(hold: Hold) -> str:
    """Return why it holds; that a person pressed a key says nothing more."""
    return "" if hold.reason.startswith("key ") else inert(hold.reason, 120)


def hold_words(hold: Hold, now_us: int) -> str:
    """Return who holds since when, how it ends, why, and whether the agent says that it is so.

    A lease has no time here: it is renewed all the while.
    """
    parts = [f"by {owner_words(hold.owner)}"]
    if hold.since_us:
        parts.append(f"since {moment_text(hold.since_us, now_us)}")
    leased = hold.ends_us is not None
    parts.append("it ends if the guard dies" if leased else "until it is released")
    if not hold.effective:
        parts.append("asked, the agent has not said yet")
    words = ", ".join(parts)
    return f"{words}: {why}" if (why := reason_words(hold)) else words


def step_words(step: Step) -> str:
    """Return a step and how far it came; one that is to come has no state to show."""
    words = request_text(step.op, step.args)
    return words if step.state == "proposed" else f"{words}: {step.state}"


def plan_words(plan: Plan) -> str:
    """Return a plan's level and how far it came.

    >>> step = Step(op="pause", state="asked")
    >>> plan_words(Plan(id="1", level="warn", rule="", why="", steps=(step,), state="running"))
    'plan warn: step 1 of 1, pause: asked'
    """
    name = f"plan {plan.level}"
    if plan.dry:
        name += " (not sent)"
    if plan.in_flight and plan.at < len(plan.steps):
        step = step_words(plan.steps[plan.at])
        return f"{name}: step {plan.at + 1} of {len(plan.steps)}, {step}"
    words = f"{name} {'waits for you' if plan.state == 'proposed' else plan.state}"
    if plan.state in FINAL_STATES and plan.effect != "pending":
        words += f", effect {plan.effect}"
    return f"{words}: {inert(plan.detail, 100)}" if plan.detail else words


def does_words(engine: EngineInfo) -> str:
    """Return what the guard does in its mode; nothing where something keeps it from that.

    >>> does_words(EngineInfo(mode="act", will="WILL NOT ACT (nothing is allowed)"))
    ''
    """
    barred = engine.mode == "act" and engine.will.startswith(_WILL_NOT)
    return "" if barred else f"it {_MODES[engine.mode]}"


def guard_words(engine: EngineInfo, mode: EngineMode) -> str:
    """Return whether the guard acts; where it does not that is in capitals, as the guard words it.

    What keeps it from acting may be more than its mode: a stop file, another guard, a policy that
    allows nothing.

    >>> guard_words(EngineInfo(), "act"), guard_words(EngineInfo(), "shadow")
    ('guard acts', 'WILL NOT ACT (shadow)')
    >>> guard_words(EngineInfo(will="WILL NOT ACT (another guard acts)"), "shadow")
    'WILL NOT ACT (another guard acts)'
    >>> guard_words(EngineInfo(allow=("checkpoint", "pause")), "act")
    'guard acts (checkpoint, pause)'
    """
    if mode == "ask":
        return "guard asks"
    if engine.will.startswith(_WILL_NOT):
        return inert(engine.will, 60)
    if mode != "act":
        return f"{_WILL_NOT} ({mode})"
    few = f" ({', '.join(op_text(op) for op in engine.allow)})" if engine.allow else ""
    return f"guard acts{few}" if len(engine.allow) <= 2 else "guard acts"
