"""A report as Markdown: ten lines, then tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from memwatch.analytics.report.escape import escaped, inline
from memwatch.analytics.report.model import Report
from memwatch.analytics.report.tables import tables


def markdown(report: Report) -> str:
    """Return the whole report, a line feed at its end."""
    parts = (
        [f"# Report of {escaped(report.run)}", ""],
        [f"- **{line.label}:** {inline(line.text)}" for line in report.lines],
        _notes(report),
        *tables(report),
    )
    return "\n".join(chain.from_iterable(parts)) + "\n"


def _notes(report: Report) -> Iterator[str]:
    if report.notes:
        yield ""
    for note in report.notes:
        yield f"> {inline(note)}"
