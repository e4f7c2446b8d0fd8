"""Medians are weighed by time, noise is told from growth, and what nobody measured is nothing."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.efficacy.rebound import back_level, came_back
from memwatch.analytics.efficacy.verdict import verdict_of
from memwatch.analytics.efficacy.window import Reading, Usage, first_behind, median_of, usage_of
from memwatch.analytics.series import TimeSeries

S = 1_000_000


def sampled(*points: tuple[float, float]) -> TimeSeries:
    series = TimeSeries(7200 * S)
    for second, value in points:
        series.add(round(second * S), value)
    return series


def test_a_value_counts_for_as_long_as_it_held() -> None:
    told = Reading(sampled((0, 10.0), (9, 50.0), (9.5, 60.0)), 75 * S, held=True)
    assert median_of(told, 0, 10 * S) == 10.0, "nine seconds of ten"
    assert median_of(told, 8 * S, 10 * S) == pytest.approx(30.0), "half of the time each"
    assert median_of(told, 8 * S, 10 * S, since=5 * S) == pytest.approx(55.0)
    assert median_of(told, 90 * S, 95 * S) is None, "told too long ago"


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=40))
def test_of_even_samples_it_is_the_plain_median(values: list[float]) -> None:
    series = sampled(*enumerate(values))
    found = median_of(Reading(series, 7 * S), 0, len(values) * S)
    assert found == pytest.approx(median(values))


@given(st.floats(-5e6, 5e6), st.floats(0, 1e9), st.integers(5, 60))
def test_growth_is_no_noise(per_s: float, base: float, seconds: int) -> None:
    series = sampled(*((second, base + per_s * second) for second in range(seconds)))
    found = usage_of(Reading(series, 7 * S), 0, seconds * S)
    assert found is not None
    assert found.slope_per_s == pytest.approx(per_s, rel=1e-3, abs=1.0)
    assert found.noise == pytest.approx(0, abs=abs(per_s) * 1e-3 + 1.0)
    assert not found.gap


def test_one_leap_is_no_noise_and_swings_are() -> None:
    leap = sampled(*((n, 100.0 if n != 12 else 900.0) for n in range(30)))
    swings = sampled(*((n, 100.0 + 10 * (n % 2)) for n in range(30)))
    quiet, loud = (usage_of(Reading(one, 7 * S), 0, 30 * S) for one in (leap, swings))
    assert quiet is not None
    assert loud is not None
    assert (quiet.median, quiet.noise) == (100.0, 0.0)
    assert loud.noise == pytest.approx(10.0, rel=0.1)


def test_a_gap_in_the_window_is_said_and_its_values_do_not_stretch() -> None:
    found = usage_of(Reading(sampled((0, 10.0), (1, 10.0), (29, 90.0)), 7 * S), 0, 30 * S)
    assert found is not None
    assert (found.median, found.gap) == (10.0, True)
    assert usage_of(Reading(sampled((50, 1.0)), 7 * S), 0, 30 * S) is None


def test_the_first_sample_behind_an_instant_speaks_for_it_for_a_while() -> None:
    slow = Reading(sampled((0, 1.0), (20, 2.0)), 15 * S)
    assert first_behind(slow, 10 * S) == 2.0
    assert first_behind(slow, 1 * S) is None


@given(
    before=st.floats(1, 1e12),
    share=st.floats(-3, 1),
    noise=st.floats(0, 0.5),
    slope=st.floats(-1e6, 1e6),
)
def test_a_verdict_is_never_better_than_what_was_measured(
    before: float, share: float, noise: float, slope: float
) -> None:
    usage = Usage(before, noise * before, slope)
    found = verdict_of(usage, before * (1 - share), 25.0)
    if found == "effective":
        assert share >= 0.0199
        assert share >= noise * 0.999
    if found == "worse":
        assert -share >= 0.0199
    if share >= max(0.021, noise * 1.01):
        assert found == "effective"
    assert verdict_of(Usage(0.0, 0.0, 0.0), 0.0, 25.0) == "none", "of nothing nothing was freed"


def test_one_that_swings_is_not_back_and_one_that_comes_close_is() -> None:
    level = back_level(100.0, 40.0, 0.0)
    assert level == pytest.approx(99.2)
    swing = [(n * S, 60.0 if n != 7 else 120.0) for n in range(20)]
    assert came_back(swing, level) is None
    assert came_back(swing, level, width=1) == 7 * S, "what an agent tells does not swing"
    near = [(n * S, min(60.0 + 2 * n, 99.5)) for n in range(60)]
    assert came_back(near, level) == pytest.approx(19.6 * S, rel=0.03)
    assert came_back(near[:3], level) is None
