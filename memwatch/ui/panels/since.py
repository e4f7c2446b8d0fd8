"""What happened since the last viewer left, what to know now, and what the past teaches."""

from __future__ import annotations

from memwatch.domain.control import Alert
from memwatch.domain.text import inert
from memwatch.ui.format import moment_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut_line, wrapped
from memwatch.ui.panels.log import SEVERITY_GLYPHS, SEVERITY_STYLES


def since_heading(frame: Frame) -> str:
    """Return since when; the begin of the guard's record where nobody ever looked."""
    since = frame.snapshot.since if frame.snapshot else None
    if frame.snapshot is None or since is None:
        return "since you left"
    when = moment_text(since.from_us, frame.snapshot.t_us)
    return f"since the guard began ({when})" if since.first else f"since you left ({when})"


def since_left(frame: Frame, width: int, height: int) -> list[Line]:
    """Return raised alerts, what happened, most important first, and what the past teaches."""
    snapshot = frame.snapshot
    if snapshot is None:
        return []
    lines = [row for alert in snapshot.alerts for row in _alert(alert, snapshot.t_us, width)]
    if snapshot.since is None:
        lines += wrapped("nobody left since this guard began", width, "dim")
    else:
        for text in snapshot.since.lines:
            lines += _indented("· ", inert(text, 300), width)
    for advice in snapshot.advice:
        setting = f" → set {inert(advice.set, 80)}" if advice.set else ""
        lines += _indented("▸ ", inert(advice.text, 300) + setting, width, "strong")
    return [cut_line(line, width) for line in lines[:height]]


def _alert(alert: Alert, now_us: int, width: int) -> list[Line]:
    style = SEVERITY_STYLES[alert.severity]
    text = f"{inert(alert.text, 300)}, since {moment_text(alert.raised_us, now_us)}"
    return _indented(f"{SEVERITY_GLYPHS[alert.severity]} ", text, width, style)


def _indented(lead: str, text: str, width: int, style: str = "") -> list[Line]:
    rows = wrapped(text, max(width - len(lead), 1), style)
    heads = [(lead, style or "dim"), *[(" " * len(lead), "")] * (len(rows) - 1)]
    return [[head, *row] for head, row in zip(heads, rows, strict=True)]
