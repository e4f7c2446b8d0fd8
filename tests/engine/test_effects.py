"""After a plan: measured, then escalated, cooled down, or stopped loudly."""

from __future__ import annotations

import re
from itertools import pairwise

from msgspec.structs import replace

from memwatch.config.policy import Policy
from memwatch.domain.plan import Effect, Plan
from memwatch.engine.decision import Decision
from tests.engine.world import World

ONE_STEP = replace(
    Policy(),
    levels=replace(
        Policy().levels,
        warn=replace(Policy().levels.warn, escalate=()),
        intervene=replace(Policy().levels.intervene, escalate=()),
    ),
)
"""Nothing is tried when a plan had no effect."""


def effects(world: World) -> list[Effect]:
    """Return the effects that were measured, in order."""
    return [d.plan.effect for d in world.kinds("effect") if d.plan]


def plans(world: World) -> list[Plan]:
    """Return the plans that were made, as they began."""
    found: dict[str, Plan] = {}
    for decision in world.kinds("plan"):
        if decision.plan is not None:
            found.setdefault(decision.plan.id, decision.plan)
    return list(found.values())


def test_a_plan_is_measured_some_time_after_its_last_step() -> None:
    world = World()
    world.run(10, 0.64)
    world.run(20, 0.58)
    last = world.state.last
    assert last is not None
    assert effects(world) == ["effective"]
    assert last.freed_bytes is not None
    assert abs(last.freed_bytes - 0.06 * 8e9) < 1
    assert "freed 480M in 15s" in world.kinds("effect")[0].why


def test_reaching_the_exit_level_is_an_effect_however_little_that_was() -> None:
    world = World(replace(ONE_STEP, exit=replace(Policy().exit, warn=0.59)))
    world.run(10, 0.601)
    world.run(20, 0.589)
    assert effects(world) == ["effective"]


def test_without_effect_the_next_thing_is_tried_once_and_at_once() -> None:
    world = World()
    world.run(60, 0.62)
    assert world.asked() == ["checkpoint", "purge", "purge", "reclaim"]
    assert [plan.rule for plan in plans(world)] == ["levels.warn", "levels.warn.escalate"]
    assert effects(world) == ["none", "none"]


def test_usage_that_rose_is_worse_than_none() -> None:
    world = World()
    world.run(10, 0.61)
    world.run(20, 0.67)
    assert effects(world) == ["worse"]


def test_an_effect_without_a_fresh_measurement_stays_unmeasured_and_counts_for_nothing() -> None:
    world = World(ONE_STEP)
    world.run(10, 0.62)
    world.measured = False
    world.run(120)
    assert effects(world) == ["unmeasured"]
    assert world.state.ineffective == {}


def test_the_same_is_not_done_again_before_the_cool_down_is_over() -> None:
    world = World(replace(ONE_STEP, breaker=replace(Policy().breaker, after=100)))
    world.run(2000, 0.62)
    made = [plan.made_m_us / 1e6 for plan in plans(world)]
    assert len(made) == 4
    assert all(later - earlier >= 600 for earlier, later in pairwise(made))


def test_a_cool_down_is_told_by_its_end_which_stands_still() -> None:
    world = World(replace(ONE_STEP, breaker=replace(Policy().breaker, after=100)))
    world.run(60, 0.62)
    told = set()
    for _ in range(20):
        world.tick()
        told.add(world.standing().waiting)
    (text,) = told
    assert re.fullmatch(r"cool-down of warn until \d\d:\d\d:\d\d", text)


def test_an_emergency_that_is_entered_anew_waits_for_no_cool_down() -> None:
    quick = replace(ONE_STEP, exit=replace(Policy().exit, dwell_s=4))
    world = World(quick)
    world.run(20, 0.92)
    world.run(20, 0.30)
    assert world.level() == "normal"
    world.share = 0.92
    before = len(world.told)
    world.tick()
    assert world.asked(before) == ["abort_experiment"]


def test_usage_that_lies_between_exit_and_threshold_calls_for_no_repeat() -> None:
    world = World(ONE_STEP)
    world.run(20, 0.62)
    world.run(3000, 0.58)
    assert world.level() == "warn"
    assert world.asked() == ["checkpoint", "purge"]


def test_a_level_that_was_left_lower_repeats_the_plan_that_its_usage_calls_for() -> None:
    world = World()
    world.run(20, 0.92)
    world.run(700, 0.78)
    assert world.level() == "emergency"
    assert plans(world)[-1].level == "intervene"


