"""The thread that writes: the agent waits for the capture only, one at a time, none in a child."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from memwatch.agent.checkpoints.checkpointer import Outcome
from tests.agent.checkpoints.bench import Bench
from tests.waiting import until


class Gate:
    """Holds up every rename until it is opened."""

    def __init__(self, bench: Bench) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        rename: Callable[..., None] = os.replace

        def slow(*args: Path) -> None:
            self.reached.set()
            assert self.open.wait(20)
            rename(*args)

        bench.files.rename = slow  # type: ignore[assignment]  # a call as any other


def test_the_agent_goes_on_while_it_is_written(bench: Bench) -> None:
    bench.tiers["recent"].put("a", 1)
    gate, told = Gate(bench), list[Outcome]()
    assert bench.checkpoints.take("full", wait=False, tell=told.append) is None
    assert gate.reached.wait(20)
    bench.tiers["recent"].put("a", 2)
    bench.tiers["recent"].put("b", 1)
    assert bench.checkpoints.busy
    assert bench.checkpoints.due() is None
    other = bench.checkpoints.take("full", wait=False)
    assert other is not None
    assert other.reason == "another one is in progress"
    gate.open.set()
    until(lambda: told)
    assert told[0].committed
    assert told[0].id == "full-00000000000000000001", "what came later is not in it"
    assert bench.checkpoints.take("incremental").committed
    assert bench.check().deltas


def test_who_waits_comes_after_the_one_in_progress(bench: Bench) -> None:
    gate, told = Gate(bench), list[Outcome]()
    bench.checkpoints.take("full", wait=False, tell=told.append)
    threading.Timer(0.05, gate.open.set).start()
    assert bench.checkpoints.take("incremental").kind == "incremental"
    assert told[0].committed


def test_who_is_told_and_fails_costs_no_thread(bench: Bench) -> None:
    def fail(_: Outcome) -> None:
        raise RuntimeError("the listener broke")

    bench.checkpoints.take("full", wait=False, tell=fail)
    assert bench.checkpoints.take("incremental").committed
    assert "the listener broke" in bench.records("error")[-1].text("message")


def test_a_defect_of_ours_is_an_outcome_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.tiers["recent"].put("a", 1)
    with monkeypatch.context() as patch:
        patch.setattr(bench.tiers, "capture", lambda: 1 / 0)
        assert "division" in bench.checkpoints.take("full").reason
    with monkeypatch.context() as patch:
        patch.setattr("memwatch.agent.checkpoints.chain.hash_in_order", lambda _: 1 / 0)
        assert "division" in bench.checkpoints.take("full").reason
    with monkeypatch.context() as patch:
        patch.setattr(bench.checkpoints._chain, "extend", lambda _: 1 / 0)
        assert "division" in bench.checkpoints.take("full").reason
    assert bench.checkpoints.take("full").committed
    bench.check()


def test_a_closed_one_takes_none(bench: Bench) -> None:
    gate, told = Gate(bench), list[Outcome]()
    bench.checkpoints.take("full", wait=False, tell=told.append)
    threading.Timer(0.05, gate.open.set).start()
    bench.checkpoints.close()
    assert told[0].committed, "the one in progress is finished first"
    bench.checkpoints.close()
    outcome = bench.checkpoints.take("full")
    assert (outcome.committed, outcome.reason) == (False, "the run is closed")
    assert bench.checkpoints.due() is None


def test_a_forked_child_takes_none_while_the_parent_goes_on(bench: Bench) -> None:
    bench.tiers["recent"].put("a", 1)
    gate = Gate(bench)
    bench.checkpoints.take("full", wait=False)
    assert gate.reached.wait(20)
    before = bench.names()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            outcome = bench.checkpoints.take("full")
            bench.checkpoints.close()
            same = bench.names() == before and not bench.checkpoints.pressing
            os.write(write_end, f"{same} {outcome.reason}".encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        assert answer.read().startswith("True this run belongs to the parent process")
    os.waitpid(child, 0)
    gate.open.set()
    assert bench.checkpoints.take("incremental").committed
    bench.check()
