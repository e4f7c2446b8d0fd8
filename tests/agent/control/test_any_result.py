"""Whatever an operation of the agent's own returns or raises, it is answered, and the next runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.control.jobs import MOST_WAITING
from memwatch.agent.control.listener import ControlListener
from memwatch.agent.control.operation import Later, Operation
from tests.agent.control.acting import Agent
from tests.agent.control.sending import a_command, ack_of, publish, state_of, told
from tests.agent.reading import context_at
from tests.waiting import until


def unready() -> bool:
    raise KeyError("limits")


class Listening:
    """A listener with operations of its own."""

    def __init__(self, path: Path, **operations: Operation) -> None:
        self.path, self.context = path, context_at(path)
        good = Operation(run=lambda _: {"fine": True})
        self.listener = ControlListener(self.context, {**operations, "good": good})

    def do(self, op: str) -> dict[str, Any]:
        """Ask for an operation, come to a safe point, and return the answer."""
        publish(self.path, a_command(self.context.clock, f"c-{op}", op=op))
        self.listener.poll()
        self.listener.safe_point()
        ack = ack_of(self.path, f"c-{op}")
        assert ack is not None
        return ack


@pytest.fixture
def listen(tmp_path: Path) -> Iterator[Callable[..., Listening]]:
    made: list[Listening] = []

    def make(**operations: Operation) -> Listening:
        made.append(Listening(tmp_path, **operations))
        return made[-1]

    yield make
    for each in made:
        each.context.log.close()


Listen = Callable[..., Listening]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"n": object()}, "unsupported"),
        ({"n": "half \ud800"}, "surrogates"),
        ({"n": "x" * 100_000}, "bytes are over"),
        ({"n": "x" * 20_000_000}, "bytes are over"),
        ([1], "returned list"),
        ("done", "returned str"),
    ],
    ids=["object", "surrogate", "long", "longer than a line", "list", "text"],
)
def test_a_result_that_cannot_be_told_is_left_out(listen: Listen, result: Any, told: str) -> None:
    agent = listen(odd=Operation(run=lambda _: result))
    ack = agent.do("odd")
    assert ack["state"] == "done"
    assert told in ack["result"]["left_out"]
    assert agent.do("good")["result"] == {"fine": True}


def test_progress_and_an_end_that_cannot_be_told_keep_nobody_waiting(listen: Listen) -> None:
    later = Later()
    agent = listen(slow=Operation(run=lambda _: later))
    assert agent.do("slow")["state"] == "running"
    later.progress = {"at": object()}
    agent.listener.poll()
    busy = told(agent.path).busy
    assert busy is not None
    assert "left_out" in busy.progress
    later.done({"at": object()})
    assert state_of(agent.path, "c-slow") == "done"
    assert agent.do("good")["state"] == "done"


def test_an_operation_that_cannot_say_whether_it_is_ready_has_failed(listen: Listen) -> None:
    agent = listen(odd=Operation(run=lambda _: {}, ready=unready))
    ack = agent.do("odd")
    assert (ack["state"], "limits" in ack["detail"]) == ("failed", True)
    assert agent.do("good")["state"] == "done"


def test_an_interrupt_while_the_answer_is_written_leaves_the_agent_listening(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = agent.files.replace

    def interrupted(path: Path, data: bytes, *, mode: int = 0o644) -> None:
        if b'"done"' in data:
            monkeypatch.setattr(agent.files, "replace", write)
            raise KeyboardInterrupt
        write(path, data, mode=mode)

    monkeypatch.setattr(agent.files, "replace", interrupted)
    publish(agent.path, a_command(agent.clock, "c1"))
    agent.listener.poll()
    with pytest.raises(KeyboardInterrupt):
        agent.listener.safe_point()
    publish(agent.path, a_command(agent.clock, "c2"))
    agent.turn()
    assert (state_of(agent.path, "c1"), state_of(agent.path, "c2")) == ("done", "done")
    assert len(agent.marks) == 2


def test_a_flood_is_refused_beyond_what_a_safe_point_can_do(agent: Agent) -> None:
    for number in range(MOST_WAITING + 20):
        publish(agent.path, a_command(agent.clock, f"c{number:03}"))
    agent.listener.poll()
    publish(agent.path, a_command(agent.clock, "now", op="once"), priority=0)

    def all_taken() -> bool:
        agent.listener.poll()
        return not list((agent.path / "control/new").iterdir())

    until(all_taken)
    agent.listener.safe_point()
    assert len(agent.marks) == MOST_WAITING
    assert state_of(agent.path, "now") == "done"
    refused = ack_of(agent.path, f"c{MOST_WAITING + 10:03}") or {}
    assert (refused["state"], "send it again" in refused["detail"]) == ("refused", True)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.context.log.close()
