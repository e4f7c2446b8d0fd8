"""Pressure as second witness, and acting on time and room instead of level."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from memwatch.config.policy import Action, Outlook, Policy
from memwatch.domain.control import Pressure
from memwatch.domain.level import Level
from memwatch.engine.facts import CheckpointFacts
from tests.engine.world import World


def pressure(**figures: Any) -> Pressure:
    """Return pressure of the agent's own group, calm unless said otherwise."""
    calm = {"some_avg10": 0.0, "some_avg60": 0.0, "full_avg10": 0.0}
    return Pressure(**{"scope": "cgroup", **calm, **figures})


@pytest.mark.parametrize(
    ("share", "figures", "level"),
    [
        (0.62, {}, "warn"),
        (0.62, {"some_avg10": 11.0}, "warn"),  # both windows must agree
        (0.62, {"some_avg10": 11.0, "some_avg60": 11.0}, "intervene"),
        (0.62, {"full_avg10": 11.0}, "intervene"),
        (0.62, {"full_avg10": 41.0}, "emergency"),
        (0.77, {"some_avg10": 90.0, "some_avg60": 90.0}, "intervene"),  # some aborts nothing
        (0.77, {"full_avg10": 41.0}, "emergency"),
        (0.40, {"full_avg10": 90.0, "some_avg10": 90.0, "some_avg60": 90.0}, "normal"),
        (0.62, {"scope": "system", "full_avg10": 90.0}, "warn"),
    ],
)
def test_pressure_raises_what_usage_has_raised(
    share: float, figures: dict[str, Any], level: Level
) -> None:
    world = World()
    world.pressure = pressure(**figures)
    world.run(30, share)
    assert world.level() == level


def test_full_pressure_must_be_held() -> None:
    world = World()
    world.run(10, 0.62)
    for n in range(60):
        world.pressure = pressure(full_avg10=90.0 if n % 4 else 0.0)
        world.tick()
    assert world.level() == "warn"


def test_events_of_the_group_are_an_emergency_only_where_work_stands_still() -> None:
    for full, level in ((0.0, "warn"), (20.0, "emergency")):
        world = World()
        for n in range(20):
            world.pressure = pressure(full_avg10=full, events=n)
            world.run(2, 0.62)
        assert world.level() == level


def test_pressure_says_that_it_raised_the_level() -> None:
    world = World()
    world.pressure = pressure(full_avg10=50.0)
    world.run(30, 0.62)
    assert "stalls (pressure)" in world.kinds("level")[-1].why
    assert world.asked()[-4:] == ["abort_experiment", "pause", "purge", "reclaim"]


def test_a_level_by_pressure_ends_a_dwell_after_the_pressure() -> None:
    world = World()
    world.pressure = pressure(some_avg10=50.0, some_avg60=50.0)
    world.run(600, 0.62)
    assert world.level() == "intervene"
    world.pressure = pressure()
    world.run(290)
    assert world.level() == "intervene"
    world.run(20)
    assert world.level() == "warn"


# -- time and room ---------------------------------------------------------------------------

GROWING = {"growth_recent_per_min": 10e6, "growth_per_min": 10e6}


def early(arrival_s: float | None, share: float = 0.3, **checkpoint: Any) -> list[str]:
    """Return what is asked for within 40 s."""
    world = World()
    world.memory = {
        **GROWING,
        "time_to_limit_s": None if arrival_s is None else (arrival_s, arrival_s * 2),
    }
    world.checkpoint = CheckpointFacts(**checkpoint)
    world.run(40, share)
    return world.asked()


@pytest.mark.parametrize(
    ("arrival_s", "p95_s", "acts"),
    [
        (301, None, False),
        (299, None, True),  # nothing was measured yet: 5 min
        (57, 10.0, False),  # 2 x 10 + 3 x 2 + 30
        (55, 10.0, True),
    ],
)
def test_a_checkpoint_is_taken_while_there_is_time(
    arrival_s: float, p95_s: float | None, acts: bool
) -> None:
    asked = early(arrival_s, p95_s=p95_s)
    assert asked == (["checkpoint", "purge"] if acts else [])


