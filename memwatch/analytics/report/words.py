"""Counts, times and ranges in words, the same in lines and tables of a report."""

from __future__ import annotations

from memwatch.analytics.report.model import Report
from memwatch.domain.recovery import Span
from memwatch.domain.units import duration_text, local_time_text


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "plan"), counted(3, "loss", "losses")
    ('1 plan', '3 losses')
    """
    return f"{count} {one if count == 1 else many or one + 's'}"


def when_text(t_us: int, report: Report) -> str:
    """Return a wall time: with its day where the report spans more than one."""
    first, last = (local_time_text(t, "%d %b") for t in (report.span.from_us, report.span.until_us))
    short = report.span.seconds < 1800
    return local_time_text(
        t_us, ("" if first == last else "%d %b ") + ("%H:%M:%S" if short else "%H:%M")
    )


def span_text(span: Span) -> str:
    """Return a duration as a range.

    >>> span_text(Span(low=18, likely=21, high=26))
    '21s (18s–26s)'
    """
    low, likely, high = map(duration_text, (span.low, span.likely, span.high))
    return f"{likely} ({low}–{high})"
