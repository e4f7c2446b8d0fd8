"""Experiments around an intervention, and what else may explain what was measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.efficacy.around import Tried, around
from memwatch.analytics.efficacy.confounders import Happened, confounders, of_usage
from memwatch.analytics.efficacy.window import Usage
from memwatch.domain.intervention import ExperimentsAround

S = 1_000_000


def tried(*spans: tuple[int, int, str]) -> list[Tried]:
    return [Tried(began * S, ended * S, status) for began, ended, status in spans]


def test_the_next_three_are_held_against_the_three_before() -> None:
    found = around(
        tried(
            (0, 90, "kept"),
            (90, 100, "kept"),
            (100, 112, "failed"),
            (112, 120, "discarded"),
            (120, 140, "kept"),  # in progress meanwhile
            (141, 144, "kept"),
            (144, 150, "aborted"),
            (150, 154, "crashed"),
            (154, 162, "done"),
            (162, 900, "kept"),
        ),
        125 * S,
        130 * S,
    )
    assert found == ExperimentsAround(
        before=3, after=3, before_s=10.0, after_s=4.0, before_ok=2, after_ok=2
    )


def test_less_than_three_are_not_enough_for_a_duration() -> None:
    found = around(tried((0, 5, "kept"), (20, 25, "kept")), 10 * S, 15 * S)
    assert found == ExperimentsAround(before=1, after=1, before_ok=1, after_ok=1)


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 50), st.sampled_from(["kept", "failed"])))
)
def test_none_of_them_overlaps_with_it(spans: list[tuple[int, int, str]]) -> None:
    found = around(tried(*((b, b + length, how) for b, length, how in spans)), 40 * S, 60 * S)
    assert found.before == min(sum(b + length <= 40 for b, length, _ in spans), 3)
    assert found.after == min(sum(b >= 60 for b, _, _ in spans), 3)
    assert (found.before_s is None) == (found.before < 3)


def test_what_else_happened_is_said_with_its_time_and_what_is_common_is_counted() -> None:
    others = [
        Happened(60 * S, "purge recent"),
        Happened(80 * S, "purge recent"),
        Happened(101 * S, "experiment ended", counted=True),
        Happened(102 * S, "experiment ended", counted=True),
        Happened(104 * S, "phase validation"),
        Happened(103 * S, "limit 200M, was 300M"),
        Happened(120 * S, "restart"),
    ]
    assert confounders(100 * S, 103 * S, others, 12 * S, 30 * S) == [
        "purge recent 20s before",
        "phase validation 1.0s after",
        "limit 200M, was 300M meanwhile",
        "experiment ended ×2",
    ]


def test_usage_that_grew_before_is_named_and_so_is_a_gap() -> None:
    assert of_usage(None, 30.0) == []
    assert of_usage(Usage(500e6, 1e6, 0.01e6), 30.0) == []
    assert of_usage(Usage(500e6, 1e6, 1e6, gap=True), 30.0) == [
        "it grew by 60M/min before",
        "a gap in the recording before",
    ]
    assert of_usage(Usage(900.0, 0.0, 2.0), 30.0, "tokens") == ["it grew by 120 tokens/min before"]
