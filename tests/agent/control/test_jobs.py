"""The control listener: life of a command, refusals, restarts, deadlines, full disks, forks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agent.control.acting import Agent
from tests.agent.control.sending import a_command, ack_of, publish, state_of
from tests.waiting import until


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.context.log.close()


def test_accepted_by_the_thread_done_at_a_safe_point(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, args={"n": 7}))
    agent.listener.poll()
    assert (state_of(agent.path), agent.marks, agent.listener.waiting) == ("accepted", [], True)
    agent.listener.safe_point()
    ack = ack_of(agent.path)
    assert ack is not None
    assert (ack["state"], ack["seq"], ack["result"]) == ("done", 3, {"count": 1})
    assert (ack["run_id"], ack["pid"]) == ("run-1", os.getpid())
    assert (ack["wall_us"], ack["boot_us"]) == (agent.clock.wall_us(), agent.clock.boot_us())
    assert agent.logged() == [("c1", "accepted"), ("c1", "running"), ("c1", "done")]
    assert not list((agent.path / "control/cur").iterdir())
    assert agent.marks == [{"n": 7}]


def test_an_operation_that_raises_has_failed_with_inert_words(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, args={"fail": True}))
    agent.turn()
    ack = ack_of(agent.path)
    assert ack is not None
    assert (ack["state"], ack["detail"]) == ("failed", "told to \ufffd[31mfail")


def test_the_same_id_is_obeyed_once(agent: Agent) -> None:
    for _ in range(2):
        publish(agent.path, a_command(agent.clock))
        agent.turn()
    first = ack_of(agent.path)
    publish(agent.path, a_command(agent.clock, op="other"))
    agent.turn()
    assert (len(agent.marks), ack_of(agent.path)) == (1, first)
    assert not list((agent.path / "control/new").iterdir())


def test_the_same_id_while_it_waits_changes_nothing(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock))
    agent.listener.poll()
    publish(agent.path, a_command(agent.clock))
    agent.listener.poll()
    agent.listener.safe_point()
    assert (len(agent.marks), state_of(agent.path)) == (1, "done")


def test_priority_decides_the_order(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, "late", args={"n": 2}), priority=3)
    agent.listener.poll()
    publish(agent.path, a_command(agent.clock, "soon", args={"n": 1}), priority=0)
    agent.turn()
    assert [mark["n"] for mark in agent.marks] == [1, 2]


@pytest.mark.parametrize(
    ("change", "state", "detail"),
    [
        ({"run_id": "run-of-yesterday"}, "refused", "wrong_run"),
        ({"op": "shutdown"}, "refused", "unsupported"),
        ({"args": {"m": 1}}, "refused", "unknown arguments: m"),
        ({"ttl_us": -1}, "expired", "time to live"),
    ],
)
def test_what_may_not_run_is_answered(
    agent: Agent, change: dict[str, Any], state: str, detail: str
) -> None:
    publish(agent.path, a_command(agent.clock, **change))
    agent.turn()
    ack = ack_of(agent.path)
    assert ack is not None
    assert ack["state"] == state
    assert detail in ack["detail"]
    assert agent.marks == []
    assert agent.logged() == [("c1", state)]


def test_members_for_experiments_are_ignored(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, x_rule="rss-slope"))
    agent.turn()
    assert state_of(agent.path) == "done"


def test_it_expires_while_it_waits_even_if_the_wall_clock_is_set_back(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, ttl_us=10_000_000))
    agent.listener.poll()
    agent.clock.step_wall_s(-3600)
    agent.clock.advance_s(11)
    agent.listener.safe_point()
    assert (state_of(agent.path), agent.marks) == ("expired", [])


def test_a_deadline_that_passes_while_it_runs_is_final(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, deadline_us=5_000_000))

    def take_long() -> None:
        agent.clock.advance_s(6)
        agent.listener.poll()

    agent.inside = take_long
    agent.turn()
    ack = ack_of(agent.path)
    assert ack is not None
    assert ack["state"] == "failed"
    assert "effect is unknown" in ack["detail"]
    assert agent.logged()[-1] == ("c1", "failed")


def test_a_long_run_says_so_again(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock))
    seen: list[int] = []

    def take_long() -> None:
        agent.clock.advance_s(6)
        agent.listener.poll()
        seen.append((ack_of(agent.path) or {})["seq"])

    agent.inside = take_long
    agent.turn()
    assert seen == [3]
    assert (ack_of(agent.path) or {})["seq"] == 4


def test_an_answer_that_a_full_disk_refuses_comes_later(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock))
    agent.listener.poll()
    agent.files.fail_all("write")
    agent.listener.safe_point()
    assert (state_of(agent.path), len(agent.marks)) == ("accepted", 1)
    agent.files.heal()
    agent.listener.poll()
    assert state_of(agent.path) == "done"


@pytest.mark.parametrize(
    ("op", "state", "expected", "marks"),
    [
        ("mark", "accepted", "done", 1),
        ("once", "accepted", "done", 1),
        ("mark", "running", "done", 1),
        ("once", "running", "failed", 0),
        ("mark", "done", "done", 0),
    ],
)
def test_a_restart_finds_what_was_claimed(
    tmp_path: Path, op: str, state: str, expected: str, marks: int
) -> None:
    first = Agent(tmp_path)
    publish(tmp_path, a_command(first.clock, op=op))
    first.listener.poll()
    ack = {**(ack_of(tmp_path) or {}), "state": state}
    (tmp_path / "control/ack/c1.json").write_text(json.dumps(ack))
    first.context.log.close()
    second = Agent(tmp_path, first.clock)
    second.listener.start()
    second.listener.safe_point()
    second.listener.stop()
    assert (state_of(tmp_path), len(second.marks)) == (expected, marks)
    assert not list((tmp_path / "control/cur").iterdir())
    second.context.log.close()


def test_the_thread_takes_it_by_itself(agent: Agent) -> None:
    agent.listener.start()
    publish(agent.path, a_command(agent.clock))
    until(lambda: agent.mode.attention and agent.listener.waiting)
    agent.listener.safe_point()
    assert state_of(agent.path) == "done"
    agent.listener.stop()
    assert len(agent.marks) == 1


def test_old_answers_are_swept(agent: Agent) -> None:
    for age_s, name in ((8 * 86_400, "old"), (0, "new")):
        path = agent.path / f"control/ack/{name}.json"
        path.write_text("{}")
        then = agent.clock.wall_us() / 1e6 - age_s
        os.utime(path, (then, then))
    agent.listener.start()
    until(lambda: not (agent.path / "control/ack/old.json").exists())
    agent.listener.stop()
    assert (agent.path / "control/ack/new.json").exists()


def test_a_forked_child_obeys_nothing(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock))
    agent.listener.poll()
    pid = os.fork()
    if pid == 0:
        agent.listener.safe_point()
        os._exit(len(agent.marks))
    assert os.waitpid(pid, 0)[1] == 0
    assert state_of(agent.path) == "accepted"
    agent.listener.safe_point()
    assert state_of(agent.path) == "done"
