"""Columns keep least and greatest, hold what is held, and draw no line over a gap."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.series import TimeSeries
from memwatch.domain.sample import Column

S = 1_000_000
samples = st.lists(
    st.tuples(st.integers(0, 200 * S), st.floats(0, 1e12)), min_size=1, max_size=60
).map(lambda found: sorted(found, key=lambda one: one[0]))


def filled(found: list[tuple[int, float]]) -> TimeSeries:
    series = TimeSeries(3600 * S)
    for at, value in found:
        series.add(at, value)
    return series


@given(samples, st.integers(1, 80))
def test_no_peak_is_lost_whatever_the_columns(found: list[tuple[int, float]], count: int) -> None:
    columns = filled(found).columns(0, 201 * S, count, 10_000 * S)
    values = [value for _, value in found]
    assert len(columns) == count
    assert max(c.max for c in columns if c.max is not None) == max(values)
    assert min(c.min for c in columns if c.min is not None) == min(values)
    assert columns[-1].last == values[-1]


@given(samples, st.integers(1, 80))
def test_columns_agree_with_a_plain_count(found: list[tuple[int, float]], count: int) -> None:
    start, end = 20 * S, 180 * S
    columns = filled(found).columns(start, end, count, 0)
    for number, column in enumerate(columns):
        low = start + (end - start) * number // count
        high = start + (end - start) * (number + 1) // count
        inside = [value for at, value in found if low <= at < high]
        if inside:
            assert column == Column(min(inside), max(inside), inside[-1])


def test_a_value_is_held_between_close_samples_and_a_long_silence_is_a_gap() -> None:
    series = filled([(0, 1.0), (4 * S, 2.0), (40 * S, 3.0)])
    columns = series.columns(0, 50 * S, 50, 10 * S)
    assert [c.last for c in columns[:5]] == [1.0, 1.0, 1.0, 1.0, 2.0]
    assert all(c.gap for c in columns[5:40])
    assert columns[40].last == 3.0
    assert columns[49].last == 3.0, "behind the newest sample the value is held for a while"


def test_before_the_first_sample_there_is_nothing() -> None:
    assert all(c.gap for c in filled([(100 * S, 1.0)]).columns(0, 50 * S, 5, 1000 * S))


def test_memory_stays_bounded_and_the_newest_span_is_kept() -> None:
    series = TimeSeries(100 * S)
    for second in range(10_000):
        series.add(second * S, second)
    assert len(series) <= 107
    first = series.first
    assert first is not None
    assert first <= 9_900 * S


def test_a_sample_from_the_past_is_dropped() -> None:
    series = filled([(10 * S, 1.0)])
    series.add(5 * S, 9.0)
    assert series.last == (10 * S, 1.0)


def test_median_of_an_empty_span_is_the_value_held() -> None:
    series = filled([(0, 5.0), (1 * S, 7.0), (2 * S, 100.0)])
    assert series.median(0, 3 * S, S) == 7.0
    assert series.median(10 * S, 20 * S, 8 * S) == 100.0
    assert series.median(10 * S, 20 * S, 7 * S) is None, "a gap: nothing was measured"
    assert series.value_at(20 * S, max_age_us=S) is None


@given(samples, st.randoms())
def test_samples_that_come_late_find_their_place(
    found: list[tuple[int, float]], dice: random.Random
) -> None:
    shuffled = found.copy()
    dice.shuffle(shuffled)
    series = TimeSeries(3600 * S)
    for at, value in shuffled:
        series.insert(at, value)
    held = list(series.between(0, 201 * S))
    assert sorted(held) == sorted(found)
    assert [at for at, _ in held] == [at for at, _ in found]


def test_a_sample_older_than_the_span_is_not_taken_late() -> None:
    series = TimeSeries(10 * S)
    series.add(100 * S, 1.0)
    series.insert(89 * S, 2.0)
    series.insert(95 * S, 3.0)
    assert list(series.between(0, 200 * S)) == [(95 * S, 3.0), (100 * S, 1.0)]
