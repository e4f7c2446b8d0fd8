"""Jobs that end later, conditions that must hold, and what is given up by the thread alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.control.operation import Later, Operation, describe
from tests.agent.control.acting import Agent
from tests.agent.control.sending import a_command, ack_of, publish, state_of, told


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.context.log.close()


def detail_of(agent: Agent, command_id: str = "c1") -> str:
    return str((ack_of(agent.path, command_id) or {})["detail"])


def test_it_runs_on_behind_the_agent_and_ends_from_another_thread(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, op="slow"))
    agent.turn()
    assert state_of(agent.path) == "running"
    agent.listener.poll()
    busy = told(agent.path).busy
    assert busy is not None
    assert (busy.op, busy.id, busy.since_us) == ("slow", "c1", agent.clock.boot_us())
    thread = threading.Thread(target=agent.later.done, args=({"bytes": 7},))
    thread.start()
    thread.join()
    ack = ack_of(agent.path)
    assert ack is not None
    assert (ack["state"], ack["result"]) == ("done", {"bytes": 7})
    agent.listener.poll()
    assert told(agent.path).busy is None
    assert not list((agent.path / "control/cur").iterdir())


def test_others_run_meanwhile_but_not_one_of_its_kind(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, "first", op="slow"))
    agent.turn()
    publish(agent.path, a_command(agent.clock, "second", op="slow"))
    publish(agent.path, a_command(agent.clock, "other"))
    agent.turn()
    states = [state_of(agent.path, name) for name in ("first", "second", "other")]
    assert states == ["running", "accepted", "done"]
    agent.later.failed("disk full")
    agent.listener.safe_point()
    states = [state_of(agent.path, name) for name in ("first", "second")]
    assert states == ["failed", "failed"], "the second finds the same end"


def test_progress_is_told_while_it_runs(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, op="slow"))
    agent.turn()
    agent.later.progress = {"entries": 12}
    agent.clock.advance_s(6)
    agent.listener.poll()
    assert (ack_of(agent.path) or {})["result"] == {"entries": 12}
    busy = told(agent.path).busy
    assert busy is not None
    assert busy.progress == {"entries": 12}
    assert agent.logged() == [("c1", "accepted"), ("c1", "running")]


def test_a_deadline_that_passes_cancels_it_and_stays_the_answer(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, op="slow", deadline_us=5_000_000))
    agent.turn()
    agent.clock.advance_s(6)
    agent.listener.poll()
    assert agent.later.cancelled
    assert detail_of(agent).startswith("deadline")
    agent.later.done({})
    assert state_of(agent.path) == "failed"


def test_only_the_first_end_counts() -> None:
    ends: list[str] = []
    later = Later()
    later.done({})
    later.failed("too late")
    later.when_ended(lambda state, *_: ends.append(state))
    assert ends == ["done"]


@pytest.mark.parametrize("limit", ["ttl_us", "deadline_us"])
def test_what_waits_too_long_is_given_up_without_a_safe_point(agent: Agent, limit: str) -> None:
    members: dict[str, Any] = {limit: 5_000_000}
    publish(agent.path, a_command(agent.clock, **members))
    agent.listener.poll()
    agent.clock.advance_s(6)
    agent.listener.poll()
    assert (state_of(agent.path), agent.listener.waiting) == ("expired", False)
    agent.listener.safe_point()
    assert agent.marks == []


def test_a_command_written_long_ago_by_a_clock_ahead_of_ours_is_late(agent: Agent) -> None:
    command = a_command(agent.clock)
    publish(agent.path, command)
    agent.clock.advance_s(61)
    ahead = {**command, "id": "c2", "issued_us": command["issued_us"] + 3_600_000_000}
    publish(agent.path, ahead, written_us=command["issued_us"])
    agent.turn()
    assert [state_of(agent.path, name) for name in ("c1", "c2")] == ["expired", "expired"]


def test_a_time_to_live_longer_than_answers_are_kept_is_refused(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, ttl_us=8 * 86_400_000_000))
    agent.turn()
    assert (state_of(agent.path), agent.marks) == ("refused", [])


@pytest.mark.parametrize(
    ("expect", "state"),
    [
        ({"gen": 0}, "done"),
        ({"gen": 1}, "refused"),
        ({"mode": "running", "experiment": None}, "done"),
        ({"experiment": 4}, "refused"),
        ({"start_id": "another"}, "refused"),
    ],
)
def test_what_is_expected_must_be_so(agent: Agent, expect: dict[str, Any], state: str) -> None:
    publish(agent.path, a_command(agent.clock, expect=expect))
    agent.turn()
    assert state_of(agent.path) == state


def test_what_is_expected_must_still_be_so_when_it_runs(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, expect={"experiment": None}))
    agent.listener.poll()
    agent.begin_experiment(4)
    agent.listener.safe_point()
    assert (state_of(agent.path), agent.marks) == ("refused", [])
    assert "precondition: experiment is 4, not None" in detail_of(agent)


def test_it_means_the_experiment_in_which_it_was_accepted(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, "early", op="stop_it"))
    agent.turn()
    assert detail_of(agent, "early") == "no experiment is in progress"
    agent.begin_experiment(4)
    publish(agent.path, a_command(agent.clock, "right", op="stop_it"))
    publish(agent.path, a_command(agent.clock, "other"))
    agent.listener.poll()
    agent.listener.interruption_point()
    assert (state_of(agent.path, "right"), state_of(agent.path, "other")) == ("done", "accepted")
    publish(agent.path, a_command(agent.clock, "late", op="stop_it"))
    agent.listener.poll()
    agent.end_experiment()
    agent.begin_experiment(5)
    agent.listener.safe_point()
    assert detail_of(agent, "late") == "experiment 4, which it meant, has ended"


def test_a_dry_run_tells_and_does_nothing(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, dry_run=True))
    agent.turn()
    ack = ack_of(agent.path)
    assert ack is not None
    assert (ack["state"], ack["result"], agent.marks) == ("done", {"would": "mark"}, [])


def test_what_may_not_be_done_twice_waits_for_a_disk_that_takes_its_answer(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, "once", op="once"))
    publish(agent.path, a_command(agent.clock, "mark"))
    agent.listener.poll()
    agent.files.fail_all("write")
    agent.listener.safe_point()
    assert len(agent.marks) == 1, "only what may simply be run again"
    agent.files.heal()
    agent.clock.advance_s(1)
    agent.turn()
    assert (len(agent.marks), state_of(agent.path, "once")) == (2, "done")


def test_a_last_answer_that_comes_late_ends_the_claim(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock))
    agent.listener.poll()
    agent.files.fail_all("write")
    agent.listener.safe_point()
    assert list((agent.path / "control/cur").iterdir())
    agent.files.heal()
    agent.listener.poll()
    assert not list((agent.path / "control/cur").iterdir())


def test_an_operation_that_is_interrupted_says_so_and_blocks_nothing(agent: Agent) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    agent.inside = interrupt
    publish(agent.path, a_command(agent.clock))
    with pytest.raises(KeyboardInterrupt):
        agent.turn()
    assert "interrupted by KeyboardInterrupt" in detail_of(agent)
    agent.inside = lambda: None
    publish(agent.path, a_command(agent.clock, "c2"))
    agent.turn()
    assert state_of(agent.path, "c2") == "done"


def test_a_safe_point_inside_an_operation_runs_nothing_else(agent: Agent) -> None:
    agent.inside = agent.listener.safe_point
    for name in ("c1", "c2"):
        publish(agent.path, a_command(agent.clock, name, args={"n": int(name[1])}))
    agent.turn()
    assert [mark["n"] for mark in agent.marks] == [1, 2]


def test_run_json_tells_what_people_need() -> None:
    told = describe({"purge": Operation(run=lambda _: {}, destructive=True, max_s=60.0)})
    assert told["purge"]["destructive"] is True
    assert set(told["purge"]) == {"about", "args", "idempotent", "destructive", "dry_run", "max_s"}
