"""Before and after are what was measured then, or nothing: a gap in the recording stays one."""

from __future__ import annotations

from memwatch.analytics.efficacy import Effect, measure
from memwatch.analytics.series import TimeSeries

S = 1_000_000
GAP_US = 7 * S
DONE_US = 1_000 * S
LATER_US = DONE_US + 700 * S


def sampled(*spans: tuple[int, int, float]) -> TimeSeries:
    """Return a series with a sample each second of [first, last), in seconds."""
    series = TimeSeries(7200 * S)
    for first, last, value in spans:
        for second in range(first, last):
            series.add(second * S, value)
    return series


def test_usage_around_an_intervention_is_measured() -> None:
    series = sampled((900, 1000, 80.0), (1000, 1700, 60.0))
    effect = measure(series, DONE_US, DONE_US, LATER_US, GAP_US)
    assert effect == Effect(80.0, 60.0, 60.0)
    assert effect.freed == 20.0
    assert effect.freed_share == 0.25


def test_before_and_after_are_unknown_in_a_gap_of_the_recording() -> None:
    """A guard that was away must not show the value of an hour ago as measured."""
    long_ago = sampled((0, 900, 80.0), (1640, 1700, 60.0))
    assert measure(long_ago, DONE_US, DONE_US, LATER_US, GAP_US) == Effect(None, None, None)


def test_a_gap_hides_only_what_lies_in_it() -> None:
    before_only = sampled((900, 1000, 80.0))
    assert measure(before_only, DONE_US, DONE_US, LATER_US, GAP_US) == Effect(80.0, None, None)
    after_only = sampled((1005, 1020, 60.0))
    effect = measure(after_only, DONE_US, DONE_US, LATER_US, GAP_US)
    assert effect == Effect(None, 60.0, None)
    assert effect.freed is None


def test_a_value_that_is_sampled_on_change_holds_until_it_would_have_been_sampled_again() -> None:
    held = TimeSeries(7200 * S)
    held.add(960 * S, 80.0)
    effect = measure(held, DONE_US, DONE_US, DONE_US + 20 * S, 75 * S)
    assert (effect.before, effect.after_10s) == (80.0, 80.0)
    effect = measure(held, DONE_US, DONE_US, LATER_US, 75 * S)
    assert effect.after_10min is None, "by then it was sampled ten minutes ago"


def test_the_time_until_it_is_all_used_again_is_measured_where_it_was_seen() -> None:
    back = sampled((900, 1000, 80.0), (1000, 1300, 60.0), (1300, 1700, 80.0))
    effect = measure(back, DONE_US, DONE_US, LATER_US, GAP_US)
    assert effect.rebound_s == 300.0
    assert measure(back, DONE_US, DONE_US, DONE_US + 5 * S, GAP_US).rebound_s is None
    nearly = sampled((900, 1000, 80.0), (1000, 1700, 79.0))
    assert measure(nearly, DONE_US, DONE_US, LATER_US, GAP_US).rebound_s is None
    in_vain = sampled((900, 1000, 80.0), (1000, 1700, 90.0))
    assert measure(in_vain, DONE_US, DONE_US, LATER_US, GAP_US).rebound_s is None
