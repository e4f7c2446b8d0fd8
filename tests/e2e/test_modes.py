"""What holds an agent shows from outside: in the status, in the events, and in what it answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agent.control.sending import a_hold, put_hold, told
from tests.e2e.stage import Stage
from tests.waiting import until

pytestmark = pytest.mark.e2e


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as one:
        yield one


@pytest.mark.parametrize(("op", "state"), [("pause", "paused"), ("read_only", "read_only")])
def test_the_status_says_what_the_agent_says(stage: Stage, op: str, state: str) -> None:
    puppet = stage.puppet()
    stage.guard(puppet.run_dir)
    hold = put_hold(puppet.run_dir, a_hold(op=op, run_id=puppet.run_id, reason="at night"))
    stage.wait_status(puppet.run_dir, lambda s: s["run"]["state"] == state, state)
    stage.wait_status(
        puppet.run_dir,
        lambda s: any("at night" in event["text"] for event in s["events"]),
        "the log to say why",
    )
    assert told(puppet.run_dir).mode == state
    hold.unlink()
    stage.wait_status(puppet.run_dir, lambda s: s["run"]["state"] == "running", "running")


def test_an_agent_that_was_killed_while_paused_starts_paused(stage: Stage) -> None:
    puppet = stage.puppet()
    put_hold(puppet.run_dir, a_hold(run_id="any"))
    until(lambda: told(puppet.run_dir).mode == "paused")
    gen = told(puppet.run_dir).gen
    puppet.kill()
    puppet.wait()
    again = stage.puppet()
    assert told(again.run_dir).mode == "paused"
    assert told(again.run_dir).gen > gen
