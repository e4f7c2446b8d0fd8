"""Reasons word by word: value, limit, window, rule, and what would have changed it."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.config.policy import Enter, Policy, ResourceRule
from memwatch.engine.decision import Decision
from memwatch.engine.facts import ResourceFacts
from tests.engine.world import World

HELD = replace(Policy(), enter=Enter(samples=1000))


def first(world: World, kind: str) -> Decision:
    """Return the first decision of a kind."""
    return world.kinds(kind)[0]


def test_a_level_that_is_entered() -> None:
    world = World(HELD)
    world.memory = {"limit_name": "cgroup /x memory.max"}
    world.run(100, 0.74)
    world.run(100, 0.762)
    told = world.kinds("level")[-1]
    assert told.why == (
        "memory 76.2% of 8.0G (cgroup /x memory.max), over 75% for 60 s (thresholds.intervene); "
        "under 70% it would not"
    )
    assert (told.rule, told.value, told.limit) == ("thresholds.intervene", 0.762, 8e9)


def test_a_level_that_is_left() -> None:
    world = World()
    world.run(20, 0.62)
    world.run(310, 0.5)
    assert world.kinds("level")[-1].why == (
        "memory 50.0% of 8.0G (policy), under 55% for 300 s (exit.warn): normal"
    )


def test_a_level_that_ends_because_nothing_limits_it_any_more() -> None:
    world = World()
    world.run(20, 0.62)
    world.limit, world.memory = None, {"used": 5e9}
    world.run(310)
    assert world.kinds("level")[-1].why == (
        "memory 5.0G, nothing limits it for 300 s (exit.warn): normal"
    )


def test_a_plan_its_steps_and_its_effect() -> None:
    world = World()
    world.run(40, 0.62)
    plan = first(world, "plan").plan
    assert plan is not None
    assert plan.why == (
        "memory 62.0% of 8.0G (policy), over 60% for 4.0s (soft); under 55% it would not"
    )
    assert (first(world, "ask").why, first(world, "ask").rule) == (plan.why, "levels.warn")
    assert first(world, "effect").why == (
        "plan warn: freed 0B in 15s, not 5% of the limit or its exit level"
    )


def test_a_checkpoint_while_there_is_time() -> None:
    world = World()
    world.memory = {"growth_recent_per_min": 1e6, "time_to_limit_s": (240.0, 400.0)}
    world.tick()
    assert first(world, "plan").why == (
        "memory reaches its limit in 4m00s, a checkpoint wants 5m00s (none was measured yet); "
        "slower growth would not"
    )


def test_a_name_from_outside_is_inert() -> None:
    name = "tier:\x1b[2Jx"
    world = World(replace(Policy(), resources={name: ResourceRule(warn=0.5)}))
    world.others = (ResourceFacts(name=name, used=6.0, limit=10.0, limit_name="\x07bell"),)
    world.run(10)
    why = first(world, "level").why
    assert "\x1b" not in why
    assert "\x07" not in why
