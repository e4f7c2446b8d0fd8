"""A whole run under control: threads, event loops, aborts that unwind, ends that close."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Run, RunOptions
from memwatch.agent.control.mode import RunEnded
from memwatch.domain.clock import SystemClock
from memwatch.domain.errors import ReadOnlyError
from tests.agent.control.sending import a_command, a_hold, ack_of, publish, put_hold, told
from tests.agent.reading import kinds, read_log
from tests.waiting import until

OPTIONS = RunOptions(agent="tester", sample_s=3600.0)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "run", OPTIONS) as opened:
        yield opened


def ask(run: Run, op: str, command_id: str = "c1", **args: Any) -> None:
    command = a_command(SystemClock(), command_id, op=op, run_id=run.id, args=args)
    publish(run.path, command)
    until(lambda: ack_of(run.path, command_id))


def state(run: Run, command_id: str = "c1") -> str:
    return str((ack_of(run.path, command_id) or {}).get("state"))


def statuses(run: Run) -> list[str]:
    records = read_log(run.path / "wal")[0]
    return [r.text("status") for r in records if r.kind == "experiment.end"]


def test_a_paused_run_begins_nothing_and_finishes_what_it_began(run: Run) -> None:
    done: list[int] = []

    def work() -> None:
        for n in range(3):
            with run.experiment(f"try {n}"):
                if n == 0:
                    begun.set()
                    go_on.wait()
                done.append(n)

    begun, go_on = threading.Event(), threading.Event()
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    begun.wait()
    hold = put_hold(run.path, a_hold(run_id=run.id))
    until(lambda: run.mode == "draining")
    go_on.set()
    until(lambda: run.mode == "paused")
    ask(run, "checkpoint", kind="full")
    until(lambda: state(run) == "done")
    assert done == [0], "what is asked for is done while it waits"
    hold.unlink()
    thread.join(20)
    assert (done, run.mode) == ([0, 1, 2], "running")


@pytest.mark.parametrize("crash", [False, True])
def test_an_end_that_was_asked_for_means_no_later_start(tmp_path: Path, crash: bool) -> None:
    run = Run.open(tmp_path / "run", OPTIONS)

    def work() -> None:
        with run:
            ask(run, "end_run", "e1", save="none")
            ask(run, "end_run", "e2", save="none")
            assert (state(run, "e1"), state(run, "e2")) == ("accepted", "accepted")
            if crash:
                raise ValueError

    if crash:
        with pytest.raises(ValueError):  # noqa: PT011 - without a text
            work()
        assert state(run, "e2") == "accepted"  # whoever starts it again is told
    else:
        work()
        assert (state(run, "e1"), state(run, "e2")) == ("done", "done")
        with Run.open(run.path, OPTIONS) as again, again.experiment("lives on"):
            again.safe_point()


def test_an_abort_ends_one_experiment_and_the_agent_goes_on(run: Run) -> None:
    with run.experiment("endless"):
        run.tiers["workspace"].put("half", "done")
        ask(run, "abort_experiment")
        with run.tool("never begun"):
            pytest.fail("the abort comes before it")
    assert state(run) == "done"
    with run.experiment("next") as experiment:
        experiment.status = "kept"
    assert statuses(run) == ["aborted", "kept"]
    assert run.tiers["workspace"].get("half") == "done"
    assert "tool.begin" not in kinds(run.path)


async def test_an_abort_in_an_event_loop_ends_the_experiment_of_its_task(run: Run) -> None:
    async def step(n: int) -> None:
        async with run.step(f"step {n}"):
            await asyncio.sleep(0)

    async with run.experiment("gathered"):
        await asyncio.to_thread(ask, run, "abort_experiment", save="none")
        await asyncio.gather(*(step(n) for n in range(3)))
        pytest.fail("the abort comes before it")
    assert (state(run), statuses(run)) == ("done", ["aborted"])


async def test_other_tasks_run_while_one_waits_at_the_gate(run: Run) -> None:
    hold = put_hold(run.path, a_hold(run_id=run.id))
    await asyncio.to_thread(until, lambda: run.mode == "paused")

    async def release() -> None:
        hold.unlink()

    async def work() -> str:
        async with run.experiment("later"):
            return run.mode

    first, _ = await asyncio.gather(work(), release())
    assert first == "running"


def test_an_end_saves_closes_and_leaves_the_process_as_an_exit(tmp_path: Path) -> None:
    path = tmp_path / "run"

    def agent() -> None:
        with Run.open(path, OPTIONS) as run, run.experiment("cut short"):
            ask(run, "end_run")
            run.safe_point()

    with pytest.raises(RunEnded) as ended:
        agent()
    assert ended.value.code == 0
    assert (ack_of(path) or {})["state"] == "done"
    assert told(path).mode == "ended"
    assert kinds(path)[-1] == "run.end"
    assert "checkpoint.commit" in kinds(path)
    with Run.open(path, OPTIONS) as again:
        assert again.mode == "running"


def test_a_read_only_run_refuses_every_change_and_says_so(run: Run) -> None:
    workspace = run.tiers["workspace"]
    workspace.put("a", 1)
    hold = put_hold(run.path, a_hold(op="read_only", run_id="any", reason="hard limit"))
    until(lambda: run.mode == "read_only")
    for change in (
        lambda: workspace.put("b", 2),
        lambda: workspace.delete("a"),
        lambda: run.call("search", {"q": 1}, lambda: 2),
    ):
        with pytest.raises(ReadOnlyError, match="hard limit"):
            change()
    assert workspace.get("a") == 1
    hold.unlink()
    until(lambda: run.mode == "running")
    workspace.put("b", 2)


def test_an_agent_that_knows_nothing_of_read_only_outlives_it(run: Run) -> None:
    """R9: the hard limit takes the experiment in progress, and holds the next one up."""
    with run.experiment("cut short"):
        hold = put_hold(run.path, a_hold(op="read_only", run_id="any", reason="hard limit"))
        until(lambda: run.mode == "read_only")
        run.tiers["workspace"].put("a", 1)
        pytest.fail("the change is refused")
    assert (statuses(run), run.current) == (["aborted"], None)

    def work() -> None:
        with run.experiment("next"):
            run.tiers["workspace"].put("b", 2)

    thread = threading.Thread(target=work, name="agent", daemon=True)
    thread.start()
    thread.join(0.2)
    assert statuses(run) == ["aborted"]
    hold.unlink()
    thread.join(20)
    assert statuses(run) == ["aborted", "done"]


def test_what_is_told_names_run_start_and_experiment(run: Run) -> None:
    with run.experiment("one"):
        until(lambda: told(run.path).experiment == 1)
        run.safe_point()
    now = told(run.path)
    assert (now.run_id, now.start_id) == (run.id, run.start_id)
    until(lambda: told(run.path).since_safe_point_us is not None)
