"""What must be seen on every screen, the worst first; mostly nothing."""

from __future__ import annotations

from collections.abc import Iterator

from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import duration_text
from memwatch.domain.wording import op_text
from memwatch.ui.deeds.offers import holds_of, proposed
from memwatch.ui.format import age_text, clock_text, moment_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut
from memwatch.ui.view import window_s
from memwatch.ui.words import owner_words, reason_words


def banner(frame: Frame, width: int) -> list[Line]:
    """Return what must be seen on every screen, the worst first; mostly nothing."""
    said = [
        _not_recording(frame.snapshot),
        _lost(frame),
        _past(frame),
        *(() if frame.past else _guard(frame.snapshot)),
        _viewing(frame),
    ]
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


def _guard(snapshot: Snapshot | None) -> Iterator[tuple[str, str]]:
    """Say what the guard cannot do, what it waits for a person with, and what holds the agent."""
    if snapshot is None:
        return
    engine, now_us = snapshot.engine, snapshot.t_us
    if engine.stop_file:
        file = inert(engine.stop_file, 80)
        yield f"STOP FILE: no guard of yours acts while {file} exists", "notice"
    if engine.policy_error:
        error = inert(engine.policy_error, 200)
        yield f"POLICY NOT TAKEN, the one before is in force: {error}", "alarm"
    if engine.open_breakers:
        yield _gave_up(engine.open_breakers)
    plan = proposed(snapshot)
    if plan is not None:
        steps = ", ".join(op_text(step.op) for step in plan.steps)
        yield f"GUARD ASKS (Y: look · N: no) to act at {plan.level}: {steps}", "notice"
    for op, (word, key) in _HELD.items():
        for hold in holds_of(op, snapshot)[:2]:
            since = f" since {moment_text(hold.since_us, now_us)}" if hold.since_us else ""
            said = f"{word} by {owner_words(hold.owner)}{since}"
            if not hold.effective:
                said = f"asked: {said}, the agent has not said yet"
            yield f"{said}  ({key}: release)  {reason_words(hold)}", "notice"


_HELD = {"pause": ("PAUSED", "Z"), "read_only": ("READ-ONLY", "R")}


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


def _gave_up(levels: tuple[str, ...]) -> tuple[str, str]:
    """Say what is not repeated: gentle steps without effect are no alarm, the next level acts."""
    try_again = "(G: let it try again)"
    if levels == ("warn",):
        return f"what the guard did at warn had no effect: it waits  {try_again}", "notice"
    return f"GUARD GAVE UP at {', '.join(levels)}: what it did had no effect  {try_again}", "alarm"
