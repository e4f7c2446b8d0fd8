"""The log: what happened, newest last, each event one line."""

from __future__ import annotations

from collections.abc import Sequence

from memwatch.domain.snapshot import Event
from memwatch.domain.text import inert
from memwatch.ui.format import moment_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line
from memwatch.ui.panels.paging import newest_page

SEVERITY_GLYPHS = {"info": " ", "notice": "•", "warning": "▲", "error": "!"}
_STYLES = {"info": "", "notice": "strong", "warning": "warn", "error": "crit"}


def log(frame: Frame, width: int, height: int) -> list[Line]:
    """Return the newest events of the span in view, and how well the run is read."""
    snapshot = frame.snapshot
    if snapshot is None:
        return []
    live = frame.view.live
    known = frame.events or (snapshot.events if live else ())
    events = newest_page(news(known), height, lambda e: e.t_us)
    lines = [event_line(event, snapshot.t_us) for event in events]
    nothing = "nothing happened yet" if live else "nothing happened in this span"
    return [cut_line(line, width) for line in lines] or [[(nothing, "dim")]]


def news(events: Sequence[Event]) -> list[Event]:
    """Leave out what a later line says again: the begin of all experiments but the present one."""
    begun = max((e.seq for e in events if e.kind == "experiment.begin"), default=0)
    return [e for e in events if e.kind != "experiment.begin" or e.seq == begun]


def event_line(event: Event, now_us: int) -> Line:
    """Return one event: time, severity, text, who said it."""
    style = _STYLES[event.severity]
    line: Line = [
        (moment_text(event.t_us, now_us, seconds=True), "dim"),
        (f" {SEVERITY_GLYPHS[event.severity]} ", style),
        (inert(event.text, 400), style),
    ]
    if event.origin and event.origin != "agent":
        line.append((f"  {inert(event.origin, 16)}", "dim"))
    return line


def log_title(frame: Frame) -> str:
    """Return what is wrong with the reading of the run, for the panel's frame; mostly nothing."""
    if frame.snapshot is None:
        return ""
    source = frame.snapshot.source
    parts: list[str] = []
    if source.damaged:
        parts.append(f"{source.damaged} damaged")
    if source.gaps:
        parts.append(f"{source.gaps} gaps")
    if source.unknown:
        parts.append(f"{source.unknown} unknown")
    if source.watch == "polling":
        parts.append(f"polling: {inert(source.watch_why, 40)}")
    backfill = frame.snapshot.guard.backfill_share
    if backfill is not None:
        parts.append(f"history {backfill * 100:.0f}% indexed")
    return ", ".join(parts)
