"""Retention by phase: asked for one tier at a time, once, and taken back."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.config.policy import Policy
from memwatch.domain.policy import Keep
from tests.engine.world import ALL, World, deaf, loses

BOTH = replace(Policy(), retention={"history": Keep(experiments=50), "recent": Keep(count=9)})


def test_one_request_at_a_time_and_each_once() -> None:
    world = World(BOTH)
    world.answers = deaf
    world.run(10)
    assert [d.args["tier"] for d in world.kinds("ask")] == ["history"]
    world.answer(world.kinds("ask")[0].command_id, "done")
    world.answers = lambda _: "done"
    world.run(1000)
    assert [d.args["tier"] for d in world.kinds("ask")] == ["history", "recent"]


def test_what_the_agent_refuses_is_not_asked_again_until_the_policy_says_something_else() -> None:
    world = World(BOTH)
    world.answers = lambda _: "refused"
    world.run(1000)
    assert len(world.asked()) == 2
    world.policy = replace(BOTH, retention={"history": Keep(experiments=40)})
    world.run(1000)
    assert [d.args["keep"] for d in world.kinds("ask")][2:] == [{"experiments": 40}]


def test_what_was_lost_is_asked_again() -> None:
    world = World(BOTH)
    world.answers = loses
    world.run(70)
    assert [d.args["tier"] for d in world.kinds("ask")] == ["history", "history"]


def test_none_in_an_emergency_none_that_is_not_allowed_none_in_observe() -> None:
    emergency, forbidden, observing = World(BOTH), World(BOTH), World(BOTH, mode="observe")
    forbidden.allow = ALL - {"retain"}
    emergency.run(100, 0.92)
    for world in (forbidden, observing):
        world.run(100)
    assert all("retain" not in world.asked() for world in (emergency, forbidden, observing))


def test_in_shadow_it_is_said_and_not_sent_and_asked_for_real_once_armed() -> None:
    world = World(BOTH, mode="shadow")
    world.run(100)
    assert [d.dry for d in world.kinds("ask")] == [True, True]
    world.mode = "act"
    world.run(100)
    assert [d.dry for d in world.kinds("ask")][2:] == [False, False]


def test_a_new_start_of_the_agent_is_asked_anew() -> None:
    world = World(BOTH)
    world.run(100)
    world.start_id = "two"
    world.run(100)
    assert len(world.asked()) == 4


def test_it_says_what_of() -> None:
    world = World(BOTH)
    world.phase = "verification"
    world.run(2)
    why = world.kinds("ask")[0].why
    assert why == "phase verification keeps it otherwise: history (retention.history)"
