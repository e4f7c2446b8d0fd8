"""The log: what happened, newest last, each event one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from memwatch.domain.snapshot import Event
from memwatch.domain.text import inert
from memwatch.ui.event_log import is_notable
from memwatch.ui.format import age_text, moment_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line
from memwatch.ui.panels.header import reading_trouble
from memwatch.ui.panels.paging import Page

SEVERITY_GLYPHS = {"info": " ", "notice": "•", "warning": "▲", "error": "!"}
SEVERITY_STYLES = {"info": "", "notice": "strong", "warning": "warn", "error": "crit"}
_RANKS = {severity: rank for rank, severity in enumerate(SEVERITY_GLYPHS)}
_FOLD_US = 60_000_000
"""Purges of one kind are told in one line per minute."""
_PINNED_US = 900_000_000
"""How long something notable stays in sight although the page moved on."""
_PINNED_SHARE = 3
"""Pinned lines take at most one in so many."""


class LogPanel:
    """The log on a page that stands still most of the time."""

    def __init__(self) -> None:
        self._page = Page()

    def __call__(self, frame: Frame, width: int, height: int) -> list[Line]:
        """Return the newest events of the span in view, what is notable longest."""
        snapshot = frame.snapshot
        if snapshot is None:
            return []
        if not frame.view.live:
            events = news(frame.events)[-height:]
            nothing = "nothing happened in this span"
        else:
            events = self._live(news(frame.events or snapshot.events), height, snapshot.t_us)
            nothing = "nothing happened yet"
        lines = [event_line(event, snapshot.t_us) for event in events]
        return [cut_line(line, width) for line in lines] or [[(nothing, "dim")]]

    def _live(self, events: list[Event], height: int, now_us: int) -> list[Event]:
        if not events:
            return []
        most = height // _PINNED_SHARE
        count = len(_pinned(events, events[-height:][0], now_us, most))
        page = self._page.newest(events, height - count, lambda event: event.seq)
        return [*_pinned(events, page[0], now_us, count), *page]


def _pinned(events: Iterable[Event], first: Event, now_us: int, most: int) -> list[Event]:
    """Return what is notable and stands before the page, the newest of the gravest."""
    found = [
        event
        for event in events
        if event.seq < first.seq and is_notable(event) and now_us - event.t_us < _PINNED_US
    ]
    found.sort(key=lambda event: (_RANKS[event.severity], event.seq), reverse=True)
    return sorted(found[:most], key=lambda event: event.seq)


def news(events: Sequence[Event]) -> list[Event]:
    """Leave out what another line says: begun experiments but the present one, purge by purge."""
    begun = max((e.seq for e in events if e.kind == "experiment.begin"), default=0)
    told: list[Event] = []
    open_at: dict[tuple[str, int], tuple[int, int]] = {}
    for event in events:
        if event.kind == "experiment.begin" and event.seq != begun:
            continue
        if is_notable(event):
            open_at.clear()
        if event.kind != "purge":
            told.append(event)
            continue
        what = event.text.partition(":")[0]
        kind = what, event.t_us // _FOLD_US  # by the clock: lines stay as older ones leave
        place, count = open_at.setdefault(kind, (len(told), 0))
        open_at[kind] = place, count + 1
        if count:
            told[place] = _folded(told[place], event, what, count + 1)
        else:
            told.append(event)
    return told


def _folded(first: Event, last: Event, what: str, count: int) -> Event:
    span = age_text((last.t_us - first.t_us) / 1e6)
    newest = last.text.partition(":")[2]
    return replace(first, text=f"{what} ×{count} in {span}, last{newest}")


def event_line(event: Event, now_us: int) -> Line:
    """Return one event: time, severity, text, who said it."""
    style = SEVERITY_STYLES[event.severity]
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
    trouble = reading_trouble(frame.snapshot)
    if source.watch_why:
        trouble = trouble.replace("polling", f"polling ({inert(source.watch_why, 40)})", 1)
    unknown = f"{source.unknown} of unknown kind" if source.unknown else ""
    parts = [trouble, unknown]
    return ", ".join(part for part in parts if part)