@pytest.mark.parametrize(
    ("share", "extra", "acts"),
    [
        (0.50, 0.40, False),
        (0.55, 0.40, True),  # 1.2 x 40 % would not be left, 40 % still is
        (0.59, 0.45, False),  # it does not fit any more: it might be what kills
    ],
)
def test_a_checkpoint_is_taken_while_it_fits(share: float, extra: float, acts: bool) -> None:
    asked = early(None, share, extra_bytes=extra * 8e9)
    assert asked == (["checkpoint", "purge"] if acts else [])


@pytest.mark.parametrize("steps", [(), (Action(op="compact"),)])
def test_what_is_done_early_is_the_policys(steps: tuple[Action, ...]) -> None:
    world = World(replace(Policy(), outlook=Outlook(steps=steps, apart_s=10)))
    world.ops = world.allow = frozenset({"compact"})
    world.memory = {**GROWING, "time_to_limit_s": (10.0, 20.0)}
    world.run(40)
    asks = [d.op for d in world.kinds("ask")]
    assert asks == ["compact"] * (4 if steps else 0), "each 10 s, and no more"


def test_memory_that_does_not_grow_has_time() -> None:
    world = World()
    world.memory = {"growth_recent_per_min": 0.0, "time_to_limit_s": (100.0, 200.0)}
    world.run(40)
    assert world.asked() == []


def test_one_checkpoint_per_half_of_the_time_that_is_left_and_a_minute_at_least() -> None:
    world = World()
    times = []
    for second in range(0, 280, 2):
        left_s = 290.0 - second
        world.memory = {**GROWING, "time_to_limit_s": (left_s, 2 * left_s)}
        before = len(world.told)
        world.tick()
        times += [second for op in world.asked(before) if op == "checkpoint"]
    assert times == [0, 98, 162, 222]


def test_one_that_was_just_committed_will_do() -> None:
    world = World()
    world.memory = {**GROWING, "time_to_limit_s": (200.0, 400.0)}
    world.checkpoint = CheckpointFacts(last_m_us=world.now.m_us)
    world.run(90)
    assert world.asked() == []
    world.run(20)
    assert world.asked() == ["checkpoint", "purge"]


def test_in_an_emergency_nothing_waits_for_a_checkpoint() -> None:
    world = World()
    world.memory = {**GROWING, "time_to_limit_s": (5.0, 10.0)}
    world.run(600, 0.92)
    assert "checkpoint" not in world.asked()


def test_it_starts_no_cool_down_of_warn_and_counts_in_no_breaker() -> None:
    world = World()
    world.memory = {**GROWING, "time_to_limit_s": (200.0, 400.0)}
    world.run(30)
    world.memory = {}
    before = len(world.told)
    world.run(10, 0.62)
    assert world.asked(before) == ["checkpoint", "purge"]
    plan = world.state.last or world.state.plan
    assert plan is not None
    assert plan.rule == "levels.warn"


def test_pressure_holds_no_level_once_usage_is_low() -> None:
    world = World()
    world.pressure = pressure(some_avg10=50.0, some_avg60=50.0)
    world.run(60, 0.62)
    assert world.level() == "intervene"
    world.run(310, 0.3)
    assert world.level() == "normal"


def test_an_emergency_by_pressure_that_lasts_is_met_again_after_its_cool_down() -> None:
    world = World()
    world.pressure = pressure(full_avg10=90.0)
    world.run(20, 0.62)
    assert world.asked().count("abort_experiment") == 1
    world.run(200)
    assert world.asked().count("abort_experiment") == 2


def test_low_usage_is_no_recovery_while_pressure_calls_for_the_level() -> None:
    world = World()
    world.pressure = pressure(some_avg10=50.0, some_avg60=50.0)
    world.run(20, 0.62)
    assert world.asked()[-3:] == ["pause", "checkpoint", "purge"]
