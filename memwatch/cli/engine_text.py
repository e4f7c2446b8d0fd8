"""What the engine will do, and what holds the agent, in words. Standard library only."""

from __future__ import annotations

from typing import Any

from memwatch.domain.text import inert
from memwatch.domain.units import local_time_text

Status = dict[str, Any]


def will_text(status: Status) -> str:
    """Return whether the engine will act, on what, and until when.

    A time belongs to what it ends: who does not act goes on not to act behind it.

    >>> will_text({"engine": {"mode": "shadow"}})
    'WILL NOT ACT (shadow)'
    >>> will_text({"engine": {"mode": "shadow", "will": "WILL NOT ACT (STOP file)", "until_us": 1}})
    'WILL NOT ACT (STOP file)'
    >>> few = {"allow": ["pause"], "policy_allow": ["pause", "purge"]}
    >>> will_text({"engine": {"mode": "act", "will": "WILL ACT (intervene)", **few}})
    'WILL ACT (intervene), only by pause'
    """
    engine = _engine(status)
    said = inert(str(engine.get("will") or ""), 100)
    line = said or f"WILL NOT ACT ({inert(str(engine.get('mode') or 'off'), 20)})"
    allow, may = engine.get("allow") or (), engine.get("policy_allow") or ()
    if line.startswith("WILL ACT") and not set(may) <= set(allow):
        line += f", only by {', '.join(inert(str(op), 30).replace('_', ' ') for op in allow)}"
    until_us = engine.get("until_us")
    if isinstance(until_us, int) and (line.startswith("WILL ACT") or engine.get("mode") == "ask"):
        line += f" until {local_time_text(until_us, '%a %H:%M')}"
    return line


def mode_word(status: Status) -> str:
    """Return the mode in one word, for a table.

    >>> mode_word({"engine": {"mode": "act"}}), mode_word({"engine": {"mode": "observe"}})
    ('acts', 'observes')
    """
    engine = _engine(status)
    mode = inert(str(engine.get("mode") or "off"), 10)
    if engine.get("stop_file"):
        return "STOPPED"
    return {"act": "acts", "ask": "asks", "observe": "observes"}.get(mode, mode)


def plan_text(status: Status) -> str:
    """Return the plan in flight, or that waits for a person; empty when there is none."""
    plan = _plan(status)
    if not plan:
        return ""
    steps = plan.get("steps") or []
    at = plan.get("at", 0)
    op = inert(str(steps[at]["op"]), 30).replace("_", " ") if 0 <= at < len(steps) else ""
    level, why = inert(str(plan["level"]), 12), inert(str(plan["why"]), 160)
    if plan["state"] == "proposed":
        run = inert(str(status["run"]["id"]), 60)
        return f"plan {level} waits for you: memwatch ctl {run} approve, or decline ({why})"
    where = f"step {at + 1} of {len(steps)}, {op}" if op else "measuring what it did"
    return f"{'dry ' if plan.get('dry') else ''}plan {level}: {where} ({why})"


def plan_waits(status: Status) -> bool:
    """Say whether a plan waits for a person."""
    return bool(_plan(status).get("state") == "proposed")


def hold_texts(status: Status) -> list[str]:
    """Return one line for each hold on the agent: who, since when, why, until when."""
    return [_hold(hold) for hold in status.get("holds") or []]


def _hold(hold: Status) -> str:
    op = "pause" if hold["op"] == "pause" else "read-only"
    state = op if hold.get("effective") else f"{op}, not in force yet"
    line = f"held by {inert(str(hold['owner']), 40)}: {state}"
    if hold.get("since_us"):
        line += f", since {local_time_text(hold['since_us'], '%H:%M')}"
    ends_us = hold.get("ends_us")
    if ends_us:  # it is renewed all the while
        line += f", ends at {local_time_text(ends_us, '%H:%M:%S')} if the guard dies"
    else:
        line += ", until released"
    reason = inert(str(hold.get("reason") or ""), 120)
    return line + (f" ({reason})" if reason else "")


def _engine(status: Status) -> Status:
    engine = status.get("engine")
    return engine if isinstance(engine, dict) else {}


def _plan(status: Status) -> Status:
    plan = _engine(status).get("plan")
    return plan if isinstance(plan, dict) else {}
