"""What the engine holds ends with its guard, is the next one's, or ends by a person's word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memwatch.agent import Run, RunOptions
from memwatch.domain.record import Record
from tests.e2e.night import (
    MB,
    agent_records,
    ask,
    guard_records,
    is_over,
    mode_of,
    nothing_lost,
    plans,
    press,
    short_policy,
    state_of,
    steps_of,
    viewer,
    wait_mode,
    wait_plan,
)
from tests.e2e.stage import Puppet, Stage, memory, still
from tests.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LIMIT = 250 * MB


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def at_work(stage: Stage, policy: str = "", steps: int = 8) -> Puppet:
    """Start an agent that works by itself, and give it a policy; no guard watches yet."""
    puppet = stage.puppet("night", memory_limit_bytes=LIMIT)
    puppet.ask("work", steps)
    short_policy(stage, puppet.run_dir, policy)
    return puppet


def test_a_pause_ends_with_its_lease_when_the_guard_was_killed(stage: Stage) -> None:
    puppet = at_work(
        stage, "pause: {lease_s: 4, longest_s: 60}\nlevels: {intervene: {escalate: []}}"
    )
    guard = stage.guard(puppet.run_dir)
    press(stage, puppet, 0.8, LIMIT)
    wait_mode(puppet.run_dir, "paused")
    with still(6.0):  # longer than its lease: a guard that lives renews it
        pass
    assert mode_of(puppet.run_dir) == "paused"
    guard.kill()
    guard.wait()
    held = puppet.ask("done")["experiments"]
    wait_mode(puppet.run_dir, "running", seconds=10)
    wait_for(lambda: puppet.ask("done")["experiments"] > held, "the agent to go on")


def test_a_guard_that_was_killed_is_taken_over_by_the_next(stage: Stage) -> None:
    """Killed while a step waits for the agent: the plan has an end, the hold an owner."""
    puppet = at_work(stage)
    guard = stage.guard(puppet.run_dir)
    press(stage, puppet, 0.8, LIMIT)
    wait_mode(puppet.run_dir, "paused")
    puppet.ask("rest")  # nobody comes to a safe point any more: the plan's checkpoint waits
    guard.kill()
    guard.wait()
    (begun,) = guard_records(stage, puppet.run_dir, "guard.begin")

    stage.guard(puppet.run_dir)
    stage.wait_status(
        puppet.run_dir,
        lambda s: [h["owner"] for h in s["holds"]] == ["engine"],
        "the hold to be the next guard's",
    )
    first, second = guard_records(stage, puppet.run_dir, "guard.begin")
    assert first.lsn == begun.lsn
    assert second.members["epoch"] > first.members["epoch"]
    with still(2.0):
        pass
    assert mode_of(puppet.run_dir) == "paused"
    asked = guard_records(stage, puppet.run_dir, "intervention")
    ids = [r.text("id") for r in asked if r.text("state") == "asked"]
    assert len(ids) == len(set(ids)), "no step is asked for twice"

    puppet.ask("release")
    session = viewer(stage, puppet.run_dir, "ann")

    def comes_by_until_over(plan: Record) -> bool:
        puppet.ask("safe_point")
        return is_over(plan)

    plan = wait_plan(stage, puppet.run_dir, "intervene", comes_by_until_over, "an end of the plan")
    wait_mode(puppet.run_dir, "running", seconds=30)
    assert steps_of(plan)["pause"] == "done"
    assert ask(session, "note", args={"text": "seen"}).state == "done"


def test_the_hard_limit_is_left_by_a_person_alone(stage: Stage) -> None:
    """Also not by a guard that begins anew, nor by an agent that does."""
    puppet = at_work(stage)
    guard = stage.guard(puppet.run_dir)
    press(stage, puppet, 0.97, LIMIT)
    plan = wait_plan(stage, puppet.run_dir, "hard", is_over, "what is done at the hard limit")
    assert next(iter(steps_of(plan).items())) == ("read_only", "done")
    assert mode_of(puppet.run_dir) == "read_only"
    acknowledged = puppet.ask("done")["acknowledged"]

    puppet.ask("release")
    stage.wait_status(puppet.run_dir, lambda s: memory(s)["share"] < 0.5, "memory to be free")
    with still(2.0):  # longer than any level needs to be left
        pass
    assert mode_of(puppet.run_dir) == "read_only"

    guard.kill()
    guard.wait()
    puppet.kill()
    puppet.wait()
    again = stage.puppet("night", memory_limit_bytes=LIMIT)
    again.ask("work")
    stage.guard(puppet.run_dir)
    wait_mode(puppet.run_dir, "read_only")
    status = stage.wait_status(
        puppet.run_dir, lambda s: s["run"]["state"] == "read_only", "the guard to say so"
    )
    assert [(h["op"], h["owner"]) for h in status["holds"]] == [("read_only", "engine")]
    assert again.ask("done")["acknowledged"] == 0, "nothing is written"

    session = viewer(stage, puppet.run_dir, "ann")
    freed = ask(session, "read_write", args={"owner": "engine"})
    assert (freed.state, freed.by) == ("done", "ann")
    wait_mode(puppet.run_dir, "running")
    wait_for(lambda: again.ask("done")["acknowledged"] > 0, "the agent to write again")
    again.ask("rest")
    again.kill()
    again.wait()
    state = nothing_lost(puppet.run_dir)
    assert state.experiments > 0
    assert acknowledged > 0


def test_shadow_touches_nothing_and_cools_down(stage: Stage) -> None:
    puppet = at_work(
        stage,
        "mode: shadow\nlevels: {warn: {cooldown_s: 3}, intervene: {cooldown_s: 4}}",
    )
    before = _control_files(puppet)
    stage.guard(puppet.run_dir)
    press(stage, puppet, 0.8, LIMIT)

    def twice() -> bool:
        return len(plans(stage, puppet.run_dir, "intervene")) >= 2

    wait_for(twice, "what would be done, and again after its cool-down", 30)
    first, second = plans(stage, puppet.run_dir, "intervene")[:2]
    assert first.members["dry"]
    assert second.m_us - first.m_us > 3_900_000, "the records are a little behind their ticks"
    assert _control_files(puppet) == before
    assert guard_records(stage, puppet.run_dir, "intervention") == []
    assert agent_records(puppet.run_dir, "command", "mode") == []
    assert puppet.ask("done")["mode"] == "running"
    status = stage.status(puppet.run_dir)
    assert status["engine"]["will"].startswith("WILL NOT ACT")
    assert status["holds"] == []


def test_a_recovered_agent_knows_all_that_it_was_told_is_kept(stage: Stage) -> None:
    """Through an emergency and a kill: the newest value that was acknowledged is there."""
    puppet = at_work(stage, steps=1_000)
    stage.guard(puppet.run_dir)
    press(stage, puppet, 0.93, LIMIT)
    plan = wait_plan(stage, puppet.run_dir, "emergency", is_over, "what is done in an emergency")
    assert steps_of(plan)["reclaim"] == "done", "which emptied the cache that held it all"
    wait_mode(puppet.run_dir, "running", seconds=30)
    wait_for(lambda: puppet.ask("done")["experiments"] > 1, "the next experiment")
    assert puppet.ask("done")["outcomes"] == ["aborted"]
    puppet.ask("rest")
    acknowledged = puppet.ask("done")["acknowledged"]
    puppet.kill()
    puppet.wait()
    nothing_lost(puppet.run_dir)
    with Run.open(puppet.run_dir, RunOptions(agent="puppet")) as run:
        assert run.tiers["verified"].get("count") == {"number": acknowledged}


def _control_files(puppet: Puppet) -> list[str]:
    """Return what lies in the run directory that an agent does not write by itself."""
    folder = puppet.run_dir / "control"
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    names = sorted(str(path) for path in found if not path.name.startswith("."))
    return [*names, f"epoch {state_of(puppet.run_dir)['epoch']}"]
