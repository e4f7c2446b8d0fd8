"""Recoveries that can be reckoned with: whoever wrote a log or a file of them."""

from __future__ import annotations

from math import isfinite
from typing import Final

from msgspec.structs import replace

from memwatch.domain.record import LARGEST
from memwatch.domain.recovery import MeasuredTerm, PastRecovery, Span
from memwatch.domain.text import inert

_MOST_S: Final = 1e9
"""Thirty years: no recovery took as long."""
_MOST_TERMS: Final = 16
_NAME: Final = 20


def sound(done: PastRecovery) -> PastRecovery | None:
    """Return a recovery as it may go into sums and onto a screen; None for one that never was."""
    times = (done.total_s, done.waited_s or 0.0)
    if not is_amount(done.t_us, done.bytes, done.state_bytes, done.memory_bytes):
        return None
    if not is_time(*times) or not all(map(_is_term, (*done.terms, *done.expected))):
        return None
    estimate = done.estimate
    return replace(
        done,
        terms=_named(done.terms),
        expected=_named(done.expected),
        estimate=estimate if estimate is not None and _is_span(estimate) else None,
    )


def is_time(*seconds: float) -> bool:
    """Whether all of these are durations in seconds."""
    return all(isfinite(one) and 0 <= one <= _MOST_S for one in seconds)


def is_amount(*counts: int) -> bool:
    """Whether all of these are counts, bytes or instants that sums can hold."""
    return all(0 <= one <= LARGEST for one in counts)


def _is_term(term: MeasuredTerm) -> bool:
    return is_time(term.seconds) and is_amount(term.bytes, term.records)


def _is_span(span: Span) -> bool:
    return is_time(span.low, span.likely, span.high)


def _named(terms: tuple[MeasuredTerm, ...]) -> tuple[MeasuredTerm, ...]:
    return tuple(replace(one, name=inert(one.name, _NAME)) for one in terms[:_MOST_TERMS])
