"""What a crash may cost: over the budget a checkpoint is taken that brings it under, not more."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memwatch.analytics.budget import VAIN
from memwatch.config.policy import CrashBudget, Policy
from memwatch.domain.command import CommandState
from memwatch.domain.level import EngineMode
from memwatch.engine.decision import Decision
from memwatch.engine.facts import CheckpointFacts, RecoveryFacts
from tests.engine.world import World

AFTER = {"incremental": 50.0, "full": 20.0}


def world(recover_s: float | None = 60, work_s: float | None = None, apart_s: float = 120) -> World:
    budget = CrashBudget(recover_s=recover_s, work_s=work_s, apart_s=apart_s)
    return World(replace(Policy(), budget=budget))


def facts(
    rto_s: float | None, work_s: float | None = None, after: dict[str, float] | None = None
) -> RecoveryFacts:
    return RecoveryFacts(rto_s=rto_s, work_s=work_s, rto_after_s=AFTER if after is None else after)


def kinds(of: World) -> list[str]:
    """Return the kinds of checkpoints asked for; nothing else may be asked for."""
    asked = of.kinds("ask")
    assert all(one.op == "checkpoint" for one in asked)
    return [one.args["kind"] for one in asked]


@pytest.mark.parametrize(
    ("recovery", "asked"),
    [
        (facts(59.9), []),
        (facts(60.1), ["incremental"]),
        (facts(74, after={"incremental": 61, "full": 60}), ["full"]),
        (facts(74, after={"full": 20}), ["full"]),
        (facts(74, after={"incremental": 73, "full": 72}), []),
        (facts(74, after={}), []),
        (facts(None), []),
        (facts(float("nan")), []),
        (facts(float("inf")), []),
        (facts(None, work_s=297), []),
        (facts(None, work_s=299), ["incremental"]),
        (facts(None, work_s=301), ["incremental"]),
        (facts(74, work_s=301, after={"full": 20}), ["full"]),
        (facts(74, work_s=301, after={"full": 70}), ["incremental"]),
    ],
)
def test_the_cheapest_checkpoint_that_helps_is_taken_once(
    recovery: RecoveryFacts, asked: list[str]
) -> None:
    run = world(work_s=300)
    run.recovery = recovery
    run.run(100)
    assert kinds(run) == asked


@pytest.mark.parametrize(
    ("taken", "said"), [("allow", "not allowed"), ("ops", "not offered by this agent")]
)
def test_where_no_checkpoint_may_be_taken_that_is_said_and_none_is(taken: str, said: str) -> None:
    run = world(recover_s=None, work_s=300)
    setattr(run, taken, getattr(run, taken) - {"checkpoint"})
    run.recovery = facts(None, work_s=400)
    run.run(60)
    assert kinds(run) == []
    (told,) = run.kinds("suppressed")
    assert f"checkpoint {said}" in told.why


@pytest.mark.parametrize("mode", ["off", "observe"])
def test_who_only_watches_saves_nothing(mode: EngineMode) -> None:
    run = world(recover_s=None, work_s=300)
    run.mode = mode
    run.recovery = facts(None, work_s=400)
    run.run(60)
    assert kinds(run) == []


def test_work_is_saved_before_its_budget_is_over_and_not_after() -> None:
    """A checkpoint takes 9 s here, and a look comes every 2 s: 11 s before is early enough."""
    run = world(recover_s=None, work_s=300)
    run.checkpoint = CheckpointFacts(p95_s=9.0)
    run.recovery = facts(None, work_s=288)
    run.run(4)
    assert kinds(run) == []
    run.recovery = facts(None, work_s=289.5)
    run.run(4)
    assert kinds(run) == ["incremental"]
    plan = run.state.last or run.state.plan
    assert plan is not None
    assert plan.why.startswith("4m50s of work is in no checkpoint, nearly your 5m00s"), plan.why
    slow = world(recover_s=None, work_s=300)
    slow.checkpoint = CheckpointFacts(p95_s=200.0)
    slow.recovery = facts(None, work_s=269)
    slow.run(4)
    assert kinds(slow) == [], "one that takes for ever is not begun at once again"


def test_the_reason_names_figure_budget_and_what_it_would_be_after() -> None:
    run = world()
    run.recovery = facts(74, after={"full": 21})
    run.run(4)
    plan = run.state.last
    assert plan is not None
    assert (plan.level, plan.rule, plan.effect) == ("warn", "budget.recover_s", "unmeasured")
    assert plan.why == (
        "recovery 74s is over your 60s (budget.recover_s), 21s after a full checkpoint; "
        "under 60s it would not"
    )
    assert run.state.cooldowns == {}, "a level that is entered next waits for nothing"


def test_what_no_checkpoint_brings_under_is_told_once_and_again_when_it_comes_back() -> None:
    run = world()
    for course in (74, 58, 75, 61, 59, 80):  # it swings around its budget
        run.recovery = facts(course, after={"full": 70})
        run.run(20)
    told = run.kinds("suppressed")
    assert [one.rule for one in told] == ["budget.recover_s"]
    assert told[0].why.startswith("no checkpoint brings it under; recovery 74s is over your 60s")
    assert run.standing().waiting == "no checkpoint brings it under (budget.recover_s)"
    run.recovery = facts(40)
    run.run(20)
    run.recovery = facts(74, after={"full": 70})
    run.run(20)
    assert len(run.kinds("suppressed")) == 2
    assert run.asked() == []


def test_a_checkpoint_that_did_not_help_is_repeated_when_the_estimate_moved_on() -> None:
    run = world(apart_s=60)
    run.recovery = facts(74)
    run.run(30)
    run.recovery = facts(70)
    run.run(600)
    assert kinds(run) == ["incremental"]
    assert run.standing().waiting == f"{VAIN} (budget.recover_s)"
    run.recovery = facts(76)
    run.run(600)
    assert kinds(run) == ["incremental"], "not a tenth more than what it left"
    run.recovery = facts(78)
    run.run(600)
    assert kinds(run) == ["incremental"] * 2


def test_work_is_held_to_its_budget_all_night() -> None:
    run = world(recover_s=None, work_s=300)
    worst, since_s = 0.0, 0.0
    for _ in range(2 * 3600):
        run.recovery = facts(None, work_s=since_s)
        before = len(run.kinds("ask"))
        run.tick(1)
        since_s = 0.0 if len(run.kinds("ask")) > before else since_s + 1
        worst = max(worst, since_s)
    assert worst <= 300, "never more than that"
    assert len(kinds(run)) == 24


@pytest.mark.parametrize("share", [0.92, 0.97])
def test_in_an_emergency_nothing_is_asked_for_it(share: float) -> None:
    run = world()
    run.recovery = facts(74)
    run.run(200, share)
    assert "checkpoint" not in run.asked()


def test_a_plan_of_a_level_is_measured_before_a_budget_has_its_turn() -> None:
    run = world()
    run.run(30, 0.62)
    before = len(run.told)
    run.recovery = facts(74)
    run.run(120)
    measured = next(n for n, one in enumerate(run.told[before:]) if one.kind == "effect")
    by_budget = [n for n, one in enumerate(run.told[before:]) if one.rule == "budget.recover_s"]
    assert by_budget
    assert measured < by_budget[0]


def test_in_ask_mode_a_plan_ends_when_the_figure_is_within_its_budget_again() -> None:
    run = world()
    run.mode = "ask"
    run.recovery = facts(74)
    run.run(20)
    assert run.state.plan is not None
    run.recovery = facts(30)
    run.run(4)
    assert not run.asked()
    assert run.state.last is not None
    assert run.state.last.detail.startswith("within its budget again (budget.recover_s)")


def test_usage_that_is_not_known_just_now_holds_it_back_and_one_nobody_measures_does_not() -> None:
    run = world()
    run.run(10)
    run.measured = False
    run.run(10)
    run.recovery = facts(74)
    run.run(60)
    assert kinds(run) == []
    run = world()
    run.share = None
    run.memory = {"name": "other"}
    run.recovery = facts(74)
    run.run(60)
    assert kinds(run) == ["incremental"]


def test_observing_says_what_would_call_for_it() -> None:
    run = world()
    run.mode = "observe"
    run.recovery = facts(74)
    run.run(10)
    assert run.standing().waiting == "budget.recover_s: the engine only observes"


FIGURES = st.one_of(st.none(), st.floats(0, 400), st.sampled_from([float("nan"), float("inf")]))


@settings(max_examples=60)
@given(
    course=st.lists(
        st.tuples(FIGURES, FIGURES, FIGURES, st.sampled_from([0.3, 0.62, 0.8, 0.92]), st.booleans())
    ),
    answer=st.sampled_from(["done", "failed", "refused", "asked"]),
)
def test_whatever_the_figures_its_checkpoints_keep_apart_and_are_called_for(
    course: list[tuple[float | None, float | None, float | None, float, bool]],
    answer: CommandState,
) -> None:
    run = world(recover_s=60, work_s=300)
    run.answers = lambda _: answer
    asked: list[tuple[int, Decision]] = []
    for rto_s, work_s, full_s, share, long in course:
        after = {} if full_s is None else {"full": full_s}
        run.recovery, run.share = facts(rto_s, work_s, after), share
        for _ in range(40 if long else 3):
            for one in run.tick():
                if one.kind == "ask" and one.rule.startswith("budget."):
                    over = {"budget.recover_s": (rto_s, 60.0), "budget.work_s": (work_s, 300.0)}
                    figure, limit = over[one.rule]
                    assert figure is not None
                    assert figure > limit
                    assert run.level() in ("normal", "warn", "intervene")
                    asked.append((run.now.m_us, one))
    names = {one.command_id: at for at, one in reversed(asked)}  # a lost one comes again
    times = sorted(names.values())
    assert all(b - a >= 120e6 for a, b in pairwise(times))
