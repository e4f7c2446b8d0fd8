"""How past estimates did against what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from memwatch.domain.recovery import PastRecovery
from memwatch.domain.units import change_text

_SHOWN = 5


def error_text(past: Iterable[PastRecovery]) -> str:
    """Return the range of errors of the newest five; empty before the first.

    `past` is newest first. One that nothing was estimated for says nothing.
    """
    known = (one.error_share for one in past)
    errors = list(islice((error for error in known if error is not None), _SHOWN))
    if not errors:
        return ""
    low, high = change_text(min(errors)), change_text(max(errors))
    if len(errors) == 1:
        return f"last: {low}"
    return f"last {len(errors)}: {low.removesuffix(' %')} … {high}"
