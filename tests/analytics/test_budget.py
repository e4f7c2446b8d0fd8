"""What is over its budget, in words, and the cheapest checkpoint that helps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.budget import judge
from memwatch.config.policy import CrashBudget

BOTH = CrashBudget(recover_s=60, work_s=300)
S = st.one_of(st.none(), st.floats(0, 1e6))


@pytest.mark.parametrize(
    ("rto_s", "work_s", "after", "over", "kind"),
    [
        (60, 300, {}, (), None),
        (74, 9, {"incremental": 50, "full": 20}, ("recovery 74s is over your 60s",), "incremental"),
        (74, 9, {"incremental": 70, "full": 20}, ("recovery 74s is over your 60s",), "full"),
        (74, 9, {"incremental": 70, "full": 70}, ("recovery 74s is over your 60s",), None),
        (200, 9, {}, ("recovery 3m20s is over your 1m00s",), None),
        (9, 370, {}, ("6m10s of work is in no checkpoint, over your 5m00s",), "incremental"),
        (
            74,
            370,
            {"full": 20},
            ("recovery 74s is over your 60s", "6m10s of work is in no checkpoint, over your 5m00s"),
            "full",
        ),
    ],
)
def test_what_is_over_and_what_helps(
    rto_s: float, work_s: float, after: dict[str, float], over: tuple[str, ...], kind: str | None
) -> None:
    found = judge(BOTH, rto_s, work_s, after)
    assert (found.over, found.checkpoint) == (over, kind)
    assert (found.recover_s, found.work_s) == (60, 300)


def test_without_a_budget_nothing_is_over() -> None:
    found = judge(CrashBudget(), 1e6, 1e6, {})
    assert (found.over, found.checkpoint, found.recover_s) == ((), None, None)


@given(rto_s=S, work_s=S, after=st.dictionaries(st.sampled_from(["incremental", "full"]), S))
def test_a_checkpoint_is_named_only_for_what_is_over_and_only_one_that_helps(
    rto_s: float | None, work_s: float | None, after: dict[str, float | None]
) -> None:
    known = {kind: seconds for kind, seconds in after.items() if seconds is not None}
    found = judge(BOTH, rto_s, work_s, known)
    slow, much = rto_s is not None and rto_s > 60, work_s is not None and work_s > 300
    assert len(found.over) == slow + much
    if found.checkpoint is not None:
        assert found.over
        assert much or known[found.checkpoint] <= 60
    elif slow:
        assert all(seconds > 60 for seconds in known.values())
