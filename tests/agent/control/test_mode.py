"""Modes: the gate, read-only, draining, aborts and ends, a log that cannot be written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memwatch.agent.control.mode import RETRY_US, End, ExperimentAborted, RunEnded
from memwatch.domain.errors import LogError, ReadOnlyError
from tests.agent.control.acting import Agent
from tests.agent.control.sending import a_command, a_hold, publish, put_hold, state_of, told
from tests.agent.reading import read_log
from tests.waiting import until


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.context.log.close()


def modes(agent: Agent) -> list[str]:
    return [r.text("mode") for r in read_log(agent.path / "wal")[0] if r.kind == "mode"]


def test_nothing_to_do_is_one_attribute(agent: Agent) -> None:
    assert agent.mode.attention is False
    agent.listener.poll()
    assert agent.mode.attention is True, "it is asked for when it last came by"
    agent.listener.safe_point()
    assert agent.mode.attention is False
    agent.clock.advance_s(3)
    agent.listener.poll()
    assert told(agent.path).since_safe_point_us == 3_000_000


def test_an_experiment_in_progress_drains(agent: Agent) -> None:
    agent.begin_experiment(7)
    put_hold(agent.path, a_hold())
    agent.listener.poll()
    assert (agent.state, told(agent.path).holds[0].drained) == ("draining", False)
    agent.end_experiment()
    agent.listener.poll()
    assert (agent.state, told(agent.path).holds[0].drained) == ("paused", True)
    assert modes(agent) == ["draining", "paused"]
    assert told(agent.path).experiment is None


def test_the_gate_waits_and_runs_what_comes_meanwhile(agent: Agent) -> None:
    agent.listener.start()
    path = put_hold(agent.path, a_hold())
    until(lambda: agent.state == "paused")
    passed = threading.Event()

    def work() -> None:
        agent.mode.gate(agent.listener.safe_point)
        passed.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    publish(agent.path, a_command(agent.clock))
    until(lambda: state_of(agent.path) == "done")
    assert not passed.is_set()
    path.unlink()
    until(passed.is_set)
    thread.join()
    agent.listener.stop()


async def test_the_gate_of_an_event_loop_holds_up_no_other_task(agent: Agent) -> None:
    path = put_hold(agent.path, a_hold())
    agent.listener.poll()
    gate = asyncio.create_task(agent.mode.gate_async(agent.listener.safe_point))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not gate.done()
    path.unlink()
    agent.listener.poll()
    await asyncio.wait_for(gate, 20)


def test_an_open_gate_lets_pass_at_once(agent: Agent) -> None:
    agent.mode.gate(lambda: pytest.fail("nothing asked for attention"))


def test_read_only_names_who_why_and_how_it_ends(agent: Agent) -> None:
    agent.mode.check_writable()
    path = put_hold(agent.path, a_hold(op="read_only", reason="disk check"))
    agent.listener.poll()
    with pytest.raises(ReadOnlyError, match=r"read_only by ann: disk check.*hold is deleted$"):
        agent.context.check_writable()
    path.unlink()
    put_hold(agent.path, a_hold(op="read_only", on_lease_end="release"), "ben")
    agent.listener.poll()
    with pytest.raises(ReadOnlyError, match=r"deleted or no longer renewed$"):
        agent.context.check_writable()


def test_a_full_disk_makes_read_only_until_a_record_can_be_written(agent: Agent) -> None:
    agent.files.fail_all("write", "open")
    with pytest.raises(LogError):
        agent.context.record("note", {"text": "lost"})
    assert agent.state == "read_only"
    with pytest.raises(ReadOnlyError, match=r"log cannot be written \(.*No space.*ends by itself"):
        agent.context.check_writable()
    agent.clock.advance_s(1)
    agent.mode.look()
    assert agent.state == "read_only"
    agent.files.heal()
    agent.mode.look()
    assert agent.state == "read_only", "it is not tried at every look"
    agent.clock.advance_s(RETRY_US / 1e6)
    agent.mode.look()
    agent.mode.check_writable()
    assert (agent.state, modes(agent)) == ("running", ["read_only", "running"])


def test_a_sync_that_failed_in_the_background_is_noticed(tmp_path: Path) -> None:
    agent = Agent(tmp_path, durability="batch")
    agent.files.fail_all("sync_data")
    agent.context.record("note", {"text": "not on the device"})
    until(lambda: agent.context.log.failed)
    agent.mode.look()
    assert agent.state == "read_only"
    agent.files.heal()

    def heals() -> bool:
        agent.clock.advance_s(1)
        agent.mode.look()
        return agent.state == "running"

    until(heals)
    agent.context.log.close()


def test_a_full_disk_during_a_hold_leaves_it_held(agent: Agent) -> None:
    put_hold(agent.path, a_hold(op="read_only"))
    agent.listener.poll()
    agent.files.fail_all("write")
    with pytest.raises(LogError):
        agent.context.record("note", {"text": "lost"})
    agent.files.heal()
    agent.clock.advance_s(1)
    agent.mode.look()
    with pytest.raises(ReadOnlyError, match="by ann"):
        agent.mode.check_writable()
    assert modes(agent) == ["read_only", "read_only", "read_only"]


def test_an_abort_is_raised_until_the_experiment_has_ended(agent: Agent) -> None:
    agent.begin_experiment(3)
    finished: list[str] = []
    agent.mode.abort(lambda _: finished.append(agent.state), "asked")
    for come_by in (agent.listener.safe_point, agent.listener.interruption_point):
        with pytest.raises(ExperimentAborted):
            come_by()
    agent.end_experiment()
    assert finished == []
    agent.listener.interruption_point()
    assert finished == [], "the state may be half changed there"
    agent.listener.safe_point()
    agent.listener.safe_point()
    assert finished == ["aborting"]
    assert (agent.state, modes(agent)) == ("running", ["aborting", "running"])


def test_an_abort_is_raised_in_the_experiments_thread_only(agent: Agent) -> None:
    agent.begin_experiment(3)
    agent.mode.abort(lambda _: None, "asked")
    raised: list[BaseException] = []

    def helper() -> None:
        try:
            agent.listener.safe_point()
        except BaseException as error:  # noqa: BLE001 - what the test looks for
            raised.append(error)

    thread = threading.Thread(target=helper)
    thread.start()
    thread.join()
    assert raised == []
    with pytest.raises(ExperimentAborted):
        agent.listener.safe_point()


def test_an_end_waits_for_its_grace_then_is_raised_again_and_again(agent: Agent) -> None:
    agent.begin_experiment(3)
    calls: list[int] = []
    agent.mode.end(End(_noting(calls), agent.clock.boot_us() + 5_000_000, "asked"))
    agent.listener.safe_point()
    assert (calls, agent.state) == ([], "draining")
    agent.clock.advance_s(5)
    for _ in range(2):
        with pytest.raises(RunEnded):
            agent.listener.safe_point()
    assert calls == [1]


def test_an_end_comes_as_soon_as_the_experiment_is_over(agent: Agent) -> None:
    agent.begin_experiment(3)
    agent.mode.end(End(lambda: True, agent.clock.boot_us() + 5_000_000, "asked"))
    agent.end_experiment()
    with pytest.raises(RunEnded) as ended:
        agent.mode.gate(agent.listener.safe_point)
    assert ended.value.code == 0


def test_an_end_that_cannot_save_is_called_off(agent: Agent) -> None:
    agent.mode.end(End(lambda: False, 0, "asked"))
    agent.listener.safe_point()
    assert (agent.state, modes(agent)) == ("running", ["draining", "running"])
    agent.mode.gate(agent.listener.safe_point)


def _noting(calls: list[int]) -> Callable[[], bool]:
    def finish() -> bool:
        calls.append(1)
        return True

    return finish
