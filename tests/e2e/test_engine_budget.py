"""What a crash may cost is held by a real guard: a real agent checkpoints in time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from memwatch.domain.record import Record
from tests.e2e.night import agent_records, guard_records, short_policy, steps_of
from tests.e2e.stage import Puppet, Stage, light, still
from tests.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def guarded(stage: Stage, name: str, policy: str) -> Puppet:
    """Return an agent at work that takes no checkpoint by itself, and its guard."""
    puppet = stage.puppet(name)
    puppet.ask("work")
    short_policy(stage, puppet.run_dir, policy)
    stage.guard(puppet.run_dir)
    return puppet


def saved(puppet: Puppet) -> int:
    return len(agent_records(puppet.run_dir, "checkpoint.commit"))


def test_work_that_no_checkpoint_holds_stays_within_its_budget(stage: Stage) -> None:
    puppet = guarded(stage, "work", "budget: {work_s: 3, apart_s: 1}")

    def done() -> dict[str, Record]:
        plans = guard_records(stage, puppet.run_dir, "plan")
        return {one.text("id"): one for one in plans if one.text("state") == "done"}

    wait_for(lambda: len(done()) >= 3, "three plans")
    plans = list(done().values())
    assert {plan.text("rule") for plan in plans} == {"budget.work_s"}
    assert all("of work is in no checkpoint, " in plan.text("why") for plan in plans)
    assert [steps_of(plan) for plan in plans] == [{"checkpoint": "done"}] * len(plans)
    gaps_s = [(b.m_us - a.m_us) / 1e6 for a, b in pairwise(plans)]
    assert min(gaps_s) > 2.5, "none before it is due"
    assert saved(puppet) >= 3


def test_a_budget_that_no_checkpoint_can_hold_is_told_and_nothing_is_done(stage: Stage) -> None:
    puppet = guarded(stage, "hopeless", "budget: {recover_s: 0.001}")
    puppet.ask("checkpoint", "full")
    before = saved(puppet)
    status = stage.wait_status(puppet.run_dir, lambda s: s["alerts"], "an alert")
    (alert,) = status["alerts"]
    assert (alert["key"], alert["severity"]) == ("budget", "warning")
    assert "no checkpoint brings it under" in alert["text"]
    assert light(status, "CKPT")["word"] == "WARN"
    assert status["recovery"]["budget"]["checkpoint"] is None
    assert any("budget.recover_s=" in one["set"] for one in status["advice"])
    with still(3):
        pass
    assert saved(puppet) == before
    told = guard_records(stage, puppet.run_dir, "engine.decision")
    assert [one.text("rule") for one in told if one.text("what") == "suppressed"] == [
        "budget.recover_s"
    ]


def test_in_shadow_the_checkpoint_is_left_to_a_person(stage: Stage) -> None:
    puppet = guarded(stage, "shadow", "mode: shadow\nbudget: {work_s: 2, apart_s: 1}")
    status = stage.wait_status(puppet.run_dir, lambda s: s["alerts"], "an alert")
    assert [one["key"] for one in status["alerts"]] == ["budget"]
    assert "incremental checkpoint, which is left to you" in status["alerts"][0]["text"]
    assert status["suggestion"]["op"] == "checkpoint"
    assert status["suggestion"]["text"].startswith("checkpoint incremental: ")
    assert saved(puppet) == 0
