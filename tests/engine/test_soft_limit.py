"""The soft limit beyond R9: forecast, shares of small limits, pace, reasons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memwatch.config.policy import Policy, SoftLimit
from memwatch.engine import soft_limit
from memwatch.engine.facts import ResourceFacts
from memwatch.engine.soft_limit import SoftState
from tests.engine.world import World


@pytest.mark.parametrize(
    ("arrival_s", "soft"), [(14_401, 0.60), (14_000, 0.55), (3_500, 0.50), (800, 0.45)]
)
def test_the_forecast_lowers_it_by_the_points_of_the_nearest_time(
    arrival_s: float, soft: float
) -> None:
    world = World()
    world.memory = {"time_to_limit_s": (arrival_s, 1e6), "growth_per_min": 30e6}
    world.run(70)
    assert world.standing().soft_share == soft


def test_a_forecast_that_comes_and_goes_moves_nothing() -> None:
    world = World()
    for n in range(400):
        world.memory = {"time_to_limit_s": (600.0, 900.0) if n % 20 else None}
        world.tick()
    assert world.standing().soft_share == 0.60


def test_a_forecast_is_a_place_not_a_step_it_does_not_add_up() -> None:
    world = World()
    world.memory = {"time_to_limit_s": (800.0, 900.0), "growth_per_min": 30e6}
    world.run(6000)
    assert [d.value for d in world.kinds("soft_limit")] == [0.45]


def test_it_rises_once_growth_stayed_small_beside_what_lowered_it_for_two_windows() -> None:
    world = World()
    world.memory = {"growth_per_min": 80e6}
    world.run(10)
    world.memory = {"growth_per_min": 21e6}  # over a quarter of 80
    world.run(5000)
    assert world.standing().soft_share == 0.50
    world.memory = {"growth_per_min": 19e6}
    world.run(1190)
    assert world.standing().soft_share == 0.50
    world.run(20)
    assert world.standing().soft_share == 0.60


def test_for_how_many_windows_is_the_policys() -> None:
    world = World(replace(Policy(), soft=SoftLimit(relax_windows=1)))
    world.memory = {"growth_per_min": 80e6}
    world.run(10)
    world.memory = {"growth_per_min": 0.0}
    world.run(610)
    assert world.standing().soft_share == 0.60


def test_unknown_growth_is_not_calm() -> None:
    world = World()
    world.memory = {"growth_per_min": 80e6}
    world.run(10)
    world.memory = {"growth_per_min": None}
    world.run(5000)
    assert world.standing().soft_share == 0.50


def test_a_small_limit_may_have_a_rate_of_its_own() -> None:
    world = World(replace(Policy(), soft=SoftLimit(growth_share_per_min=0.02)))
    world.limit = 500e6
    world.memory = {"growth_per_min": 11e6}
    world.tick()
    assert world.standing().soft_share == 0.50
    assert world.kinds("soft_limit")[0].rule == "soft.growth_share_per_min"


def test_it_says_what_moved_it_and_what_brings_it_back() -> None:
    world = World()
    world.memory = {"growth_per_min": 62e6}
    world.tick()
    expected = (
        "growth 62M/min over 10m00s is above 50M/min: soft limit 60% to 50%; rises once growth "
        "stays under 16M/min for 20m00s (soft.growth_bytes_per_min)"
    )
    assert world.standing().soft_why == world.kinds("soft_limit")[0].why == expected


def test_a_phase_with_another_start_begins_from_its_own() -> None:
    state = SoftState(points=-0.1)
    low = replace(Policy(), thresholds=replace(Policy().thresholds, warn=0.5))
    assert soft_limit.share(Policy(), state) == 0.5
    assert soft_limit.share(low, state) == 0.4
    assert soft_limit.share(replace(Policy(), soft=SoftLimit(start=0.7)), state) == 0.6


GROWTH = st.one_of(st.none(), st.floats(-1e9, 1e9), st.just(float("nan")))
ARRIVAL = st.one_of(st.none(), st.tuples(st.floats(0, 1e5), st.floats(0, 1e6)))


@given(
    st.lists(st.tuples(st.floats(1, 700), GROWTH, ARRIVAL), max_size=60),
    st.floats(0, 0.3),
    st.floats(0.05, 0.6),
)
def test_on_any_course_it_stays_in_its_range_and_takes_one_step_at_a_time(
    course: list[tuple[float, float | None, tuple[float, float] | None]],
    max_above: float,
    floor: float,
) -> None:
    policy = replace(Policy(), soft=SoftLimit(max_above=max_above, floor=floor))
    state, m_us, stepped_us = SoftState(), 0, None
    for seconds, growth, arrival in course:
        m_us += round(seconds * 1e6)
        facts = ResourceFacts(
            name="memory", limit=8e9, growth_per_min=growth, time_to_limit_s=arrival
        )
        before = soft_limit.share(policy, state)
        state, shift = soft_limit.step(state, facts, policy, m_us)
        after = soft_limit.share(policy, state)
        assert floor - 1e-6 <= after <= max(min(0.6 + max_above, 0.75), 0.6) + 1e-6
        assert (shift is not None) == (after != before)
        if shift is not None:
            assert (shift.before, shift.after) == (before, after)
            assert stepped_us is None or m_us - stepped_us >= 600e6
            stepped_us = m_us
