"""R8, R9 and R10, sentence by sentence, on the default policy."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from memwatch.config.policy import Policy, SoftLimit
from memwatch.config.policy_load import load_policy
from memwatch.config.schema import Profile
from memwatch.domain.command import CommandState
from memwatch.domain.level import Level
from memwatch.domain.policy import Keep
from memwatch.engine.decision import Decision
from tests.engine.world import ALL, World

LITERAL = Policy(soft=SoftLimit(forecast=()))


@pytest.mark.parametrize(
    ("share", "level", "steps"),
    [
        # "Below warn 60 %: nothing."
        (0.59, "normal", []),
        # "Over warn: incremental checkpoint + incremental purge, expired entries first."
        (0.61, "warn", [("checkpoint", {"kind": "incremental"}), ("purge", {"how": "expired"})]),
        # "Over intervene 75 %: no new experiments; the whole state of the current one is written
        # to disk; then history is compressed hard."
        (
            0.76,
            "intervene",
            [
                ("pause", {}),
                ("checkpoint", {"kind": "experiment"}),
                ("purge", {"tier": "history", "how": "compress"}),
            ],
        ),
        # "Over emergency 90 %: the current experiment is aborted at once (not the agent), a
        # snapshot as complete as possible is saved, then memory is reclaimed fully."
        (
            0.91,
            "emergency",
            [
                ("abort_experiment", {"save": "best_effort"}),
                ("pause", {}),
                ("purge", {"how": "reclaim"}),
                ("reclaim", {}),
            ],
        ),
        # "The hard limit (95 %, never below emergency) is rigid: touching it forces read-only."
        (
            0.95,
            "hard",
            [
                ("read_only", {}),
                ("abort_experiment", {"save": "best_effort"}),
                ("purge", {"how": "reclaim"}),
                ("reclaim", {}),
            ],
        ),
    ],
)
def test_r8_what_is_done_at_a_share(
    share: float, level: Level, steps: list[tuple[str, dict[str, object]]]
) -> None:
    world = World()
    world.run(20, share)
    assert world.level() == level
    plans = [d.plan for d in world.kinds("ask") if d.plan and d.plan.level == level]
    first = [plan.id for plan in plans[:1]]
    asked = [(d.op, d.args) for d in world.kinds("ask") if d.plan and d.plan.id in first]
    assert asked == steps


def test_r8_in_verification_history_is_spilled_instead_of_compressed() -> None:
    world = World(load_policy(Profile(name="any")).of("verification"))
    world.run(20, 0.8)
    purges = [d.args for d in world.kinds("ask") if d.op == "purge" and d.level == "intervene"]
    assert purges[0] == {"tier": "history", "how": "reclaim"}


def test_r8_an_emergency_is_met_in_the_tick_that_sees_it() -> None:
    world = World()
    world.run(10, 0.5)
    world.share = 0.91
    assert [d.op for d in world.tick() if d.kind == "ask"] == ["abort_experiment"]


@pytest.mark.parametrize("answer", ["failed", "refused", "asked"])
def test_r8_a_checkpoint_that_fails_delays_nothing(answer: CommandState) -> None:
    world = World()

    def agent(decision: Decision) -> CommandState:
        return answer if decision.op in ("checkpoint", "abort_experiment") else "done"

    world.answers = agent
    world.run(40, 0.91)
    assert world.asked()[:4] == ["abort_experiment", "pause", "purge", "reclaim"]
    first = next(d.plan for d in world.kinds("plan") if d.plan and d.plan.state == "done")
    assert "abort_experiment" in first.detail


def test_r8_a_pause_ends_at_the_exit_level_after_a_dwell() -> None:
    world = World()
    world.run(20, 0.76)
    assert "pause" in world.holds
    world.run(290, 0.69)
    assert "pause" in world.holds
    world.run(20, 0.69)
    assert "pause" not in world.holds
    assert world.level() == "warn"


def test_r8_a_dip_that_is_shorter_than_the_dwell_ends_no_pause() -> None:
    world = World()
    world.run(20, 0.76)
    for _ in range(5):
        world.run(280, 0.69)
        world.run(4, 0.71)
    assert "pause" in world.holds


def test_r8_after_an_emergency_the_next_experiment_starts_only_under_warn() -> None:
    world = World()
    world.run(20, 0.92)
    world.run(900, 0.61)
    assert "pause" in world.holds
    world.run(310, 0.58)
    assert "pause" not in world.holds


def test_r9_the_soft_limit_starts_at_warn_and_carries_its_actions() -> None:
    world = World(LITERAL)
    assert world.standing().soft_share == 0.60
    world.memory = {"growth_per_min": 51e6}
    world.run(10, 0.45)
    assert world.standing().soft_share == 0.50
    world.run(10, 0.51)
    assert world.level() == "warn"
    assert world.asked()[:2] == ["checkpoint", "purge"]


@pytest.mark.parametrize(("growth", "soft"), [(50e6, 0.60), (50_000_001.0, 0.50)])
def test_r9_growth_above_50_mb_a_minute_lowers_it_by_10_points(growth: float, soft: float) -> None:
    world = World(LITERAL)
    world.memory = {"growth_per_min": growth}
    world.tick()
    assert world.standing().soft_share == soft


def test_r9_each_10_minutes_of_such_growth_lower_it_again_down_to_its_floor() -> None:
    world = World(LITERAL)
    world.memory = {"growth_per_min": 80e6}
    world.run(3600, 0.15)
    moves = [d.value for d in world.kinds("soft_limit")]
    assert moves == [0.5, 0.4, 0.3, 0.2]


def test_r9_stable_memory_lets_it_rise_back_to_its_configured_value_and_no_further() -> None:
    world = World(LITERAL)
    world.memory = {"growth_per_min": 80e6}
    world.run(700, 0.15)
    world.memory = {"growth_per_min": 1e6}
    world.run(7200)
    assert [d.value for d in world.kinds("soft_limit")] == [0.5, 0.4, 0.5, 0.6]


def test_r9_max_above_lets_it_go_beyond_but_not_over_intervene() -> None:
    world = World(replace(LITERAL, soft=SoftLimit(forecast=(), max_above=0.3)))
    world.memory = {"growth_per_min": 0.0}
    world.run(7200, 0.15)
    assert [d.value for d in world.kinds("soft_limit")] == [0.7, 0.75]


def test_r9_75_and_90_do_not_move_with_it() -> None:
    world = World(LITERAL)
    world.memory = {"growth_per_min": 80e6}
    world.run(3000, 0.15)
    assert world.standing().soft_share == 0.2
    world.memory = {}
    world.run(100, 0.74)
    assert world.level() == "warn"
    world.run(10, 0.76)
    assert world.level() == "intervene"


def test_r9_with_nothing_around_it_only_growth_moves_it() -> None:
    world = World(LITERAL)
    world.memory = {"growth_per_min": 40e6, "time_to_limit_s": (10.0, 20.0)}
    world.run(3000, 0.3)
    assert world.kinds("soft_limit") == []


def test_r9_touching_the_hard_limit_forces_read_only_and_only_a_person_leaves_it() -> None:
    world = World()
    world.run(30, 0.96)
    assert "read_only" in world.holds
    world.run(4000, 0.10)
    assert world.level() == "normal"
    assert "read_only" in world.holds
    assert world.state.touched_m_us is not None
    assert "read_write" not in world.asked()
    world.person_releases("read_only")
    world.run(10)
    assert world.state.touched_m_us is None


def test_r10_thresholds_follow_the_phase_that_is_declared() -> None:
    strict = replace(Policy(), thresholds=replace(Policy().thresholds, warn=0.4, intervene=0.5))
    world = World()
    world.run(60, 0.55)
    assert world.level() == "normal"
    world.policy = strict
    world.run(60, 0.55)
    assert world.level() == "intervene"


def test_r10_retention_follows_the_phase_and_goes_back_with_it() -> None:
    world = World()
    world.policy = replace(Policy(), retention={"history": Keep(experiments=200)})
    world.run(10)
    world.policy = Policy()
    world.run(10)
    asked = [d.args for d in world.kinds("ask")]
    assert asked == [
        {"tier": "history", "keep": {"experiments": 200}},
        {"tier": "history", "keep": None},
    ]


def test_every_step_of_the_default_policy_is_one_that_an_agent_may_offer() -> None:
    levels = Policy().levels
    rules = (levels.warn, levels.intervene, levels.emergency, levels.hard)
    assert {a.op for rule in rules for a in (*rule.steps, *rule.escalate)} <= ALL
