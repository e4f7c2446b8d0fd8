"""Records of the guard's own log -> kind, text and severity of an event.

All text of a log is untrusted: it becomes one inert line, and short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from memwatch.domain.intervention import IN_VAIN
from memwatch.domain.level import ACTING
from memwatch.domain.record import Record, figure
from memwatch.domain.snapshot import Severity
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, change_text, duration_text, estimate_text

Told = tuple[str, str, Severity]
"""Kind, text and severity of an event."""

_SEVERITIES: Final[dict[str, Severity]] = {
    "info": "info",
    "notice": "notice",
    "warning": "warning",
    "error": "error",
}
_DECISIONS: Final[dict[str, Severity]] = {
    "soft_limit": "info",
    "suppressed": "notice",
    "breaker": "warning",
    "shout": "error",
}
"""Decisions that no other record tells."""
_TOLD_WITH_REASON: Final = ("memory", "breaker.", "policy")
"""Alerts whose beginning another record tells, with the figures behind it."""
_EFFECTS: Final[dict[str, str]] = {
    "effective": "it helped",
    "none": "without effect",
    "worse": "usage rose meanwhile",
    "unmeasured": "effect not measured",
}
_STORE_EVENTS: Final[dict[str, Told]] = {
    "committed": ("checkpoint.full", "complete", "info"),
    "incomplete": ("checkpoint.abort", "is incomplete, and nobody is writing it", "warning"),
    "deleted": ("checkpoint.deleted", "deleted", "notice"),
}


def _guard_begin(record: Record) -> Told:
    version = inert(record.text("version"), 20)
    mode = inert(record.text("mode", "?"), 10)
    text = f"guard {version} began, epoch {record.number('epoch') or 0}, engine: {mode}"
    return "engine", text, "notice"


def _engine_mode(record: Record) -> Told | None:
    if record.members.get("again") is True:
        return None
    text = f"engine: {inert(record.text('mode', '?'), 10)}"
    allow = record.members.get("allow")
    if isinstance(allow, list) and record.text("mode") in ACTING:
        text += f" ({', '.join(inert(str(op), 20) for op in allow[:9])})"
    by, why = inert(record.text("by"), 24), inert(record.text("why"), 80)
    text += f", by {by}" if by else ""
    return "engine", text + (f": {why}" if why else ""), "notice"


def _decision(record: Record) -> Told | None:
    what = record.text("what")
    severity = _DECISIONS.get(what)
    if severity is None:
        return None
    words = {"soft_limit": "soft limit", "suppressed": "nothing done", "shout": "guard"}.get(
        what, what
    )
    return "engine", f"{words}: {inert(record.text('why'), 160)}", severity


def _plan(record: Record) -> Told | None:
    state, effect = record.text("state"), record.text("effect", "pending")
    name = f"{'dry ' if record.members.get('dry') is True else ''}plan"
    name += f" {inert(record.text('level', '?'), 10)}"
    if effect != "pending":
        return "plan", f"{name}: {_effect(record, effect)}", _effect_severity(effect)
    if state in ("proposed", "asked") and not record.number("at"):
        steps = ", ".join(_step_ops(record))
        word = "proposed" if state == "proposed" else "begun"
        return "plan", f"{name} {word} ({steps}): {inert(record.text('why'), 120)}", "warning"
    if state in ("refused", "failed", "expired", "unknown"):
        return "plan", f"{name} {state}: {inert(record.text('detail'), 100)}", "warning"
    return None


def _effect(record: Record, effect: str) -> str:
    words = _EFFECTS.get(effect, inert(effect, 20))
    before, after = record.number("before_bytes"), record.number("after_bytes")
    if before is None or after is None:
        return words
    return f"{words}, {bytes_text(before)} to {bytes_text(after)}"


def _effect_severity(effect: str) -> Severity:
    return "notice" if effect in ("effective", "unmeasured") else "warning"


def _step_ops(record: Record) -> list[str]:
    steps = record.members.get("steps")
    if not isinstance(steps, list):
        return []
    named = (step.get("op") if isinstance(step, dict) else step for step in steps[:9])
    return [inert(str(op), 20) for op in named]


def _intervention(record: Record) -> Told | None:
    """Tell a request of the guard's ledger: the agent's own log tells what became of it."""
    state = inert(record.text("state", "?"), 12)
    if state not in ("asked", "failed", "expired", "unknown"):
        return None
    if record.members.get("dry_run") is True and state == "asked":
        return None  # a person looks what would be done
    who = inert(record.text("by") or record.text("origin"), 24)
    text = f"{inert(record.text('what') or record.text('op', '?'), 60)} {state} ({who})"
    if record.members.get("dry_run") is True:
        text = f"dry run: {text}"
    detail = inert(record.text("detail"), 80)
    severity: Severity = "info" if state == "asked" else "warning"
    return "command", text + (f": {detail}" if detail else ""), severity


def _level(record: Record) -> Told:
    level = inert(record.text("level", "?"), 12)
    resource = inert(record.text("resource"), 40) or "memory"
    severity: Severity = "notice" if level == "normal" else "warning"
    if level in ("emergency", "hard"):
        severity = "error"
    why = inert(record.text("why"), 160).removeprefix(f"{resource} ")
    return "level", f"{resource} {level}: {why}", severity


def _policy(record: Record) -> Told:
    error = inert(record.text("error"), 200)
    if error:
        return "policy", f"policy not taken over, the one before stays: {error}", "error"
    source = inert(record.text("source"), 120)
    changed = record.members.get("changed")
    names = changed if isinstance(changed, list) else []
    said = ", ".join(inert(str(name), 40) for name in names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return (
        "policy",
        f"policy taken over from {source}" + (f": {said}{more}" if said else ""),
        ("notice"),
    )


def _alert(record: Record) -> Told | None:
    text = inert(record.text("text"), 160)
    if record.text("state") == "stands" or record.members.get("moot") is True:
        return None
    if record.text("state") == "cleared":
        lasted_us = record.number("lasted_us")
        span = f" after {duration_text(lasted_us / 1e6)}" if lasted_us is not None else ""
        return "alert", f"all clear{span}: {text}", "notice"
    if record.text("key").startswith(_TOLD_WITH_REASON):
        return None
    return "alert", text, _SEVERITIES.get(record.text("severity"), "warning")


def _notify(record: Record) -> Told | None:
    state, channel = record.text("state"), inert(record.text("channel"), 24)
    about = inert(record.text("key"), 30)
    tries, is_last = record.number("tries") or 0, record.members.get("again_s") is None
    if state != "failed" or not (tries <= 1 or is_last):
        return None  # of a series of failures the first and the last are told
    detail = inert(record.text("detail"), 100)
    return "notify", f"{channel} could not be told of {about}: {detail}", "warning"


def _budget(record: Record) -> Told:
    state = inert(record.text("state"), 120)
    return "budget", f"guard {inert(record.text('what'), 30)}: {state}", "notice"


def _gap(record: Record) -> Told:
    span = (record.number("until_us") or 0) - (record.number("from_us") or 0)
    why = inert(record.text("why"), 80)
    return "gap", f"nothing recorded for {duration_text(max(span, 0) / 1e6)}: {why}", "warning"


def _process(record: Record) -> Told:
    severity: Severity = "error" if record.text("severity") == "error" else "notice"
    return "process", inert(record.text("text"), 120), severity


def _restart(record: Record) -> Told | None:
    total_s, estimate = figure(record.members.get("total_s")), record.members.get("estimate")
    if total_s is None:
        return None
    text = f"back {duration_text(total_s)} after its process began"
    span = estimate if isinstance(estimate, dict) else {}
    low, likely, high = (figure(span.get(name)) for name in ("low", "likely", "high"))
    if low is not None and likely is not None and high is not None and likely > 0:
        text += f", estimated {estimate_text(low, likely, high)}"
        text += f": {change_text(total_s / likely - 1)}"
    return "recovery", text, "error" if record.members.get("lossy") is True else "notice"


def _efficacy(record: Record) -> Told | None:
    """Tell a plan's step that did nothing, once it had ten minutes to do something."""
    verdict = record.text("verdict")
    if record.text("at") != "10min" or not record.text("plan") or verdict not in IN_VAIN:
        return None
    action = " ".join(inert(record.text(name), 24) for name in ("action", "how", "tier")).split()
    text = f"{' '.join(action) or '?'}: {_EFFECTS[verdict]}"
    before, after = (figure(record.members.get(name)) for name in ("before", "after_10min"))
    if before is not None and after is not None and _in_bytes(record):
        text += f", {bytes_text(before)} to {bytes_text(after)} in 10 min"
    return "plan", text, "warning"


