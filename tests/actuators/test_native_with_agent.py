"""The actuator and a real agent in one process: what is asked is what the agent then does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memwatch.actuators.actuator import Answer
from memwatch.actuators.native import NativeActuator
from memwatch.agent import Run, RunOptions
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import FINAL_STATES, Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.manifest import parse_run
from tests.waiting import until, wait_for

OPTIONS = RunOptions(agent="tester", sample_s=3600.0)
CLOCK = SystemClock()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "run", OPTIONS) as opened:
        yield opened


@pytest.fixture
def actuator(run: Run) -> NativeActuator:
    return actuator_of(run)


def actuator_of(run: Run) -> NativeActuator:
    ops = parse_run((run.path / "run.json").read_bytes()).ops
    return NativeActuator(run.path, run.id, ops, CLOCK)


def ask(actuator: NativeActuator, op: str, command_id: str, **members: Any) -> None:
    actuator.begin(Command(op=op, id=command_id, **members), CLOCK.wall_us())


def ask_as_engine(actuator: NativeActuator, op: str, command_id: str, **members: Any) -> None:
    ask(actuator, op, command_id, origin="engine", **members)


def ended(actuator: NativeActuator, command_id: str) -> Answer:
    def look() -> Answer | None:
        answer = actuator.answer(command_id)
        return answer if answer and answer.state in FINAL_STATES else None

    return wait_for(look, f"the end of {command_id}")


def mode(run: Run) -> str:
    return run.mode


@contextmanager
def working(run: Run) -> Iterator[None]:
    """Come by at safe points in a thread, as an agent between its experiments does."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.01):
            run.safe_point()

    thread = threading.Thread(target=work, name="agent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(20)


def test_it_offers_what_the_agent_takes_and_says_what_it_lacks(actuator: NativeActuator) -> None:
    offers = actuator.offers()
    assert all(not offers[op].why_not for op in ("checkpoint", "purge", "pause", "read_write"))
    assert offers["compact"].why_not == "this agent has no compact"
    assert offers["purge"].dry_runs
    assert not offers["reclaim"].dry_runs


def test_jobs_are_done_at_a_safe_point_and_answered(run: Run, actuator: NativeActuator) -> None:
    run.tiers["workspace"].put("a", "x" * 1000)
    ask(actuator, "checkpoint", "c1", args={"kind": "full"})
    until(lambda: actuator.answer("c1"))
    answer = actuator.answer("c1")
    assert answer is not None
    assert answer.state == "accepted", "nobody came by yet"
    with working(run):
        done = ended(actuator, "c1")
    assert (done.state, done.result["kind"]) == ("done", "full")


def test_a_dry_run_is_told_by_the_agent_and_changes_nothing(
    run: Run, actuator: NativeActuator
) -> None:
    run.tiers["workspace"].put("a", "x" * 1000)
    before = run.tiers.totals()
    with working(run):
        ask(actuator, "purge", "c1", args={"tier": "workspace"}, dry_run=True)
        assert ended(actuator, "c1").state == "done"
    assert run.tiers.totals() == before


def test_a_pause_is_done_when_the_agent_says_so_and_drains(
    run: Run, actuator: NativeActuator
) -> None:
    with run.experiment("one"):
        ask(actuator, "pause", "p1", by="tui", why="lunch")
        assert ended(actuator, "p1").result == {"drained": False}
        assert run.mode == "draining"
    until(lambda: run.mode == "paused")
    (hold,) = actuator.holds()
    assert (hold.op, hold.owner, hold.reason) == ("pause", "tui", "lunch")
    assert hold.effective
    assert hold.ends_us is None, "a person's pause is kept until it is released"
    ask(actuator, "resume", "r1", by="tui")
    assert ended(actuator, "r1").detail == "released"
    assert (run.mode, actuator.holds()) == ("running", ())


def test_one_who_resumes_does_not_undo_the_pause_of_another(
    run: Run, actuator: NativeActuator
) -> None:
    ask(actuator, "pause", "p1", by="alice")
    ask(actuator, "pause", "p2", by="bob")
    ended(actuator, "p1")
    ended(actuator, "p2")
    with pytest.raises(MemwatchError, match="held by alice, bob, not by carol"):
        ask(actuator, "resume", "r0", by="carol")
    ask(actuator, "resume", "r1", by="alice")
    assert ended(actuator, "r1").detail == "released; still held: pause by bob"
    assert run.mode == "paused"
    ask(actuator, "resume", "r2", args={"holds": ["p2"]}, by="carol")
    ended(actuator, "r2")
    assert mode(run) == "running"


def test_all_holds_of_a_kind_are_released_and_no_other(run: Run, actuator: NativeActuator) -> None:
    ask(actuator, "pause", "p1", by="alice")
    ask_as_engine(actuator, "pause", "p2")
    ask(actuator, "read_only", "o1", by="bob")
    for name in ("p1", "p2", "o1"):
        ended(actuator, name)
    ask(actuator, "resume", "r1", args={"all": True}, by="carol")
    assert ended(actuator, "r1").result == {"mode": "read_only"}
    assert [hold.id for hold in actuator.holds()] == ["o1"]
    ask(actuator, "read_write", "r2", args={"owner": "bob"})
    ended(actuator, "r2")
    assert mode(run) == "running"


def test_a_pause_of_a_guard_that_died_ends_with_its_lease(
    run: Run, actuator: NativeActuator
) -> None:
    actuator.claim_epoch()
    actuator.engine_lease_us = 300_000
    ask_as_engine(actuator, "pause", "p1")
    ended(actuator, "p1")
    until(lambda: run.mode == "running")


def test_a_pause_outlives_its_lease_while_the_guard_lives(
    run: Run, actuator: NativeActuator
) -> None:
    actuator.claim_epoch()
    actuator.engine_lease_us = 400_000
    ask_as_engine(actuator, "pause", "p1")
    ended(actuator, "p1")
    end_us = CLOCK.boot_us() + 1_200_000
    while CLOCK.boot_us() < end_us:
        assert actuator.keep(CLOCK.boot_us()) == ()
        assert run.mode == "paused"
        threading.Event().wait(0.02)
    actuator.renew_engine_while(lambda: False)
    until(lambda: actuator.keep(CLOCK.boot_us()) or mode(run) == "running")
    assert mode(run) == "running", "an engine that may not act any more holds nothing"


def test_the_next_guard_keeps_what_the_one_before_held(run: Run, actuator: NativeActuator) -> None:
    first = actuator.claim_epoch(known=6)
    ask_as_engine(actuator, "pause", "p1")
    ended(actuator, "p1")
    after = actuator_of(run)
    assert after.claim_epoch(known=first) == first + 1
    assert after.keep(CLOCK.boot_us()) == ()
    ask_as_engine(after, "checkpoint", "c1")
    with working(run):
        assert ended(after, "c1").state == "done"
    assert run.mode == "paused"
    assert after.answer("p1") == Answer(
        state="done", detail="no new experiment begins", result={"drained": True}
    ), "also to what the guard before asked"
    ask_as_engine(after, "resume", "r1")
    assert ended(after, "r1").state == "done"
    assert mode(run) == "running"


def test_a_guard_that_was_replaced_is_not_obeyed_and_learns_it(
    run: Run, actuator: NativeActuator
) -> None:
    actuator.claim_epoch()
    successor = actuator_of(run)
    successor.claim_epoch(known=actuator.epoch)
    ask_as_engine(successor, "pause", "p1")
    ended(successor, "p1")
    ask_as_engine(actuator, "purge", "c1")
    assert "stale" in ended(actuator, "c1").detail
    (told,) = actuator.keep(CLOCK.boot_us())
    assert "another guard" in told
    assert actuator.keep(CLOCK.boot_us()) == (), "told once"
    ask(actuator, "checkpoint", "c2")
    with working(run):
        assert ended(actuator, "c2").state == "done", "a person needs no epoch"


def test_a_hold_that_the_agent_refuses_is_told_and_not_tried_for_ever(
    run: Run, actuator: NativeActuator
) -> None:
    successor = actuator_of(run)
    actuator.claim_epoch()
    successor.claim_epoch(known=actuator.epoch)
    ask_as_engine(successor, "checkpoint", "c1")
    until(lambda: successor.answer("c1"))
    ask_as_engine(actuator, "pause", "p1")
    assert ended(actuator, "p1").state == "refused"
    told = [one for one in actuator.keep(CLOCK.boot_us()) if "refused" in one]
    assert len(told) == 1
    assert "stale" in told[0]
    assert actuator.keep(CLOCK.boot_us()) == ()
    assert actuator.holds() == ()
    assert run.mode == "running"


def test_a_hold_that_the_agents_shell_deleted_is_put_back_and_told(
    run: Run, actuator: NativeActuator
) -> None:
    ask(actuator, "read_only", "o1", by="tui")
    ended(actuator, "o1")
    (run.path / "control" / "hold" / "tui-read_only.json").unlink()
    until(lambda: run.mode == "running")
    (told,) = actuator.keep(CLOCK.boot_us())
    assert told == "the read-only by tui was deleted by somebody; it was put back"
    until(lambda: run.mode == "read_only")


def test_an_order_for_the_start_before_is_refused_by_the_next(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", OPTIONS) as run:
        actuator = actuator_of(run)
        until(actuator.state)
    ask_as_engine(actuator, "purge", "c1")
    with Run.open(tmp_path / "run", OPTIONS):
        answer = ended(actuator, "c1")
    assert answer.state == "refused"
    assert "start_id" in answer.detail


def test_a_paused_agent_that_begins_again_begins_paused(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", OPTIONS) as run:
        actuator = actuator_of(run)
        ask(actuator, "pause", "p1", by="tui")
        ended(actuator, "p1")
    with Run.open(tmp_path / "run", OPTIONS) as again:
        assert again.mode == "paused"
        until(lambda: (state := actuator.state()) and state.mode == "paused")
        ask(actuator, "resume", "r1", by="tui")
        assert ended(actuator, "r1").state == "done"


def test_an_unwanted_pause_that_the_agent_never_saw_is_gone(tmp_path: Path) -> None:
    with Run.open(tmp_path / "run", OPTIONS) as run:
        actuator = actuator_of(run)
    ask(actuator, "pause", "p1")
    assert actuator.withdraw("p1")
    with Run.open(tmp_path / "run", OPTIONS) as again:
        assert again.mode == "running"


def test_a_job_that_begins_can_not_be_taken_back(run: Run, actuator: NativeActuator) -> None:
    ask(actuator, "checkpoint", "c1")
    until(lambda: actuator.answer("c1"))
    assert not actuator.withdraw("c1")
    with working(run):
        assert ended(actuator, "c1").state == "done"


def test_an_id_means_one_request_however_often_it_is_handed_over(
    run: Run, actuator: NativeActuator
) -> None:
    with working(run):
        ask(actuator, "checkpoint", "c1", args={"kind": "full"})
        first = ended(actuator, "c1")
        ask(actuator, "checkpoint", "c1", args={"kind": "full"})
        assert ended(actuator, "c1") == first
    assert run.mode == "running"
    ask(actuator, "pause", "p1", by="tui")
    ended(actuator, "p1")
    hold = run.path / "control" / "hold" / "tui-pause.json"
    before = hold.read_bytes()
    ask(actuator, "pause", "p1", by="tui")
    assert hold.read_bytes() == before
    assert msgspec.json.decode(before)["on_lease_end"] == "keep"
