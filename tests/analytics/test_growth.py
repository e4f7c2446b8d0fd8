"""Slopes are robust, appear only with enough data, and arrival at the limit is a range."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.growth import Growth, Slope, time_to_limit

S = 1_000_000
WINDOWS = (60.0, 600.0, 86400.0)


def grown(seconds: int, value_at: object, start_s: int = 5_000) -> Growth:
    growth = Growth(WINDOWS)
    for second in range(seconds):
        growth.add((start_s + second) * S, value_at(second))  # type: ignore[operator]  # a lambda
    return growth


def per_min(growth: Growth) -> list[float | None]:
    return [slope.per_min if slope else None for slope in growth.slopes()]


@given(st.floats(-1e9, 1e9), st.floats(0, 1e12), st.integers(0, 10**6))
def test_a_straight_line_gives_its_own_slope(rate: float, base: float, start_s: int) -> None:
    growth = grown(700, lambda second: base + rate * second / 60, start_s)
    short, middle, day = per_min(growth)
    assert short == pytest.approx(rate, rel=1e-3, abs=1.0)
    assert middle == pytest.approx(rate, rel=1e-3, abs=1.0)
    assert day is None, "a day's figure says nothing after ten minutes"


def test_windows_fill_one_after_another() -> None:
    assert per_min(grown(10, float)) == [None, None, None]
    short, middle, _ = per_min(grown(30, float))
    assert short == pytest.approx(60.0)
    assert middle is None
    assert per_min(grown(130, float))[1] == pytest.approx(60.0)
    assert per_min(grown(1300, float))[2] == pytest.approx(60.0)


def test_one_spike_does_not_tilt_the_slope() -> None:
    growth = grown(600, lambda second: 1e9 if second == 580 else 100.0)
    assert per_min(growth)[1] == pytest.approx(0.0, abs=1e-6)


def test_a_saw_tooth_without_a_rising_floor_is_not_steady_growth() -> None:
    growth = grown(600, lambda second: 100e6 + (second % 40) * 1e6)
    middle = growth.slopes()[1]
    assert middle is not None
    assert not middle.steady
    assert time_to_limit(140e6, 300e6, growth.slopes(), WINDOWS) is None


def test_noise_gives_no_time_to_limit_and_a_trend_in_noise_does() -> None:
    dice = random.Random(7)
    flat = grown(600, lambda _: 100e6 + dice.gauss(0, 1e6))
    assert time_to_limit(100e6, 300e6, flat.slopes(), WINDOWS) is None
    rising = grown(600, lambda second: 100e6 + second * 1e6 / 6 + dice.gauss(0, 1e6))
    found = time_to_limit(200e6, 300e6, rising.slopes(), WINDOWS)
    assert found is not None
    low, high = found
    assert low <= 600 <= high


def test_arrival_is_now_above_the_limit_and_unknown_without_one() -> None:
    assert time_to_limit(10, 5, [None], (60.0,)) == (0.0, 0.0)
    assert time_to_limit(10, None, [Slope(1, 1, 1)], (60.0,)) is None


def test_samples_from_the_past_change_nothing() -> None:
    growth = grown(100, float)
    before = per_min(growth)
    growth.add(10 * S, 1e12)
    assert per_min(growth) == before


def test_a_lone_short_window_counts_only_for_a_fast_climb() -> None:
    refill = [Slope(6e6, 6e6, 6e6), None, None]
    assert time_to_limit(100e6, 300e6, refill, WINDOWS) is None
    climb = [Slope(60e6, 50e6, 70e6), None, None]
    assert time_to_limit(100e6, 300e6, climb, WINDOWS) == pytest.approx((171.4, 240.0), rel=1e-3)