def _in_bytes(record: Record) -> bool:
    effects = record.members.get("effects")
    first = effects[0] if isinstance(effects, list) and effects else None
    return isinstance(first, dict) and first.get("unit") == "bytes"


def _store(record: Record) -> Told | None:
    event = record.text("event")
    if event not in _STORE_EVENTS:
        return None
    kind, words, severity = _STORE_EVENTS[event]
    incremental = event == "committed" and record.text("kind") != "full"
    text = f"checkpoint {inert(record.text('id', '?'), 60)} {words}"
    size, took = record.number("bytes"), figure(record.members.get("duration_us"))
    text += f", {bytes_text(size)}" if size is not None else ""
    text += f" in {duration_text(took / 1e6)}" if took is not None and event == "committed" else ""
    return "checkpoint.incremental" if incremental else kind, text, severity


TELLERS: Final[dict[str, Callable[[Record], Told | None]]] = {
    "guard.begin": _guard_begin,
    "engine.mode": _engine_mode,
    "engine.decision": _decision,
    "plan": _plan,
    "intervention": _intervention,
    "level": _level,
    "policy": _policy,
    "alert": _alert,
    "notify": _notify,
    "budget": _budget,
    "gap": _gap,
    "process": _process,
    "restart": _restart,
    "efficacy": _efficacy,
    "store": _store,
}
"""How each kind of the guard's own is told."""
