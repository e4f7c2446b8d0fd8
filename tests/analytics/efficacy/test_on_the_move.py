"""Usage that grows or falls all the time before: what was freed is held against what it came to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.analytics.efficacy.effect import EffectWatch
from memwatch.analytics.series import TimeSeries
from memwatch.domain.intervention import ResourceEffect
from tests.analytics.efficacy.truth import DONE_US, MB, S, reading, watched


def effect(
    per_s: float, freed: float, then_per_s: float = 0.0, bend: float = 1.0, saw: float = 0.0
) -> ResourceEffect:
    """Return the effect on usage that moves, gives up so many MB at once, and moves on.

    With `bend` it moved so many times as fast in the ten seconds before; `saw` is a saw-tooth.
    """
    series = TimeSeries(7200 * S)
    for second in range(-60, 40, 2):
        fast = max(second + 10, 0) * (bend - 1)
        usage = 400 + per_s * (second + fast) if second <= 0 else 400 + per_s * 10 * (bend - 1)
        usage += (second % 20) / 20 * saw
        usage += then_per_s * second - freed if second > 0 else 0
        series.add(DONE_US + second * S, usage * MB)
    return watched(reading(series), 30).effect(DONE_US + 30 * S)


@settings(max_examples=40)
@given(per_s=st.floats(1, 10), freed=st.floats(30, 200))
def test_a_leak_that_is_held_up_does_not_hide_what_was_freed(per_s: float, freed: float) -> None:
    found = effect(per_s, freed)
    assert found.verdict == "effective"
    assert found.freed == pytest.approx(freed * MB, rel=0.05)
    assert found.before == pytest.approx(400 * MB, rel=0.01)


def test_growth_that_goes_on_is_not_taken_off() -> None:
    found = effect(3.0, 60, then_per_s=3.0)
    assert found.verdict == "effective"
    assert found.freed == pytest.approx(30 * MB, abs=4 * MB)
    lost = effect(3.0, 10, then_per_s=3.0)
    assert lost.verdict == "none"
    assert lost.freed == pytest.approx(-20 * MB, abs=4 * MB)
    assert effect(3.0, 0, then_per_s=9.0).verdict == "worse"


def test_what_speeds_up_just_before_is_held_against_the_last_of_it() -> None:
    found = effect(3.0, 60, bend=2.0)
    assert found.freed == pytest.approx(60 * MB, rel=0.25), "by its median it would be nothing"


@settings(max_examples=40)
@given(per_s=st.floats(0.8, 6))
def test_usage_that_falls_by_itself_is_no_merit(per_s: float) -> None:
    found = effect(-per_s, 0, then_per_s=-per_s)
    assert found.verdict == "none"
    assert found.held_s is None


def test_a_saw_tooth_is_no_trend() -> None:
    found = effect(0.0, 0, saw=80)
    assert found.verdict == "none"
    assert found.before == pytest.approx(440 * MB, rel=0.05), "its median"


def test_two_samples_are_no_trend() -> None:
    series = TimeSeries(7200 * S)
    for second, usage in ((-4, 300.0), (-2, 400.0), (9, 350.0), (11, 350.0)):
        series.add(DONE_US + second * S, usage * MB)
    watch: EffectWatch = watched(reading(series), 30)
    assert watch.effect(DONE_US + 30 * S).before == pytest.approx(350 * MB, rel=0.15)
