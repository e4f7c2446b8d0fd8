"""When levels are entered and left: case by case, then on any course of usage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.config.policy import Enter, Exit, Policy, ResourceRule, Thresholds
from memwatch.domain.level import LEVELS, Level, rank
from memwatch.engine.hysteresis import LevelState, Reading, judge
from memwatch.engine.levels import level_of, memory_bounds, reached, resource_bounds

POLICY = Policy()
BOUNDS = memory_bounds(POLICY, 0.60)
SLOW = Enter(samples=1000)
"""Levels that only time enters."""


def play(
    shares: list[tuple[float, float]],
    enter: Enter = SLOW,
    rise_per_s: float = 0.0,
    least: Level = "normal",
) -> list[Level]:
    """Return the level after each (second, share)."""
    state, found = LevelState(), []
    for at_s, share in shares:
        reading = Reading(share, round(at_s * 1e6), rise_per_s, least)
        state, _ = judge(state, reading, BOUNDS, enter, Exit())
        found.append(state.level)
    return found


def every(seconds: float, start_s: float, end_s: float, share: float) -> list[tuple[float, float]]:
    """Return a share held from one second to another."""
    count = round((end_s - start_s) / seconds)
    return [(start_s + n * seconds, share) for n in range(count)]


@pytest.mark.parametrize(
    ("share", "seconds", "enter", "level"),
    [
        (0.61, 58, SLOW, "normal"),
        (0.61, 62, SLOW, "warn"),
        (0.61, 4, Enter(samples=3), "normal"),
        (0.61, 6, Enter(samples=3), "warn"),
        (0.76, 2, SLOW, "warn"),  # over the next one already: at once
        (0.76, 62, SLOW, "intervene"),
        (0.91, 2, SLOW, "emergency"),
        (0.96, 2, SLOW, "hard"),
        (0.91, 2, Enter(samples=1000, emergency_s=30), "intervene"),
        (0.91, 32, Enter(samples=1000, emergency_s=30), "emergency"),
        (0.96, 2, Enter(samples=1000, emergency_s=30), "hard"),  # rigid
    ],
)
def test_a_level_is_entered(share: float, seconds: int, enter: Enter, level: Level) -> None:
    assert play(every(2, 10, 10 + seconds, share), enter)[-1] == level


def test_growth_that_reaches_the_next_level_within_the_hold_time_enters_at_once() -> None:
    per_s = 0.15 / 60
    assert play([(0, 0.61)], rise_per_s=per_s) == ["warn"]
    assert play([(0, 0.61)], rise_per_s=per_s / 2) == ["normal"]


def test_a_dip_begins_the_hold_time_anew() -> None:
    course = [*every(2, 0, 58, 0.61), (58, 0.59), *every(2, 60, 118, 0.61)]
    assert set(play(course)) == {"normal"}


def test_usage_that_swings_about_a_threshold_enters_nothing() -> None:
    assert set(play([(n, 0.61 if n % 2 else 0.59) for n in range(2000)], Enter())) == {"normal"}


def test_usage_that_swings_about_the_exit_leaves_nothing() -> None:
    course = [(0, 0.92), *((2.0 + n, 0.62 if n % 200 == 0 else 0.5) for n in range(2000))]
    assert set(play(course)) == {"emergency"}


@pytest.mark.parametrize(
    ("low", "level"),
    [(0.72, "intervene"), (0.69, "warn"), (0.56, "warn"), (0.54, "normal"), (0.0, "normal")],
)
def test_intervene_is_left_to_the_level_that_the_exit_shares_give(low: float, level: Level) -> None:
    assert play([(0, 0.76), *every(2, 2, 64, 0.76), *every(2, 64, 380, low)])[-1] == level


def test_a_gap_in_the_measurements_proves_no_dwell() -> None:
    over = every(2, 0, 64, 0.61)
    assert play([*over, (66, 0.4), (1000, 0.4)])[-1] == "warn"
    assert play([*over, (66, 0.4), *every(2, 1000, 1304, 0.4)])[-1] == "normal"


def test_pressure_calls_for_a_level_and_keeps_it() -> None:
    assert play([(0, 0.3), (2, 0.3)], least="intervene") == ["intervene", "intervene"]
    assert set(play(every(2, 0, 900, 0.3), least="intervene")) == {"intervene"}


def test_a_soft_limit_that_was_lowered_takes_the_end_of_warn_with_it() -> None:
    assert memory_bounds(POLICY, 0.60).leave[0] == pytest.approx(0.55)
    assert memory_bounds(POLICY, 0.50).leave[0] == pytest.approx(0.45)
    assert memory_bounds(POLICY, 0.70).leave[0] == pytest.approx(0.55)


def test_a_resource_has_the_levels_that_its_rule_names() -> None:
    bounds = resource_bounds(ResourceRule(warn=0.5, emergency=0.9))
    assert [reached(share, bounds.enter) for share in (0.4, 0.6, 0.95)] == [
        "normal",
        "warn",
        "emergency",
    ]


@given(
    st.lists(st.tuples(st.floats(0.5, 400), st.floats(0, 1.2)), min_size=1, max_size=60),
    st.floats(0.0, 0.01),
)
def test_on_any_course(steps: list[tuple[float, float]], rise_per_s: float) -> None:
    """Emergency never waits; no level lasts over nothing; each change has a cause at its bounds."""
    state, at_s = LevelState(), 0.0
    for seconds, share in steps:
        at_s += seconds
        reading = Reading(share, round(at_s * 1e6), rise_per_s)
        before = state
        state, move = judge(state, reading, BOUNDS, Enter(), Exit())
        literal = level_of(share, Thresholds())
        if rank(literal) >= rank("emergency"):
            assert rank(state.level) >= rank(literal)
        if rank(state.level) > rank(before.level):
            assert move is not None
            assert move.how
            assert reached(share, BOUNDS.enter) != "normal"
            assert rank(state.level) <= rank(literal)
        if rank(state.level) < rank(before.level):
            end = BOUNDS.leave[LEVELS.index(before.level) - 1]
            assert end is not None
            assert share < end
            assert rank(state.level) >= rank(literal)
        assert (move is None) == (state.level == before.level)
