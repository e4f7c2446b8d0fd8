"""Records and faults -> events: one inert line of text for a person.

Kinds of events (they decide the mark on a chart): `run`, `recovery`, `experiment`, `phase`,
`checkpoint.full`, `checkpoint.incremental`, `checkpoint.abort`, `checkpoint.deleted`, `purge`,
`retention`, `command`, `mode`, `error`, `note`, `compact`, `rollback`, `fault`, `other`; of the
guard: `level`, `engine`, `plan`, `policy`, `alert`, `notify`, `budget`, `gap`, `process`.
"""

from __future__ import annotations

from collections.abc import Callable

from memwatch.analytics.narrate_guard import TELLERS as GUARD_TELLERS
from memwatch.analytics.narrate_guard import Told
from memwatch.domain.record import Fault, Record, figure
from memwatch.domain.snapshot import Event, Severity
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text, counted, duration_text

SILENT = frozenset(
    {
        "put",
        "update",
        "delete",
        "access",
        "sample",
        "file",
        "call",
        "step.begin",
        "step.end",
        "tool.begin",
        "tool.end",
        "purge.begin",
        "checkpoint.begin",
        "truncate",
        "memory",
        "switch",
        "evidence",
        "decision",
        "stop",
        "hypothesis",
        "workspace.snapshot",
        "probe",
        "tick",
        "viewer",
        "verdict",
        "engine.state",
        "estimate",
    }
)
"""Known kinds that make no event of their own."""


def event_of(record: Record) -> Event | None:
    """Return the event that a record tells, or None for one that is no news."""
    if record.kind in SILENT:
        return None
    told = _TELLERS.get(record.kind, _other)(record)
    if told is None:
        return None
    kind, text, severity = told
    origin = "guard" if record.kind in GUARD_TELLERS else "agent"
    return Event(seq=0, t_us=record.t_us, kind=kind, text=text, severity=severity, origin=origin)


def event_of_fault(fault: Fault, t_us: int) -> Event:
    """Return the event of something wrong in a log."""
    place = f"segment {fault.segment} offset {fault.offset}"
    text = f"log {fault.kind} at {place}: {inert(fault.detail, 120)}"
    severity: Severity = "notice" if fault.kind in ("torn", "pruned") else "warning"
    return Event(seq=0, t_us=t_us, kind="fault", text=text, severity=severity, origin="guard")


def _run_begin(record: Record) -> Told:
    agent = inert(record.text("agent", "agent"), 40)
    return "run", f"{agent} started, pid {record.number('pid') or '?'}", "notice"


def _recovery(record: Record) -> Told:
    deltas, records = record.number("deltas"), record.number("records")
    parts = [inert(record.text("full"), 40) or "no full checkpoint"]
    parts += [counted(deltas, "delta")] if deltas else []
    parts += [counted(records, "record")] if records else []
    text = f"state recovered from {', '.join(parts)}"
    took = record.number("duration_us")
    if took is not None:
        text += f" in {duration_text(took / 1e6)}"
    lost = record.members.get("lost")
    if isinstance(lost, list) and lost:
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        return "recovery", f"{text}; lost: {_value(lost[0], 120)}{more}", "error"
    return "recovery", text, "notice"


def _run_end(record: Record) -> Told:
    status = inert(record.text("status", "done"), 20)
    reason = inert(record.text("reason"), 100)
    severity: Severity = "notice" if status in ("done", "ended", "stopped") else "error"
    return "run", f"run ended: {status}" + (f", {reason}" if reason else ""), severity


def _experiment_begin(record: Record) -> Told:
    title = inert(record.text("title"), 60)
    phase = inert(record.text("phase"), 20)
    text = f"experiment {record.experiment} {title} ({phase or 'no phase'})"
    return "experiment.begin", text, "info"


def _experiment_end(record: Record) -> Told:
    status = inert(record.text("status", "done"), 20)
    took = record.number("duration_us")
    text = f"experiment {record.experiment} {status}"
    if took is not None:
        text += f" in {duration_text(took / 1e6)}"
    metrics = record.members.get("metrics")
    if isinstance(metrics, dict):
        figures = [
            f"{inert(str(name), 20)} {value:.4g}"
            for name, value in ((name, figure(it)) for name, it in list(metrics.items())[:3])
            if value is not None
        ]
        text += "".join(f", {figure}" for figure in figures)
    return "experiment", text, "warning" if status in ("crashed", "failed", "aborted") else "info"


