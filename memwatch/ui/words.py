"""Operations, holds, plans and modes in words, the same on every panel. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memwatch.domain.command import FINAL_STATES
from memwatch.domain.control import EngineInfo, Hold
from memwatch.domain.level import EngineMode
from memwatch.domain.plan import Plan, Step
from memwatch.domain.text import inert
from memwatch.ui.format import moment_text

MODES: dict[EngineMode, str] = {
    "off": "judges nothing",
    "observe": "watches levels, plans nothing",
    "shadow": "plans, and sends nothing",
    "ask": "plans, and a person lets each plan go",
    "act": "carries its plans out",
}
"""What the guard does in each mode of its engine."""
_OPS = {
    "abort_experiment": "abort the experiment",
    "checkpoint": "checkpoint",
    "compact": "compact",
    "end_run": "end the run",
    "pause": "pause",
    "purge": "purge",
    "read_only": "read-only",
    "read_write": "read-write",
    "reclaim": "give memory back",
    "resume": "resume",
    "retain": "keep less",
    "engine.mode": "guard mode",
    "engine.approve": "let the plan go",
    "engine.decline": "decline the plan",
    "engine.reset": "let the guard try again",
}
_HOWS = {
    "expired": "what is expired",
    "oldest": "oldest first",
    "least_accessed": "least used first",
    "compress": "compressed in place",
    "reclaim": "all that may go",
}


def op_words(op: str) -> str:
    """Return an operation as people call it."""
    return _OPS.get(op, inert(op, 30).replace("_", "-"))


def asked_words(op: str, args: Mapping[str, Any]) -> str:
    """Return an operation with what matters of its arguments.

    >>> asked_words("purge", {"tier": "history", "how": "compress"})
    'purge history, compressed in place'
    >>> asked_words("checkpoint", {"kind": "incremental"}), asked_words("pause", {"lease_us": 9})
    ('checkpoint (incremental)', 'pause')
    >>> asked_words("purge", {"how": "expired"}), asked_words("purge", {})
    ('purge what is expired', 'purge all that may go')
    """
    if op == "purge":
        how = inert(str(args.get("how") or ""), 20)
        shown = _HOWS.get(how, how)
        tier = inert(str(args.get("tier") or ""), 24)
        if tier:
            return f"purge {tier}, {shown}" if shown else f"purge {tier}"
        return f"purge {shown or 'all that may go'}"
    told = [args[name] for name in ("kind", "mode", "tier", "thread") if args.get(name)]
    words = op_words(op)
    return f"{words} ({', '.join(inert(str(value), 24) for value in told)})" if told else words


def owner_words(owner: str) -> str:
    """Return whose hold it is; a viewer that gave no name is some person's."""
    return _OWNERS.get(owner) or inert(owner, 24)


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
    words = asked_words(step.op, step.args)
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


def guard_words(engine: EngineInfo, mode: EngineMode) -> str:
    """Return whether the guard acts; where it does not that is in capitals.

    >>> guard_words(EngineInfo(), "act"), guard_words(EngineInfo(), "shadow")
    ('guard acts', 'WILL NOT ACT (shadow)')
    >>> guard_words(EngineInfo(allow=("checkpoint", "pause")), "act")
    'guard acts (checkpoint, pause)'
    """
    if engine.stop_file:
        return "WILL NOT ACT (stop file)"
    if mode == "act":
        few = f" ({', '.join(op_words(op) for op in engine.allow)})" if engine.allow else ""
        return f"guard acts{few}" if len(engine.allow) <= 2 else "guard acts"
    return "guard asks" if mode == "ask" else f"WILL NOT ACT ({mode})"
