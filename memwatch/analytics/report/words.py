"""Times and ranges in words, the same in lines and tables of a report."""

from __future__ import annotations

from memwatch.analytics.report.model import Report
from memwatch.domain.recovery import Span
from memwatch.domain.units import estimate_text, local_time_text


def when_text(t_us: int, report: Report) -> str:
    """Return a wall time: with its day where the report spans more than one."""
    first, last = (local_time_text(t, "%d %b") for t in (report.span.from_us, report.span.until_us))
    short = report.span.seconds < 1800
    return local_time_text(
        t_us, ("" if first == last else "%d %b ") + ("%H:%M:%S" if short else "%H:%M")
    )


def range_text(span: Span) -> str:
    """Return a duration as a range.

    >>> range_text(Span(low=18, likely=21, high=26))
    '21s (18–26s)'
    """
    return estimate_text(span.low, span.likely, span.high)
