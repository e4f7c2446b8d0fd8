"""Requests of people and guards meet agents that are busy, deaf, gone, or somebody else's."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command
from memwatch.runtime.runs.attach import Attachment
from tests.agent.control.sending import a_command, a_hold, ack_of, publish, put_hold
from tests.e2e.night import (
    ask,
    guard_records,
    mode_of,
    run_id_of,
    short_policy,
    state_of,
    viewer,
    wait_mode,
)
from tests.e2e.stage import Puppet, Stage, still
from tests.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def guarded(stage: Stage, name: str, *, works: bool = True) -> Puppet:
    puppet = stage.puppet(name)
    if works:
        puppet.ask("work")
    short_policy(stage, puppet.run_dir, "mode: observe")
    stage.guard(puppet.run_dir)
    return puppet


def holders(stage: Stage, puppet: Puppet) -> list[str]:
    return sorted(hold["owner"] for hold in stage.status(puppet.run_dir)["holds"])


def test_two_dashboards_and_what_each_of_them_holds(stage: Stage) -> None:
    puppet = guarded(stage, "two")
    ann, ben = (viewer(stage, puppet.run_dir, name) for name in ("ann", "ben"))
    assert ask(ann, "pause").state == "done"
    wait_mode(puppet.run_dir, "paused")

    by_accident = ask(ben, "resume")
    assert by_accident.state == "failed"
    assert "ann" in by_accident.detail, "it says whose the hold is"
    assert (mode_of(puppet.run_dir), holders(stage, puppet)) == ("paused", ["ann"])

    assert ask(ben, "pause").state == "done"
    wait_for(lambda: holders(stage, puppet) == ["ann", "ben"], "both holds")
    assert ask(ben, "resume").state == "done"
    assert (mode_of(puppet.run_dir), holders(stage, puppet)) == ("paused", ["ann"])
    ben.close()
    assert holders(stage, puppet) == ["ann"], "who leaves lets nothing go"

    assert ask(ann, "resume").state == "done"
    wait_mode(puppet.run_dir, "running")

    assert ask(ann, "pause").state == "done"
    eve = viewer(stage, puppet.run_dir, "eve")
    named = ask(eve, "resume", args={"owner": "ann"})
    assert (named.state, named.by) == ("done", "eve"), "on purpose it works"
    wait_mode(puppet.run_dir, "running")


def test_what_an_earlier_guard_asks_for_is_refused(stage: Stage) -> None:
    puppet = guarded(stage, "epochs")
    session = viewer(stage, puppet.run_dir, "ann")
    before = stage.status(puppet.run_dir)["engine"]["epoch"]
    session.submit(Command(op="guard.stop"))
    wait_for(lambda: Attachment(puppet.run_dir).guard_pid is None, "the guard to end")
    stage.guard(puppet.run_dir)
    epoch = stage.status(puppet.run_dir)["engine"]["epoch"]
    assert epoch > before >= 1

    engine = {"uid": os.getuid(), "origin": "engine"}
    late = a_command(
        SystemClock(), "late", op="purge", run_id=puppet.run_id, by=engine, epoch=epoch - 1
    )
    new = a_command(SystemClock(), "new", op="checkpoint", run_id=puppet.run_id, epoch=epoch)
    publish(puppet.run_dir, new)
    wait_for(lambda: state_of(puppet.run_dir)["epoch"] == epoch, "the agent to know the new one")
    publish(puppet.run_dir, late)
    ack = wait_for(lambda: ack_of(puppet.run_dir, "late"), "an answer")
    assert ack["state"] == "refused"
    assert "stale" in ack["detail"]
    hold = a_hold("h1", run_id="any", by=engine, epoch=epoch - 1)
    put_hold(puppet.run_dir, hold, owner="engine")
    wait_for(lambda: ack_of(puppet.run_dir, "h1"), "an answer to the hold")
    assert mode_of(puppet.run_dir) == "running"


def test_an_agent_that_is_busy_is_busy_and_not_gone(stage: Stage) -> None:
    """Stopped whole, as by code that holds the interpreter's lock: not even its listener runs."""
    puppet = guarded(stage, "busy")
    session = viewer(stage, puppet.run_dir, "ann")
    os.kill(puppet.pid, signal.SIGSTOP)
    command_id = session.submit(Command(op="checkpoint"))
    with still(5.0):
        pass
    assert session.command(command_id).state == "asked", "asked is not done, nor lost"
    status = stage.status(puppet.run_dir)
    assert status["run"]["state"] not in ("killed", "crashed")
    os.kill(puppet.pid, signal.SIGCONT)
    wait_for(lambda: session.command(command_id).state == "done", "the answer after all")


