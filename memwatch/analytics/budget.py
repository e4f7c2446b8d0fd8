"""What a crash may cost by the policy, and which checkpoint would bring it under that. Pure.

One judgement, for the engine that acts on it and for the view that shows it. Source: R12.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Final, Literal, NamedTuple, TypeGuard

from memwatch.config.policy import CrashBudget
from memwatch.domain.recovery import RecoveryBudget
from memwatch.domain.units import duration_text

BudgetRule = Literal["budget.recover_s", "budget.work_s"]
Kind = Literal["incremental", "full"]
VAIN: Final = "the last checkpoint for it did not bring it under"
"""Why the engine takes no further one, in its own words."""
_KINDS: Final[tuple[Kind, ...]] = ("incremental", "full")
"""From cheap to dear."""
_SECONDS = 120
"""Up to so many, people compare seconds rather than minutes."""
_TENTHS = 10
"""Under so many, tenths of them."""


class Crossing(NamedTuple):
    """One figure that is over its budget."""

    rule: BudgetRule
    figure_s: float
    limit_s: float
    kind: Kind | None
    """The cheapest checkpoint that brings it under; None where none would."""
    after_s: float | None
    """What the figure would be after it, or after the best of those that do not help."""


def crossings(
    budget: CrashBudget,
    rto_s: float | None,
    work_s: float | None,
    rto_after_s: Mapping[str, float],
    lead_s: float = 0.0,
) -> tuple[Crossing, ...]:
    """Return what is over its budget, time of recovery first.

    `rto_s`: likely seconds until it is back; `work_s`: seconds of work in no checkpoint; both None
    where nobody knows. `rto_after_s`: likely seconds right after a checkpoint, by kind. `lead_s`:
    so long before it is over its budget, work counts as over it: who saves then is in time.
    """
    found = []
    if budget.recover_s is not None and _over(rto_s, budget.recover_s):
        found.append(_too_slow(rto_s, budget.recover_s, rto_after_s))
    if budget.work_s is not None and _over(work_s, budget.work_s - lead_s):
        found.append(Crossing("budget.work_s", work_s, budget.work_s, "incremental", 0.0))
    return tuple(found)


def judge(
    budget: CrashBudget,
    rto_s: float | None,
    work_s: float | None,
    rto_after_s: Mapping[str, float],
) -> RecoveryBudget:
    """Return the budget, what is over it in words, and the checkpoint that helps; as above.

    >>> judge(CrashBudget(recover_s=60), 74.2, 9, {"incremental": 70, "full": 21})
    ... # doctest: +NORMALIZE_WHITESPACE
    RecoveryBudget(recover_s=60, work_s=None, over=('recovery 74s is over your 60s',), beyond=(),
                   checkpoint='full')
    """
    over = crossings(budget, rto_s, work_s, rto_after_s)
    kinds = [one.kind for one in over if one.kind is not None]
    return RecoveryBudget(
        recover_s=budget.recover_s,
        work_s=budget.work_s,
        over=tuple(over_text(one) for one in over),
        beyond=tuple(over_text(one) for one in over if one.kind is None),
        checkpoint=max(kinds, key=_KINDS.index, default=None),
    )


def over_text(crossing: Crossing) -> str:
    """Return a crossing in words.

    >>> over_text(Crossing("budget.work_s", 370, 300, "incremental", 0))
    '6m10s of work is in no checkpoint, over your 5m00s'
    >>> over_text(Crossing("budget.recover_s", 60.2, 60, None, None))
    'recovery 60s is just over your 60s'
    >>> over_text(Crossing("budget.work_s", 297, 300, "incremental", 0))
    '4m57s of work is in no checkpoint, nearly your 5m00s'
    """
    figure, limit = span_texts(crossing.figure_s, crossing.limit_s)
    over = f"{'just over' if figure == limit else 'over'} your {limit}"
    if crossing.figure_s <= crossing.limit_s:
        over = f"nearly your {limit}"
    if crossing.rule == "budget.work_s":
        return f"{figure} of work is in no checkpoint, {over}"
    return f"recovery {figure} is {over}"


def span_texts(figure_s: float, limit_s: float) -> tuple[str, str]:
    """Return two durations in the same unit, so that they can be compared at a glance."""
    if max(figure_s, limit_s) > _SECONDS:
        return duration_text(figure_s), duration_text(limit_s)
    if max(figure_s, limit_s) < _TENTHS:
        return f"{figure_s:.1f}s", f"{limit_s:.1f}s"
    return f"{figure_s:.0f}s", f"{limit_s:.0f}s"


def _over(figure_s: float | None, limit_s: float) -> TypeGuard[float]:
    return figure_s is not None and isfinite(figure_s) and figure_s > limit_s


def _too_slow(rto_s: float, limit_s: float, rto_after_s: Mapping[str, float]) -> Crossing:
    known = [
        (kind, after_s)
        for kind in _KINDS
        if (after_s := rto_after_s.get(kind)) is not None and isfinite(after_s)
    ]
    for kind, after_s in known:
        if after_s <= limit_s:
            return Crossing("budget.recover_s", rto_s, limit_s, kind, after_s)
    best_s = min((after_s for _, after_s in known), default=None)
    return Crossing("budget.recover_s", rto_s, limit_s, None, best_s)
