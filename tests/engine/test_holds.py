"""The engine's pause: when it ends, and that it never lasts without helping or being said."""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from memwatch.config.policy import Pause, Policy
from memwatch.domain.level import EngineMode
from tests.engine.world import World

QUIET = replace(
    Policy(),
    levels=replace(
        Policy().levels, intervene=replace(Policy().levels.intervene, escalate=(), cooldown_s=1e6)
    ),
)
"""Intervene is done once and never repeated."""


def paused(policy: Policy = QUIET) -> World:
    """Return a world that has just been paused at 76 %."""
    world = World(policy)
    world.run(40, 0.76)
    assert "pause" in world.holds
    return world


def test_a_release_that_is_not_obeyed_is_asked_for_again() -> None:
    world = paused()
    world.answers = lambda _: "asked"
    world.run(340, 0.5)
    resumes = [d for d in world.kinds("ask") if d.op == "resume"]
    assert len(resumes) > 1
    assert {d.args["owner"] for d in resumes} == {"engine"}
    spans = [b.command_id != a.command_id for a, b in pairwise(resumes)]
    assert all(spans)


def test_a_release_that_ended_with_its_guard_is_asked_for_again_at_once() -> None:
    world = paused()
    world.answers = lambda _: "asked"
    while not (resumes := [d for d in world.kinds("ask") if d.op == "resume"]):
        world.run(2, 0.5)
    world.answer(resumes[0].command_id, "unknown")
    world.run(2)
    assert world.asked()[-2:] == ["resume", "resume"]


@pytest.mark.parametrize("mode", ["shadow", "observe", "off"])
def test_the_pause_ends_when_the_engine_may_not_act_any_more_read_only_does_not(
    mode: EngineMode,
) -> None:
    world = paused()
    world.hold("read_only")
    world.mode = mode
    world.run(4)
    assert list(world.holds) == ["read_only"]
    resume = world.kinds("ask")[-1]
    assert (resume.op, resume.dry) == ("resume", False)
    assert f"may not act any more ({mode})" in resume.why
    assert "read-only stays" in resume.why


def test_a_pause_of_somebody_else_is_left_alone() -> None:
    world = World()
    world.hold("pause")
    world.holds["pause"] = replace(world.holds["pause"], owner="ann")
    world.run(4000, 0.3)
    assert world.asked() == []


def test_a_person_who_ends_the_pause_is_respected_until_the_cool_down_is_over() -> None:
    world = paused(Policy())
    world.run(1000)
    before = len(world.told)
    world.person_releases()
    world.run(590)
    assert "pause" not in world.asked(before)
    assert any("a person ended a hold" in d.why for d in world.kinds("suppressed"))


def test_a_person_who_ends_the_pause_does_not_stop_what_a_higher_level_does() -> None:
    world = paused()
    world.person_releases()
    world.tick()
    before = len(world.told)
    world.run(20, 0.91)
    assert world.asked(before)[:2] == ["abort_experiment", "pause"]


def test_a_pause_that_is_in_force_is_not_asked_for_again() -> None:
    world = paused()
    before = len(world.told)
    world.run(20, 0.92)
    assert world.asked(before) == ["abort_experiment", "purge", "reclaim"]


def test_a_pause_lasts_through_the_highest_level_seen_meanwhile() -> None:
    world = paused()
    world.run(20, 0.91)
    world.run(2 * 300, 0.61)
    assert "pause" in world.holds
    world.run(310, 0.59)
    assert "pause" not in world.holds


@pytest.mark.parametrize("then", ["release", "abort", "keep"])
def test_an_endless_pause_is_shouted_reclaimed_once_more_then_ended_as_the_policy_says(
    then: str,
) -> None:
    pause = Pause(longest_s=600, then="release")
    world = paused(replace(QUIET, pause=replace(pause, then=then)))
    before = len(world.told)
    world.run(700)
    assert world.asked(before)[:2] == ["purge", "reclaim"]
    shouts = [d.rule for d in world.kinds("shout")]
    assert shouts[0] == "pause.longest_s"
    rest = world.asked(before)[2:]
    expected = {"release": ["resume"], "abort": ["abort_experiment", "resume"], "keep": []}
    assert rest == expected[then]
    assert shouts[-1] == "pause.then"
    world.run(4000)
    assert ("pause" in world.holds) == (then == "keep")
    assert len(world.kinds("shout")) <= len(shouts) + 1


@pytest.mark.parametrize("then", ["release", "abort"])
def test_after_an_emergency_no_pause_ends_over_warn_however_long_it_lasts(then: str) -> None:
    """R8: the next experiment starts only under warn; that it stays is shouted once."""
    world = World(replace(Policy(), pause=replace(Pause(longest_s=600), then=then)))
    world.run(20, 0.92)
    world.run(4000, 0.72)
    assert "pause" in world.holds
    shouts = [d.why for d in world.kinds("shout")]
    assert len(shouts) == 2
    assert "until a person ends it" in shouts[-1]
    world.run(310, 0.55)
    assert "pause" not in world.holds


def test_what_is_tried_for_an_endless_pause_is_the_policys() -> None:
    world = paused(replace(QUIET, pause=Pause(longest_s=600, relief=())))
    before = len(world.told)
    world.run(700)
    assert world.asked(before) == ["resume"]


def test_a_pause_that_helps_after_all_has_another_length() -> None:
    world = paused(replace(QUIET, pause=Pause(longest_s=600)))
    world.run(560, 0.80)
    world.run(20)
    world.run(100, 0.72)
    assert "pause" in world.holds
    assert [d.rule for d in world.kinds("shout")] == ["pause.longest_s"]


def test_a_pause_that_outlived_the_memory_of_the_engine_still_ends() -> None:
    world = World()
    world.hold("pause")
    world.run(10, 0.5)
    assert "pause" not in world.holds


def test_the_hard_limit_that_could_make_nothing_read_only_is_forgotten_with_the_level() -> None:
    world = World(mode="shadow")
    world.run(20, 0.97)
    assert world.state.touched_m_us is not None
    world.run(400, 0.3)
    assert world.state.touched_m_us is None


def test_an_agent_that_began_anew_is_still_held() -> None:
    world = paused()
    world.start_id = "two"
    world.run(20, 0.76)
    assert "pause" in world.holds
    assert world.state.pause is not None


def test_a_pause_that_outlived_the_memory_of_the_engine_does_not_end_while_usage_is_high() -> None:
    world = World()
    world.hold("pause")
    world.run(60, 0.72)
    assert "pause" in world.holds
    world.run(4, 0.69)
    assert "pause" not in world.holds


def test_a_pause_is_not_ended_blindly() -> None:
    world = World()
    world.hold("pause")
    world.measured = False
    world.run(60, 0.72)
    assert "pause" in world.holds