def test_falling_memory_suppresses_what_is_gentle_and_says_so_once() -> None:
    world = World()
    world.memory = {"mean_10s": 0.62 * 8e9, "mean_60s": 0.64 * 8e9}
    world.run(100, 0.62)
    assert world.asked() == []
    assert len(world.kinds("suppressed")) == 1
    assert "falling" in world.standing().waiting
    world.memory = {}
    world.run(4)
    assert world.asked()[:1] == ["checkpoint"]


def test_falling_memory_suppresses_no_emergency() -> None:
    for share, first in ((0.92, "abort_experiment"), (0.96, "read_only")):
        world = World()
        world.memory = {"mean_10s": share * 8e9, "mean_60s": 8e9}
        world.run(4, share)
        assert world.asked()[0] == first


def test_two_plans_without_effect_open_the_breaker_loudly() -> None:
    world = World()
    world.run(4000, 0.62)
    assert world.asked() == ["checkpoint", "purge", "purge", "reclaim"]
    assert [d.level for d in world.kinds("breaker")] == ["warn"]
    assert world.standing().open_breakers == ("warn",)
    assert "until a person resets it" in world.standing().waiting


def test_an_open_breaker_blocks_no_higher_level() -> None:
    world = World()
    world.run(100, 0.62)
    assert world.standing().open_breakers == ("warn",)
    before = len(world.told)
    world.run(20, 0.78)
    assert world.asked(before)[0] == "pause"


def test_a_person_closes_the_breaker_and_it_is_tried_again() -> None:
    world = World()
    world.run(100, 0.62)
    before = len(world.told)
    world.reset_m_us = world.now.m_us + 1
    world.run(10)
    assert world.standing().open_breakers == ()
    assert world.asked(before) == ["checkpoint", "purge"]


def test_the_breaker_closes_once_the_level_was_normal_for_a_dwell() -> None:
    world = World()
    world.run(100, 0.62)
    world.run(304, 0.3)
    assert world.level() == "normal"
    assert world.standing().open_breakers == ("warn",)
    world.run(304, 0.3)
    assert world.standing().open_breakers == ()
    assert [d.why.partition(":")[0] for d in world.kinds("breaker")][1:] == [
        "breaker of warn closed"
    ]


def test_an_emergency_entered_anew_gets_one_try_through_an_open_breaker() -> None:
    quick = replace(ONE_STEP, exit=replace(Policy().exit, dwell_s=60))
    world = World(quick)
    world.run(600, 0.92)
    assert "emergency" in world.state.breakers
    tries = len([plan for plan in plans(world) if plan.level == "emergency"])
    world.run(70, 0.57)
    assert world.level() == "warn"
    world.run(600, 0.92)
    assert len([plan for plan in plans(world) if plan.level == "emergency"]) == tries + 1
    assert "emergency" in world.state.breakers


def test_a_plan_that_frees_nothing_by_its_nature_is_not_measured() -> None:
    world = World()
    world.ops = frozenset({"checkpoint"})
    world.run(100, 0.62)
    assert effects(world) == []
    assert world.state.last is not None
    assert world.state.last.effect == "unmeasured"


def test_each_decision_says_why_in_one_line() -> None:
    world = World()
    for share in (0.62, 0.8, 0.92, 0.96, 0.3):
        world.run(400, share)
    assert {d.kind for d in world.told} >= {"level", "plan", "ask", "effect", "breaker"}
    for decision in world.told:
        assert one_line(decision), decision


def one_line(decision: Decision) -> bool:
    """Say whether it has a reason and a rule, short enough for a line."""
    return bool(decision.why and decision.rule) and "\n" not in decision.why


def test_the_breaker_does_not_outlast_the_agent_that_it_was_opened_for() -> None:
    world = World(ONE_STEP)
    world.run(1300, 0.62)
    assert world.state.breakers
    world.run_state = "killed"
    world.run(4)
    world.run_state, world.start_id = "running", "two"
    world.run(400, 0.30)
    assert world.state.breakers == {}
    before = len(world.told)
    world.run(10, 0.62)
    assert world.asked(before)[:1] == ["checkpoint"]


def test_what_is_not_done_is_told_once_however_usage_swings_about_the_threshold() -> None:
    world = World()
    world.run(1300, 0.62)
    before = len(world.told)
    for _ in range(100):
        world.run(20, 0.62)
        world.run(20, 0.58)
    assert world.level() == "warn"
    assert len(world.told) - before <= 1
