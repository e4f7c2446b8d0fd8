"""Figures of a course: robust, bounded by what was seen, silent before there is enough."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.checkpoints.course import Seen, percentile, step_slope, sure_slope
from memwatch.analytics.checkpoints.habit import habit_of
from memwatch.analytics.checkpoints.next_size import has_room, next_bytes
from memwatch.analytics.checkpoints.stats import stats_of
from memwatch.domain.checkpoints import CheckpointStats
from tests.analytics.checkpoints.courses import MB, S, a_checkpoint, course_of

values = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30)


@given(values, st.floats(0, 1))
def test_a_percentile_lies_among_its_values(numbers: list[float], share: float) -> None:
    found = percentile(numbers, share)
    assert found is not None
    assert min(numbers) - 1e-3 <= found <= max(numbers) + 1e-3
    assert percentile(numbers, 0.0) == min(numbers)
    assert percentile(numbers, 1.0) == max(numbers)


@given(st.floats(-1e6, 1e6), st.floats(-1e9, 1e9), st.integers(2, 20))
def test_a_straight_line_has_its_own_slope(slope: float, start: float, count: int) -> None:
    line = [start + slope * place for place in range(count)]
    close = 1e-6 * (abs(start) + abs(slope) * count + 1)
    assert abs(step_slope(line) - slope) <= close
    assert abs(sure_slope(line) - slope) <= close


@given(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=20))
def test_what_is_sure_is_no_more_than_the_median(numbers: list[float]) -> None:
    assert sure_slope(numbers) <= step_slope(numbers)


def stats(course: list[Seen]) -> CheckpointStats:
    return stats_of(course, complete=len(course), failed=0, total_bytes=None)


def test_the_figures_are_those_of_the_course() -> None:
    found = stats(course_of([10 * MB, 11 * MB, 12 * MB, 13 * MB], duration_s=6.0))
    assert (found.duration_p50_s, found.duration_p95_s) == (6.0, 6.0)
    assert (found.full_bytes_p50, found.growth_bytes) == (11.5 * MB, 1.0 * MB)
    assert (found.every_s, found.time_share) == (600.0, 0.01)
    assert found.write_bytes_per_s == 46 * MB / 24


def test_persisted_values_are_not_written_by_the_checkpoint() -> None:
    one = [a_checkpoint(n, 100 * MB, file_bytes=10 * MB, duration_s=1.0) for n in range(3)]
    assert stats([Seen(n * S, it) for n, it in enumerate(one)]).write_bytes_per_s == 10 * MB


def test_small_checkpoints_tell_nothing_of_the_speed_of_writing() -> None:
    small = [Seen(n * S, a_checkpoint(n, 9_000, duration_s=0.06)) for n in range(3)]
    assert stats(small).write_bytes_per_s is None
    large = Seen(9 * S, a_checkpoint(9, 40 * MB, duration_s=0.5))
    assert stats([*small, large]).write_bytes_per_s == 80 * MB


def test_there_is_no_growth_before_three_and_no_figure_of_nothing() -> None:
    assert stats(course_of([1, 2])).growth_bytes is None
    assert stats([]) == CheckpointStats()
    assert stats(course_of([1])).every_s is None


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 1e4)), max_size=20))
def test_no_course_makes_an_impossible_figure(told: list[tuple[int, float]]) -> None:
    course = [
        Seen(at, a_checkpoint(n, n, duration_s=took)) for n, (at, took) in enumerate(sorted(told))
    ]
    found = stats(course)
    assert found.time_share is None or 0 <= found.time_share <= 1
    assert found.every_s is None or found.every_s >= 0
    assert found.write_bytes_per_s is None or found.write_bytes_per_s >= 0


def test_the_next_one_grows_and_never_counts_on_shrinking() -> None:
    assert next_bytes(None, 5.0) is None
    assert (next_bytes(100, None), next_bytes(100, 7.4), next_bytes(100, -50.0)) == (100, 107, 100)
    assert has_room(100, 250, 50) is True
    assert has_room(100, 249, 50) is False
    assert has_room(None, 10**12, 0) is None
    assert has_room(100, None, 0) is None


def test_a_habit_needs_three_intervals_and_forgives_what_happened_before() -> None:
    course = course_of([1] * 4, every_s=60)
    assert habit_of(course[:3], 180 * S, 1.5) is None
    found = habit_of(course, 180 * S + 50 * S, 1.5)
    assert found is not None
    assert (found.due_in_s, found.overdue) == (10.0, False)
    late = habit_of(course, 180 * S + 91 * S, 1.5)
    assert late is not None
    assert late.overdue
    rested = [*course, Seen(180 * S + 600 * S, a_checkpoint(9))]
    quiet = habit_of(rested, 180 * S + 600 * S + 600 * S, 1.5)
    assert quiet is not None
    assert quiet.due_in_s == -540
    assert not quiet.overdue, "it rested as long before"


def test_a_graph_that_rests_for_seconds_between_two_turns_is_not_overdue() -> None:
    course = [Seen(n * S // 2, a_checkpoint(n)) for n in range(20)]
    rests = habit_of(course, course[-1].at_us + 30 * S, 1.5)
    assert rests is not None
    assert not rests.overdue
    stuck = habit_of(course, course[-1].at_us + 61 * S, 1.5)
    assert stuck is not None
    assert stuck.overdue


@given(st.lists(st.integers(0, 10**12), min_size=4, max_size=30), st.integers(0, 10**13))
def test_what_is_due_is_never_overdue(ats: list[int], now_us: int) -> None:
    course = [Seen(at, a_checkpoint(n)) for n, at in enumerate(sorted(ats))]
    found = habit_of(course, now_us, 1.5)
    assert found is not None
    assert not (found.overdue and found.due_in_s > 0)
