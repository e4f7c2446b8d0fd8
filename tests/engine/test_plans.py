"""Plans under way: one at a time, answers, patience, what is lost; figures that decide nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.config.policy import LevelRule, Policy, ResourceRule
from memwatch.domain.command import CommandState
from memwatch.engine.facts import ResourceFacts
from tests.engine.world import ALL, World, deaf, loses


def test_steps_are_asked_for_one_after_another() -> None:
    world = World()
    world.answers = deaf
    world.run(20, 0.62)
    assert world.asked() == ["checkpoint"]
    plan = world.state.plan
    assert plan is not None
    assert plan.steps[0].command_id == f"{plan.id}.0"
    world.answer(plan.steps[0].command_id, "running")
    world.run(4)
    assert world.asked() == ["checkpoint"]
    world.answer(plan.steps[0].command_id, "done")
    world.tick()
    assert world.asked() == ["checkpoint", "purge"]


@pytest.mark.parametrize("answer", ["refused", "failed", "expired", "unknown"])
def test_a_step_that_is_not_done_stops_no_plan_and_is_named(answer: CommandState) -> None:
    world = World()
    world.answers = lambda d: answer if d.op == "checkpoint" else "done"
    world.run(20, 0.62)
    assert world.asked() == ["checkpoint", "purge"]
    assert world.state.last is not None
    assert world.state.last.state == "done"
    assert world.state.last.detail.startswith(f"checkpoint {answer}")


def test_a_plan_goes_on_without_an_answer_once_its_patience_is_over() -> None:
    world = World()
    world.answers = deaf
    world.run(6, 0.62)
    world.run(28)
    assert world.asked() == ["checkpoint"]
    world.run(4)
    assert world.asked() == ["checkpoint", "purge"]
    assert [d.op for d in world.kinds("withdraw")] == ["checkpoint"]
    world.run(60)
    last = next(d.plan for d in world.kinds("plan") if d.plan and d.plan.state == "expired")
    assert "no answer in 30s" in last.detail


def test_an_answer_that_comes_late_is_heard() -> None:
    world = World()
    world.answers = deaf
    world.run(6, 0.62)
    plan = world.state.plan
    assert plan is not None
    world.answer(plan.steps[0].command_id, "running")
    world.run(40)
    world.answer(plan.steps[0].command_id, "done")
    world.tick()
    assert world.state.plan is not None
    assert world.state.plan.steps[0].state == "done"


def test_a_request_that_was_lost_is_handed_over_again_under_the_same_id() -> None:
    world = World()
    world.answers = loses
    world.run(12, 0.62)
    ids = [d.command_id for d in world.kinds("ask")]
    assert len(ids) > 1
    assert len(set(ids)) == 1


def test_a_request_that_was_lost_is_not_handed_over_again_once_memory_recovered() -> None:
    world = World()
    world.answers = loses
    world.run(10, 0.80)
    before = len(world.told)
    world.run(10, 0.62)  # under the end of intervene, long before its dwell is over
    assert world.asked(before) == []
    assert world.state.last is not None
    assert world.state.last.detail.startswith("recovered: 62.0%, under 70%")


def test_a_higher_level_preempts_and_what_was_not_begun_is_taken_back() -> None:
    world = World()
    world.answers = deaf
    world.run(10, 0.62)
    low = world.state.plan
    assert low is not None
    world.share = 0.92
    decisions = world.tick()
    assert [d.kind for d in decisions] == ["level", "withdraw", "plan", "plan", "ask"]
    assert world.state.plan is not None
    assert world.state.plan.level == "emergency"
    assert world.state.last is not None
    assert world.state.last.detail == "pre-empted by emergency"


def test_a_lower_level_preempts_nothing() -> None:
    disk = ResourceRule(warn=0.5, levels=Policy().levels)
    world = World(replace(Policy(), resources={"disk": disk}))
    world.answers = deaf
    world.run(8, 0.80)
    before = world.state.plan
    assert before is not None
    assert before.level == "intervene"
    world.others = (ResourceFacts(name="disk", used=6.0, limit=10.0),)
    world.run(8)
    assert world.state.levels["disk"].level == "warn"
    assert world.state.plan is not None
    assert world.state.plan.id == before.id


def test_an_emergency_of_memory_does_not_wait_for_one_of_a_tier() -> None:
    tier = ResourceRule(emergency=0.5, levels=Policy().levels)
    world = World(replace(Policy(), resources={"tier:recent": tier}))
    world.answers = deaf
    world.others = (ResourceFacts(name="tier:recent", used=6.0, limit=10.0),)
    world.run(4)
    assert world.state.plan is not None
    assert world.state.plan.resource == "tier:recent"
    world.share = 0.91
    world.tick()
    assert world.state.plan.resource == "memory"


def test_what_the_agent_lacks_or_nobody_allowed_is_left_out_and_named() -> None:
    world = World()
    world.ops = ALL - {"abort_experiment"}
    world.allow = ALL - {"reclaim"}
    world.run(10, 0.92)
    assert world.asked() == ["pause", "purge"]
    detail = next(d.plan.detail for d in world.kinds("plan") if d.plan)
    assert detail == "abort_experiment not offered by this agent; reclaim not allowed"
    assert world.standing().missing == {
        "abort_experiment": "not offered by this agent",
        "reclaim": "not allowed",
    }


def test_a_plan_with_no_step_left_is_told_once() -> None:
    world = World()
    world.ops = frozenset()
    world.run(400, 0.92)
    assert world.state.plan is None
    assert len(world.kinds("suppressed")) == 1
    assert "no step" in world.standing().waiting


def test_an_operation_that_is_taken_away_in_mid_plan_is_stepped_over() -> None:
    world = World()
    world.answers = deaf
    world.run(8, 0.62)
    world.allow = ALL - {"purge"}
    plan = world.state.plan
    assert plan is not None
    world.answer(plan.steps[0].command_id, "done")
    world.run(4)
    assert world.asked() == ["checkpoint"]
    assert world.state.last is not None
    assert world.state.last.detail == "purge refused (not allowed)"


def test_what_recovered_meanwhile_is_not_acted_on() -> None:
    world = World()
    world.answers = deaf
    world.run(8, 0.62)
    plan = world.state.plan
    assert plan is not None
    world.answer(plan.steps[0].command_id, "done")
    world.share = 0.54
    world.run(4)
    assert world.asked() == ["checkpoint"]
    assert world.state.last is not None
    assert world.state.last.detail.startswith("recovered: 54.0%, under 55%")


def test_a_gentle_step_waits_for_a_measurement_an_emergency_does_not() -> None:
    for share, asked in ((0.62, ["checkpoint"]), (0.92, ["abort_experiment", "pause"])):
        world = World()
        world.answers = deaf
        world.run(8, share)
        plan = world.state.plan
        assert plan is not None
        world.measured = False
        world.run(12)
        world.answer(plan.steps[0].command_id, "done")
        world.run(4)
        assert world.asked()[:2] == asked


@pytest.mark.parametrize("share", [None, float("nan"), float("inf"), -1.0])
def test_a_figure_that_is_none_decides_nothing(share: float | None) -> None:
    world = World()
    world.run(60, 0.3)
    world.run(60, share)
    assert world.told == []
    world.run(2, 0.92)
    assert world.level() == "emergency"
    world.run(900, share)
    assert world.level() == "emergency"


def test_a_limit_that_vanishes_ends_a_level_after_the_dwell_and_one_that_shrinks_begins_it() -> (
    None
):
    world = World()
    world.run(20, 0.76)
    used = 0.76 * 8e9
    world.limit, world.memory = None, {"used": used}
    world.run(290)
    assert world.level() == "intervene"
    world.run(20)
    assert world.level() == "normal"
    world.limit, world.memory = 4e9, {"used": used}
    world.tick()
    assert world.level() == "hard"


def test_a_resource_of_its_own_has_its_own_levels_and_plans() -> None:
    rule = ResourceRule(
        warn=0.5,
        levels=replace(ResourceRule().levels, warn=LevelRule(steps=Policy().levels.warn.steps)),
    )
    world = World(replace(Policy(), resources={"tier:workspace": rule}))
    world.others = (ResourceFacts(name="tier:workspace", used=6.0, limit=10.0),)
    world.run(10)
    assert world.level() == "normal"
    assert world.standing().levels == {"memory": "normal", "tier:workspace": "warn"}
    plan = next(d.plan for d in world.kinds("plan") if d.plan)
    assert (plan.resource, plan.rule) == ("tier:workspace", "resources.tier:workspace.levels.warn")


def test_a_measurement_from_the_future_decides_nothing() -> None:
    world = World()
    world.run(10)
    world.memory = {"measured_m_us": world.now.m_us + 3_600_000_000}
    world.run(20, 0.92)
    assert world.level() == "normal"
    world.memory = {}
    world.tick()
    assert world.level() == "emergency"


def test_a_resource_that_the_policy_does_not_name_any_more_has_no_level() -> None:
    world = World(replace(Policy(), resources={"disk": ResourceRule(warn=0.5)}))
    world.others = (ResourceFacts(name="disk", used=6.0, limit=10.0),)
    world.run(10)
    assert world.standing().levels["disk"] == "warn"
    world.policy = Policy()
    world.run(4)
    assert "disk" not in world.standing().levels
