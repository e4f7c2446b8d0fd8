"""How good a recovery is, and which of its terms to mend. Source: R12, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memwatch.analytics.recovery.work import Work
from memwatch.domain.recovery import Grade, RecoveryTerm, Span
from memwatch.domain.units import bytes_text, duration_text

GOOD_S, WATCH_S = 30.0, 120.0
_WORTH = 0.15
"""A checkpoint that saves less of the whole than this is not worth a word."""


def grade_of(rto: Span, *, over_budget: bool = False) -> Grade:
    """Return the grade of an estimate, by its likely value; nothing over its budget is good."""
    if rto.likely <= GOOD_S:
        return "watch" if over_budget else "good"
    return "watch" if rto.likely <= WATCH_S else "poor"


def fix_of(
    rto: Span, terms: Sequence[RecoveryTerm], work: Work, after_s: Mapping[str, float]
) -> str:
    """Return which term to mend and how, in one line; empty while the grade is good.

    `after_s`: likely seconds right after a checkpoint, by kind.
    """
    if grade_of(rto) == "good" or not terms:
        return ""
    saved_s = rto.likely - after_s.get("full", rto.likely)
    if saved_s >= _WORTH * rto.likely:
        return f"{_chain(work)}: a full checkpoint saves {duration_text(saved_s)}"
    largest = max(terms, key=lambda term: term.seconds)
    return f"{largest.name} {duration_text(largest.seconds)}: {_ADVICE[largest.name]}"


def _chain(work: Work) -> str:
    """Return what a full checkpoint would make needless."""
    parts = []
    if work.delta_bytes:
        parts.append(f"chain of {bytes_text(work.delta_bytes)}")
    if work.tail_records:
        parts.append(f"{work.tail_records:,} records to replay")
    elif not parts:
        parts.append(f"{bytes_text(work.log_bytes)} of log to read")
    return " and ".join(parts)


_ADVICE = {
    "start": "the program's own, not a checkpoint's business: make it start faster",
    "load": "the full checkpoint is too large: keep less in the tiers (retention)",
    "blobs": "too much in persisted values: keep less of them, or make them rebuildable",
    "read": "too much log since the full checkpoint: take them more often (checkpoints.full_s)",
    "replay": "too many records since the full checkpoint: take them more often "
    "(checkpoints.full_s)",
}
