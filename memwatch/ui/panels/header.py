"""The top line: which run, in which state; and the banner: what must not be overlooked."""

from __future__ import annotations

from memwatch.domain.snapshot import PAST, RunInfo, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import duration_text
from memwatch.ui.format import age_text, clock_text, moment_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut, cut_line, joined, spread, width_of
from memwatch.ui.view import window_s

_STATE_STYLES = {
    "running": "ok",
    "draining": "watch",
    "paused": "watch",
    "read_only": "watch",
    "aborting": "warn",
    "crashed": "crit",
    "killed": "crit",
    "silent": "warn",
}
_ENGINE_WORDS = {
    "off": "guard watches",
    "observe": "guard watches",
    "shadow": "guard shadows",
    "ask": "guard asks",
    "act": "guard acts",
}


def header(frame: Frame, width: int) -> Line:
    """Return the top line: run, host, state, experiment, uptime, guard and the snapshot's time.

    Where the width does not do, the least important parts go first, the name shrinks last.
    """
    snapshot = frame.snapshot
    if snapshot is None:
        return spread([(" memwatch ", "title"), (inert(frame.target), "")], [], width)
    run = snapshot.run
    state = (run.state.upper().replace("_", "-"), _STATE_STYLES.get(run.state, "strong"))
    experiment = "" if run.experiment is None else f"{run.experiment}"
    phase = inert(run.phase or "", 24)
    clock: Line = [(f"  {clock_text(snapshot.t_us)} ", "strong")]
    parts: list[tuple[int, Line]] = [  # importance, then what is said
        (2, [("memwatch", "title")]),
        (9, [(cut(inert(run.id), 40), "strong")]),
        (4, [(f"@ {cut(inert(run.host), 24)}", "")]),
        (3, [(f"pid {run.pid}", "dim")]),
        (10, [state]),
        (9, [(trouble, "watch")] if (trouble := reading_trouble(snapshot)) else []),
        (8, [(f"exp {experiment}", "")] if experiment else []),
        (6, [(phase, "")] if phase else []),
        (5, [(_age_word(run), "dim")]),
        (7, [_guard_word(frame, snapshot)]),
    ]
    for least in range(2, 10):
        shown = [part for importance, part in parts if importance >= least and part]
        line: Line = [(" ", ""), *joined(shown, ("  ", ""))]
        if width_of(line) + width_of(clock) < width:
            return spread(line, clock, width)
    return cut_line([*parts[4][1], (" ", ""), *parts[1][1]], width)


def reading_trouble(snapshot: Snapshot) -> str:
    """Return how the run is read where that is not as it should be, in two words each."""
    source, backfill = snapshot.source, snapshot.guard.backfill_share
    parts = [
        "polling" if source.watch == "polling" and snapshot.run.state not in PAST else "",
        f"{source.damaged} damaged" if source.damaged else "",
        f"{source.gaps} gap{'' if source.gaps == 1 else 's'}" if source.gaps else "",
        "" if backfill is None else f"history {backfill * 100:.0f}%",
    ]
    return ", ".join(part for part in parts if part)


def _guard_word(frame: Frame, snapshot: Snapshot) -> tuple[str, str]:
    if frame.link.state == "lost":
        return "no guard", "alarm"
    if frame.silent:
        return "guard silent", "alarm"
    return _ENGINE_WORDS[snapshot.guard.engine], "dim"


def _age_word(run: RunInfo) -> str:
    lasted = duration_text(run.uptime_s)
    return f"ran {lasted}" if run.state in PAST else f"up {lasted}"


def banner(frame: Frame, width: int) -> list[Line]:
    """Return what must be seen on every screen, the worst first; mostly nothing."""
    said = [_not_recording(frame.snapshot), _lost(frame), _past(frame), _viewing(frame)]
    return [[(cut(f" {text}", width).ljust(width), style)] for text, style in said if text]


def _not_recording(snapshot: Snapshot | None) -> tuple[str, str]:
    if snapshot is None or snapshot.guard.recording is not False:
        return "", ""
    guard = snapshot.guard
    since = guard.not_recording_since_us
    text = "NOT RECORDING" + (f" since {clock_text(since, seconds=False)}" if since else "")
    why = inert(guard.not_recording_why, 120)
    return text + (f" ({why})" if why else ""), "alarm"


def _lost(frame: Frame) -> tuple[str, str]:
    link = frame.link
    if frame.snapshot is None:
        if link.state in ("lost", "silent"):
            return f"no guard: {inert(link.why, 120)}; trying again…", "alarm"
        return "connecting…", "notice"
    if link.state == "lost":
        since = clock_text(frame.snapshot.t_us, seconds=False)
        name = inert(frame.target or frame.snapshot.run.id, 40)
        return f"guard gone since {since} · restart: memwatch guard {name} --detach", "alarm"
    if frame.silent:
        quiet = f"guard does not answer for {age_text(link.quiet_s)}: figures are old"
        return f"{quiet} · to replace it: kill -KILL {frame.snapshot.guard.pid}", "alarm"
    if frame.idle:
        age = age_text(link.age_s)
        return f"guard answers, but has no new figures for {age}: these are old", "alarm"
    return "", ""


def _past(frame: Frame) -> tuple[str, str]:
    if not frame.past or frame.snapshot is None:
        return "", ""
    run = frame.snapshot.run
    text = f"PAST RUN: {run.state}"
    if run.ended_us:
        ago_s = max((frame.now_us or run.ended_us) - run.ended_us, 0) / 1e6
        ago = f", {duration_text(ago_s // 60 * 60)} ago" if ago_s >= 60 else ", just now"
        text += f" {moment_text(run.ended_us, frame.now_us or run.ended_us)}{ago}"
    reason = inert(run.end_reason, 100)
    style = "notice" if run.state == "ended" else "alarm"
    return text + (f" ({reason})" if reason and reason != run.state else ""), style


def _viewing(frame: Frame) -> tuple[str, str]:
    """Say that the screen does not show now."""
    view, snapshot = frame.view, frame.snapshot
    if snapshot is None:
        return "", ""
    if view.end_us is not None:
        span_s = window_s(view, frame.bounds)
        seconds = span_s < 3600
        start_us = view.end_us - round(span_s * 1e6)
        first = moment_text(start_us, snapshot.t_us, seconds=seconds)
        last = moment_text(view.end_us, snapshot.t_us, seconds=seconds)
        now = f"of {clock_text(snapshot.t_us)}" if view.frozen else "now"
        what = f"chart and log of {first}–{last}, figures are {now}"
        return f"{what}  (Esc: back to now)", "notice"
    goes_on = "" if snapshot.run.state in PAST else ", recording goes on"
    if view.frozen:
        return f"FROZEN at {clock_text(snapshot.t_us)}{goes_on}  (space: move on)", "notice"
    return "", ""