def _checkpoint_commit(record: Record) -> Told:
    said = record.text("kind")
    kind = "full" if said == "full" else "incremental"
    text = "checkpoint of the experiment" if said == "experiment" else f"{kind} checkpoint"
    size = record.number("bytes")
    if size is not None:
        text += f" {bytes_text(size)}"
    took = record.number("duration_us")
    if took is not None:
        text += f" in {duration_text(took / 1e6)}"
    return f"checkpoint.{kind}", text, "info"


def _checkpoint_abort(record: Record) -> Told:
    reason = inert(record.text("reason", "no reason given"), 100)
    return "checkpoint.abort", f"checkpoint failed: {reason}", "warning"


def _purge_end(record: Record) -> Told:
    tier = inert(record.text("tier", "?"), 24)
    cause = inert(record.text("cause"), 20)
    freed, entries = record.number("freed_bytes"), record.number("entries")
    text = f"purge {tier}" + (f" ({cause})" if cause else "")
    if entries is not None:
        text += f": {entries} entr{'y' if entries == 1 else 'ies'}"
    if freed is not None:
        text += f", {bytes_text(freed)}"
    refused = inert(record.text("refused"), 80)
    if refused:
        return "purge", f"{text}; not all went: {refused}", "warning"
    return "purge", text, "info"


def _retention(record: Record) -> Told:
    tier, why = inert(record.text("tier", "?"), 24), inert(record.text("why"), 80)
    old, new = record.members.get("old"), record.members.get("new")
    what = inert(record.text("what"), 20)
    change = f"{what} {_kept(old)} to {_kept(new)}".strip()
    return "retention", f"retention of {tier}: {change}, {why}", "notice"


def _command(record: Record) -> Told | None:
    state = inert(record.text("state", "?"), 12)
    if state in ("accepted", "running") or record.members.get("dry_run") is True:
        return None  # on its way, or nothing was done
    text = f"{inert(record.text('op', '?'), 30)} {state}"
    detail = inert(record.text("detail"), 80)
    severity: Severity = "notice" if state == "done" else "warning"
    return "command", text + (f": {detail}" if detail else ""), severity


def _mode(record: Record) -> Told:
    cause = inert(record.text("cause"), 80)
    text = f"agent {inert(record.text('mode', '?'), 20)}"
    return "mode", text + (f": {cause}" if cause else ""), "notice"


def _error(record: Record) -> Told:
    kind = _value(record.members.get("kind"), 30)
    return "error", f"error {kind}: {inert(record.text('message'), 120)}", "error"


def _note(record: Record) -> Told:
    return "note", inert(record.text("text"), 160), "notice"


def _compact(record: Record) -> Told:
    before, after = record.number("before_tokens"), record.number("after_tokens")
    kind = _value(record.members.get("kind"), 10)
    return "compact", f"{kind} compaction, {before or '?'} to {after or '?'} tokens", "info"


def _rollback(record: Record) -> Told:
    cause = inert(record.text("cause"), 80)
    text = f"workspace back at step {inert(record.text('to', '?'), 30)}"
    return "rollback", text + (f": {cause}" if cause else ""), "notice"


def _other(record: Record) -> Told:
    return "other", f"{inert(record.kind, 40)} (a kind this version does not know)", "info"


def _kept(value: object) -> str:
    """Return one number of a tier, or members of what it keeps, in words."""
    if not isinstance(value, dict):
        return _value(value)
    return inert(", ".join(f"{name} {_value(what)}" for name, what in value.items()), 60)


def _value(value: object, width: int = 20) -> str:
    return inert(str(value), width)


_TELLERS: dict[str, Callable[[Record], Told | None]] = {
    "run.begin": _run_begin,
    "run.end": _run_end,
    "recovery": _recovery,
    "experiment.begin": _experiment_begin,
    "experiment.end": _experiment_end,
    "checkpoint.commit": _checkpoint_commit,
    "checkpoint.abort": _checkpoint_abort,
    "purge.end": _purge_end,
    "retention": _retention,
    "command": _command,
    "mode": _mode,
    "error": _error,
    "note": _note,
    "context.compact": _compact,
    "workspace.rollback": _rollback,
    **GUARD_TELLERS,
}

KNOWN_KINDS = SILENT | frozenset(_TELLERS)
"""Every kind that this version knows."""
