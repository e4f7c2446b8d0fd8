"""Modes, what a person lets go, and a guard, an agent or a machine that began anew."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.config.policy import Policy
from memwatch.domain.level import EngineMode
from memwatch.engine.state import EngineState
from tests.engine.world import World, deaf, loses


def test_in_ask_mode_a_plan_waits_for_a_person() -> None:
    world = World(mode="ask")
    world.run(100, 0.62)
    plan = world.state.plan
    assert plan is not None
    assert (plan.state, world.asked()) == ("proposed", [])
    assert world.standing().waiting == "plan warn waits for a person"
    world.approved = frozenset({plan.id})
    world.run(6)
    assert world.asked() == ["checkpoint", "purge"]


def test_in_ask_mode_a_plan_that_is_declined_or_not_answered_is_not_made_again_at_once() -> None:
    for declines in (True, False):
        world = World(mode="ask")
        world.run(10, 0.62)
        plan = world.state.plan
        assert plan is not None
        if declines:
            world.declined = frozenset({plan.id})
        world.run(610, 0.62)
        last = world.state.last
        assert last is not None
        assert (last.id, last.state) == (plan.id, "refused" if declines else "expired")
        assert world.asked() == []


def test_a_dry_plan_sends_nothing_and_starts_the_same_cool_down() -> None:
    dry, real = World(mode="shadow"), World()
    for world in (dry, real):
        world.policy = replace(
            Policy(),
            levels=replace(Policy().levels, warn=replace(Policy().levels.warn, escalate=())),
        )
        world.run(590, 0.62)
    assert dry.asked() == real.asked() == ["checkpoint", "purge"]
    assert all(d.dry for d in dry.kinds("ask"))
    assert dry.commands == {}
    dry.run(60)
    assert dry.asked() == ["checkpoint", "purge"] * 2


def test_what_was_only_tried_dry_holds_nothing_back_when_a_person_arms_the_engine() -> None:
    world = World(mode="shadow")
    world.run(30, 0.8)
    before = len(world.told)
    world.mode = "act"
    world.tick()
    assert world.asked(before) == ["pause"]
    assert not world.kinds("ask")[-1].dry


@pytest.mark.parametrize("mode", ["shadow", "observe", "off"])
def test_a_plan_in_flight_is_withdrawn_when_the_engine_may_not_act_any_more(
    mode: EngineMode,
) -> None:
    world = World()
    world.answers = deaf
    world.run(10, 0.62)
    before = len(world.told)
    world.mode = mode
    world.tick()
    assert [d.kind for d in world.told[before:]][:2] == ["withdraw", "plan"]
    assert world.state.last is not None
    assert world.state.last.detail == f"withdrawn: the engine is switched to {mode}"
    assert all(d.dry for d in world.told[before:] if d.kind == "ask")


def test_observe_makes_no_plans_and_off_knows_only_the_literal_levels() -> None:
    world = World(mode="observe")
    world.run(20, 0.62)
    assert world.levels() == ["warn"]
    assert world.asked() == []
    assert world.standing().waiting == "warn: the engine only observes"
    world.mode = "off"
    world.run(2, 0.59)
    world.run(2, 0.76)
    assert world.levels() == ["warn", "normal", "intervene"]
    assert world.kinds("plan") == []


def test_an_agent_that_began_anew_ends_the_plan_unknown_and_keeps_the_levels() -> None:
    world = World()
    world.answers = deaf
    world.run(10, 0.62)
    world.start_id = "two"
    world.measured = False
    world.run(4)
    assert world.state.plan is None
    assert world.state.last is not None
    assert (world.state.last.state, world.level()) == ("unknown", "warn")


def test_an_agent_that_is_gone_has_no_level_and_no_plan() -> None:
    world = World()
    world.answers = deaf
    world.run(10, 0.92)
    world.run_state = "killed"
    world.run(10)
    assert (world.level(), world.state.plan) == ("normal", None)


def test_a_guard_that_was_restarted_goes_on_with_the_plan() -> None:
    world = World()
    world.answers = loses
    world.run(6, 0.62)
    plan = world.state.plan
    assert plan is not None
    world.state = EngineState.resume(world.state.save(), same_boot=True)
    world.answers = lambda _: "done"
    world.run(10)
    assert world.state.last is not None
    assert world.state.last.id == plan.id
    assert world.state.last.state == "done"


def test_after_another_boot_what_latches_stays_and_the_plan_ends_unknown() -> None:
    world = World()
    world.answers = deaf
    world.run(10, 0.92)
    state = EngineState.resume(world.state.save(), same_boot=False)
    assert state.level() == "emergency"
    assert state.plan is None
    assert state.last is not None
    assert state.last.state == "unknown"
    world.state, world.now = state, world.now._replace(m_us=5_000_000)
    world.measured_m_us = 0
    world.run(20)
    assert world.level() == "emergency"


def test_outside_of_ask_no_plan_is_shown_as_waiting_for_a_person() -> None:
    policy = replace(Policy(), pause=replace(Policy().pause, longest_s=60))
    world = World(policy)
    for _ in range(200):
        world.share = 0.78
        world.tick()
        shown = world.standing()
        assert shown.plan is None or shown.plan.state != "proposed"
        assert "waits for a person" not in shown.waiting
    assert {plan.rule for d in world.told if (plan := d.plan)} >= {"pause.longest_s"}
