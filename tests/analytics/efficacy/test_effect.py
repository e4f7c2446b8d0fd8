"""On known truth: freed within 5 %, rebound within 10 %; nothing before it was measured."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.analytics.efficacy.effect import EffectWatch, When
from memwatch.analytics.efficacy.window import Reading
from memwatch.analytics.series import TimeSeries
from tests.analytics.efficacy.truth import DONE_US, MB, SPANS, WHEN, S, Truth, reading, watched

HOUR = 3_700


@settings(max_examples=40)
@given(
    freed=st.floats(100, 450),
    late_s=st.floats(0.1, 5),
    back_s=st.floats(120, 3_000),
    noise=st.floats(0, 0.004),
    period_s=st.sampled_from([1.0, 2.0]),
    seed=st.integers(0, 1000),
)
def test_what_was_freed_and_when_it_came_back(
    freed: float, late_s: float, back_s: float, noise: float, period_s: float, seed: int
) -> None:
    truth = Truth(
        freed=freed * MB,
        late_s=late_s,
        per_min=freed * MB / back_s * 60,
        noise=noise,
        period_s=period_s,
        seed=seed,
    )
    found = watched(reading(truth.series(HOUR)), HOUR, every_s=60).effect(DONE_US + HOUR * S)
    assert found.verdict == "effective"
    assert found.freed is not None
    held_then = truth.before - truth.at(10.0)
    assert found.freed == pytest.approx(held_then, rel=0.05)
    assert found.rebound_s == pytest.approx(truth.back_s, rel=0.10)
    assert found.held_s is None


@settings(max_examples=40)
@given(noise=st.floats(0, 0.05), seed=st.integers(0, 10_000), period_s=st.sampled_from([1.0, 2.0]))
def test_noise_alone_is_no_effect(noise: float, seed: int, period_s: float) -> None:
    truth = Truth(freed=0.0, noise=noise, seed=seed, period_s=period_s)
    found = watched(reading(truth.series(700)), 700, every_s=50).effect(DONE_US + 700 * S)
    assert found.verdict == "none"
    assert (found.rebound_s, found.held_s) == (None, None)


@settings(max_examples=30)
@given(late_s=st.floats(13, 500), freed=st.floats(50, 400))
def test_what_is_freed_late_is_seen_at_ten_minutes(late_s: float, freed: float) -> None:
    read = reading(Truth(freed=freed * MB, late_s=late_s).series(700))
    soon = watched(read, 60).effect(DONE_US + 60 * S)
    assert soon.verdict == "none"
    found = watched(read, 700, every_s=50).effect(DONE_US + 700 * S)
    assert (found.verdict, found.after_10s) == ("effective", 500 * MB)
    assert found.freed == pytest.approx(freed * MB)
    assert found.held_s == pytest.approx(700, abs=10)


def test_it_is_held_until_it_is_back() -> None:
    truth = Truth(freed=100 * MB, per_min=10 * MB)
    read = reading(truth.series(HOUR))
    for minutes in (1, 5, 9):
        found = watched(read, minutes * 60).effect(DONE_US + minutes * 60 * S)
        assert found.held_s == pytest.approx(minutes * 60, abs=5)
        assert found.rebound_s is None
    found = watched(read, HOUR, every_s=20).effect(DONE_US + HOUR * S)
    assert found.rebound_s == pytest.approx(600, rel=0.10)
    forever = watched(reading(Truth().series(HOUR)), HOUR, every_s=60)
    assert forever.settled
    assert forever.effect(DONE_US + 9_000 * S).held_s == pytest.approx(3_600, abs=5)


def test_usage_that_rose_is_worse_unless_it_was_rising_anyway() -> None:
    worse = Truth(freed=-50 * MB)
    found = watched(reading(worse.series(60)), 60).effect(DONE_US + 60 * S)
    assert (found.verdict, found.freed) == ("worse", -50 * MB)
    growing = TimeSeries(7200 * S)
    for second in range(-60, 60):
        growing.add(DONE_US + second * S, 500 * MB + second * MB)
    found = watched(reading(growing), 60).effect(DONE_US + 60 * S)
    assert found.verdict == "none"
    assert found.freed == pytest.approx(-10 * MB, rel=0.05), "growth meanwhile is not subtracted"


@pytest.mark.parametrize("second", [0, 5, 11])
def test_nothing_is_said_before_it_was_measured(second: int) -> None:
    found = watched(reading(Truth().series(second)), second, every_s=1).effect(DONE_US + second * S)
    assert found.verdict == "pending"
    assert (found.freed, found.freed_share, found.after_10s) == (None, None, None)
    assert found.before == 500 * MB


@given(gap_s=st.floats(-200, 5), length_s=st.floats(0, 400))
@settings(max_examples=60)
def test_a_gap_in_the_recording_is_no_measurement(gap_s: float, length_s: float) -> None:
    """Whatever is said is the truth, or nothing."""
    truth = Truth()
    read = reading(truth.series(700, ((gap_s, gap_s + length_s),)))
    found = watched(read, 700, every_s=20).effect(DONE_US + 700 * S)
    assert found.before in (None, 500 * MB)
    assert found.after_10s in (None, 400 * MB)
    assert found.freed in (None, 100 * MB)
    if gap_s < -37 and gap_s + length_s > 0:
        assert (found.before, found.verdict) == (None, "unmeasured")
    if -1 < gap_s < 1 and gap_s + length_s > 21:
        assert (found.after_10s, found.after_10min) == (None, 400 * MB)
        assert (found.verdict, found.freed) == ("effective", 100 * MB), "at ten minutes, then"


def test_a_return_in_a_gap_is_said_to_be_one() -> None:
    truth = Truth(per_min=20 * MB)
    watch = watched(reading(truth.series(700, ((100.0, 500.0),))), 700)
    assert watch.came_back_unseen
    found = watch.effect(DONE_US + 700 * S)
    assert found.rebound_s == pytest.approx(500, abs=10), "by then it was back"


def test_another_intervention_voids_what_is_said_and_ends_the_watch() -> None:
    watch = EffectWatch("memory", WHEN, SPANS)
    watch.voided = True
    found = watched(reading(Truth().series(700)), 700, watch=watch).effect(DONE_US + 700 * S)
    assert (found.before, found.after_10s) == (500 * MB, 400 * MB), "what was measured stays"
    assert (found.freed, found.freed_share, found.verdict) == (None, None, "unmeasured")
    assert watch.settled
    until = EffectWatch("memory", WHEN, SPANS)
    read = reading(Truth().series(700))
    until.look(read, DONE_US + 650 * S, until_us=DONE_US + 100 * S)
    assert until.effect(DONE_US + 650 * S).held_s == 100
    late = EffectWatch("memory", WHEN, SPANS)
    read = reading(Truth(late_s=100).series(700))
    late.look(read, DONE_US + 650 * S, until_us=DONE_US + 90 * S)
    found = late.effect(DONE_US + 650 * S)
    assert (found.after_10min, found.verdict, found.freed) == (400 * MB, "none", 0.0), "not its own"


def test_a_slow_series_is_waited_for_and_never_answered_by_a_sample_of_before() -> None:
    series = TimeSeries(7200 * S)
    for second in range(-60, 200, 10):
        series.add(DONE_US + second * S, 80.0 if second <= 0 else 60.0)
    slow = Reading(series, 35 * S)
    watch = EffectWatch("disk", When(DONE_US + 4 * S, DONE_US + 4 * S), SPANS)
    only = TimeSeries(7200 * S)
    for at, value in series.between(0, DONE_US + 5 * S):
        only.add(at, value)
    watch.look(slow._replace(series=only), DONE_US + 20 * S)
    assert watch.effect(DONE_US + 20 * S).verdict == "pending", "80 was measured before it"
    watch.look(slow, DONE_US + 30 * S)
    assert watch.effect(DONE_US + 30 * S).after_10s == 60.0


def test_a_value_that_is_told_on_change_holds_until_it_would_have_been_told_again() -> None:
    held = TimeSeries(7200 * S)
    held.add(DONE_US - 40 * S, 80.0)
    watch = EffectWatch("tier:recent", WHEN, SPANS)
    watch.look(reading(held, held=True), DONE_US + 20 * S)
    found = watch.effect(DONE_US + 20 * S)
    assert (found.before, found.after_10s, found.verdict) == (80.0, 80.0, "none")
    watch.look(reading(held, held=True), DONE_US + 700 * S)
    assert watch.effect(DONE_US + 700 * S).after_10min is None, "by then it was told too long ago"


@given(
    st.lists(st.tuples(st.integers(-3_000, 3_000), st.floats(0, 1e12)), max_size=40),
    st.integers(0, 5_000),
    st.booleans(),
)
@settings(max_examples=100)
def test_whatever_was_measured_an_effect_rests_on_both_sides(
    samples: list[tuple[int, float]], now_s: int, told: bool
) -> None:
    series = TimeSeries(7200 * S)
    for second, value in sorted(samples):
        series.add(DONE_US + second * S, value)
    watch = EffectWatch("memory", WHEN, SPANS)
    for second in (now_s // 2, now_s):
        watch.look(reading(series, held=told), DONE_US + second * S)
    found = watch.effect(DONE_US + now_s * S)
    if found.verdict in ("effective", "none", "worse"):
        assert found.before is not None
        assert found.after_10s is not None or found.after_10min is not None
        assert now_s >= 12
    if found.verdict != "effective":
        assert (found.rebound_s, found.held_s) == (None, None)
    if found.rebound_s is not None:
        assert found.rebound_s >= 8