def test_an_agent_that_never_comes_by_lets_a_request_expire(stage: Stage) -> None:
    puppet = guarded(stage, "deaf", works=False)
    session = viewer(stage, puppet.run_dir, "ann")
    told = ask(session, "checkpoint", ttl_us=3_000_000)
    assert told.state == "expired"
    assert told.detail
    puppet.ask("safe_point")
    assert puppet.ask("checkpoint", "full")["committed"], "by itself it still can"
    events = stage.wait_status(
        puppet.run_dir,
        lambda s: any("checkpoint" in e["text"] and "expired" in e["text"] for e in s["events"]),
        "it to be said",
    )
    assert events


def test_an_agent_that_is_stopped_for_good_lets_a_request_expire(stage: Stage) -> None:
    puppet = guarded(stage, "stopped")
    session = viewer(stage, puppet.run_dir, "ann")
    os.kill(puppet.pid, signal.SIGSTOP)
    told = ask(session, "abort_experiment", ttl_us=2_000_000, confirm=puppet.run_id)
    assert told.state == "expired"
    os.kill(puppet.pid, signal.SIGCONT)
    before = puppet.ask("done")["experiments"]
    wait_for(lambda: puppet.ask("done")["experiments"] > before + 1, "the agent to go on")
    assert "aborted" not in puppet.ask("done")["outcomes"], "too late is not at all"


def test_a_restarted_agent_does_not_obey_what_its_former_start_was_told(stage: Stage) -> None:
    puppet = guarded(stage, "again", works=False)
    session = viewer(stage, puppet.run_dir, "ann")
    command_id = session.submit(Command(op="purge", args={"how": "reclaim"}))
    wait_for(lambda: session.command(command_id).state == "accepted", "it to be accepted")
    puppet.kill()
    puppet.wait()
    again = stage.puppet("again")
    again.ask("fill", "verified", 3, 20_000)
    for _ in range(3):
        again.ask("safe_point")
    told = wait_for(
        lambda: info if (info := session.command(command_id)).state != "accepted" else None,
        "an end of the old request",
    )
    assert told.state in ("refused", "failed", "unknown", "expired")
    ack = ack_of(puppet.run_dir, command_id)
    assert ack is None or ack["state"] == "refused"
    again.ask("work")
    done = ask(session, "purge", args={"how": "reclaim", "tier": "workspace"})
    assert done.state == "done", "a new one it does obey"


def test_a_request_of_another_run_and_an_old_one_are_refused(stage: Stage) -> None:
    puppet = guarded(stage, "old")
    other = a_command(SystemClock(), "other", op="abort_experiment", run_id="another-1")
    publish(puppet.run_dir, other)
    old = a_command(
        SystemClock(),
        "old",
        op="abort_experiment",
        run_id=run_id_of(puppet.run_dir),
        issued_us=SystemClock().wall_us() - 3_600_000_000,
    )
    publish(puppet.run_dir, old)
    wait_for(lambda: _both_answered(puppet), "both answers")
    states = [(ack_of(puppet.run_dir, name) or {})["state"] for name in ("other", "old")]
    assert states == ["refused", "expired"]
    assert "aborted" not in puppet.ask("done")["outcomes"]


def test_what_was_asked_is_written_down_before_it_is_sent(stage: Stage) -> None:
    puppet = guarded(stage, "written")
    session = viewer(stage, puppet.run_dir, "ann")
    done = ask(session, "purge", args={"how": "expired"}, why="by hand")
    records = [
        r for r in guard_records(stage, puppet.run_dir, "intervention") if r.text("id") == done.id
    ]
    assert [records[0].text("state"), records[-1].text("state")] == ["asked", "done"]
    assert (records[0].text("by"), records[0].text("why")) == ("ann", "by hand")


def _both_answered(puppet: Puppet) -> bool:
    return all(ack_of(puppet.run_dir, name) for name in ("other", "old"))
