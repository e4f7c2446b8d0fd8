"""`status` as words: a page, or one line. Reads the JSON object, whoever made it."""

from __future__ import annotations

from typing import Any

from memwatch.cli.engine_text import hold_texts, mode_word, plan_text, plan_waits, will_text
from memwatch.cli.store_text import is_store, store_head, store_rows
from memwatch.domain.text import inert
from memwatch.domain.units import (
    arrival_text,
    bytes_text,
    duration_text,
    estimate_text,
    local_time_text,
)

Status = dict[str, Any]


def status_line(status: Status) -> str:
    """Return one line of at most 80 characters, for a tmux status bar.

    Starts with the worst word, so that a narrow bar cuts the rest.
    """
    run, memory = status["run"], _resource(status, "memory")
    parts = [worst_word(status)]
    if status["guard"]["recording"] is False:
        parts.append(_trouble(status["guard"]))
    if plan_waits(status):
        parts.append("PLAN WAITS")
    parts += [inert(run["id"], 20), _state(run)]
    if status["guard"]["pid"]:
        parts.append(mode_word(status))
    if memory and memory["used"] is not None:
        share = "" if memory["share"] is None else f"{memory['share']:.0%} "
        parts.append(f"mem {share}{bytes_text(memory['used'])}")
        if memory["time_to_limit_s"]:
            parts.append(f"limit in {arrival_text(*memory['time_to_limit_s'])}")
    if run["experiment"] is not None:
        parts.append(f"exp {run['experiment']}")
    parts.append(f"ckpt {duration_text(status['checkpoints']['age_s'])}")
    return inert(" ".join(parts), 80)


def worst_word(status: Status) -> str:
    """Return the word of the light that needs a person most."""
    order = ("CRIT", "ACT", "WARN", "watch", "ok")
    words = {light["word"] for light in status["lights"]}
    return next((word for word in order if word in words), "no data")


def status_text(status: Status) -> str:
    """Return a page of plain lines."""
    run, store = status["run"], is_store(status)
    process = f"pid {run['pid']}" if run["pid"] else "no process known"
    over = "ended" if run["ended_us"] else inert(run["state"], 20)
    lines = [
        f"{inert(run['id'], 60)}  {inert(run['agent'], 40)} {process}  "
        f"{_state(run)}  up {duration_text(run['uptime_s'])}",
        *([f"{over}: {inert(run['end_reason'], 100)}"] if run["end_reason"] else []),
        store_head(status) if store else _where(run),
        _guarded(status, inert(run["path"], 200), over=run["ended_us"] is not None),
        *_control(status),
        "",
    ]
    lines += [
        f"{light['name']:<7} {light['word']:<7} {light['figure']:<16} "
        f"{inert(light['meaning'], 100)}".rstrip()
        for light in status["lights"]
    ]
    lines += _recovery(status)
    lines += ["", *store_rows(status), ""] if store else [""]
    lines += [*_figures(status), "", *_events(status), *_since(status)]
    return "\n".join(lines)


def _recovery(status: Status) -> list[str]:
    """Return what a crash would cost now, as a line beside the lights; nothing without a guess."""
    recovery = status.get("recovery") or {}
    rto = recovery.get("rto_s")
    if not rto:
        return []
    fix, lost_s = recovery.get("fix") or "", recovery.get("redo_s")
    over = (recovery.get("budget") or {}).get("over") or ()
    meaning = [*over, *([fix] if fix else [])]
    if lost_s:
        meaning.append(f"would do {duration_text(lost_s)} again")
    if recovery.get("error"):
        meaning.append(f"estimates, {recovery['error']}")
    figure = estimate_text(rto["low"], rto["likely"], rto["high"])
    word = "WARN" if over else recovery.get("grade") or "no data"
    words = f"RECOVER {word:<7} {figure:<16} "
    return [(words + inert("; ".join(meaning), 160)).rstrip()]


def _figures(status: Status) -> list[str]:
    """Return tiers and memory with their growth; nothing where neither was measured."""
    windows = status["windows"]
    head = "".join(f"{'+/min ' + window:>14}" for window in windows)
    lines = [_row(tier["name"], tier["bytes"], tier, windows) for tier in status["tiers"]]
    for name in ("unaccounted", "memory"):
        resource = _resource(status, name)
        if resource:
            lines.append(_row(name, resource["used"], resource, windows))
    if not lines and is_store(status):
        return []
    return [f"{'':<12}{'now':>7}{'entries':>9}{head}", *lines]


def _trouble(guard: Status) -> str:
    if not guard["pid"]:
        return "NO GUARD"
    return "NOT RECORDING" if guard["not_recording_since_us"] else "GUARD SILENT"


def _state(run: Status) -> str:
    return str(run["state"]).upper().replace("_", "-")


def _where(run: Status) -> str:
    if run["experiment"] is None:
        return "no experiment yet"
    title = inert(run["experiment_title"], 60)
    phase = inert(run["phase"] or "no phase", 20)
    return f"experiment {run['experiment']} {title} ({phase})"


def _guarded(status: Status, target: str, *, over: bool) -> str:
    guard = status["guard"]
    if not guard["pid"]:
        if over:
            return "no guard: the run is over"
        begin = f"memwatch guard {target} --detach"
        return f"no guard watches this run: nothing is recorded; begin with: {begin}"
    if guard["recording"] is False:
        since = guard["not_recording_since_us"]
        when = f" since {_clock(since)}" if since else ""
        return f"NOT RECORDING{when}: {inert(guard['not_recording_why'], 120)}"
    return f"guard, pid {guard['pid']}: {will_text(status)}"


def _control(status: Status) -> list[str]:
    """Return what is being done about the memory, and what a person should know or could do."""
    engine, suggestion = status.get("engine") or {}, status.get("suggestion") or {}
    plan, waiting = plan_text(status), inert(engine.get("waiting") or "", 160)
    error, stop_file = engine.get("policy_error"), engine.get("stop_file")
    return [
        *([f"{inert(stop_file, 120)} is there: no engine acts"] if stop_file else []),
        *([f"policy NOT taken over: {inert(error, 200)}"] if error else []),
        *([plan] if plan else []),
        *([f"nothing is done now: {waiting}"] if waiting else []),
        *hold_texts(status),
        *(f"! {inert(alert['text'], 160)}" for alert in status.get("alerts") or []),
        *([f"suggested: {inert(suggestion['text'], 160)}"] if suggestion.get("text") else []),
        *(f"learnt: {inert(one['text'], 160)}" for one in status.get("advice") or []),
    ]


def _since(status: Status) -> list[str]:
    """Return what happened since the last viewer left; a look at `status` does not reset it."""
    since = status.get("since")
    if not since:
        return []
    when = "the watch began" if since["first"] else "you left"
    lines = [inert(line, 160) for line in since["lines"]] or ["nothing of note"]
    return ["", f"since {when}, {_clock(since['from_us'])}:", *(f"  {line}" for line in lines)]


def _row(name: str, size: float | None, figures: Status, windows: list[str]) -> str:
    entries = figures.get("entries")
    cells = "".join(f"{bytes_text(figures['growth_per_min'].get(w)):>14}" for w in windows)
    return (
        f"{inert(name, 12):<12}{bytes_text(size):>7}{'' if entries is None else entries:>9}{cells}"
    )


def _events(status: Status) -> list[str]:
    newest = status["events"][-6:]
    return [f"{_clock(event['t_us'])}  {inert(event['text'], 100)}" for event in newest]


def _clock(t_us: int) -> str:
    return local_time_text(t_us, "%H:%M:%S")


def _resource(status: Status, name: str) -> Status | None:
    return next((r for r in status["resources"] if r["name"] == name), None)
