"""Experiments of plain, threaded and asyncio programs, as the log tells them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent import Run, RunOptions
from memwatch.domain.errors import LogError
from tests.agent.reading import read_log
from tests.faults.failing_files import FailingFiles


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "run", RunOptions(agent="tester")) as opened:
        yield opened


def told(run: Run, kind: str) -> list[dict[str, Any]]:
    return [record.members for record in read_log(run.path / "wal")[0] if record.kind == kind]


def test_a_decorated_function_is_an_experiment_each_time(run: Run) -> None:
    @run.tool("weigh")
    def weigh(size: int) -> int:
        return size * 2

    @run.experiment("size {size}", phase="exploration")
    def measure(size: int) -> int:
        assert run.current is not None
        run.current.status, run.current.metrics["size"] = "kept", size
        return weigh(size) or 0

    assert [measure(1), measure(size=2)] == [2, 4]
    assert run.current is None
    assert [end["title"] for end in told(run, "experiment.end")] == ["size 1", "size 2"]
    assert [end["metrics"] for end in told(run, "experiment.end")] == [{"size": 1}, {"size": 2}]
    assert [(end["x"], end["status"]) for end in told(run, "tool.end")] == [
        (1, "done"),
        (2, "done"),
    ]


def test_what_other_threads_do_meanwhile_belongs_to_the_experiment(run: Run) -> None:
    def work(name: str) -> None:
        for number in range(20):
            with run.step(name):
                run.tiers["workspace"].put(f"{name}/{number}", {"n": number})

    with run.experiment("threads", "exploration"):
        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        run.safe_point()
        for thread in threads:
            thread.join()
    assert {members["x"] for members in told(run, "put")} == {1}
    assert len(told(run, "put")) == len(told(run, "step.end")) == 60
    assert len({members["id"] for members in told(run, "step.begin")}) == 60
    assert len(run.tiers["workspace"]) == 60


def test_only_one_at_a_time_whichever_thread_begins_it(run: Run) -> None:
    refused: list[str] = []

    def begin() -> None:
        try:
            run.experiment("second", "exploration").__enter__()
        except RuntimeError as error:
            refused.append(str(error))

    with run.experiment("first", "exploration"):
        thread = threading.Thread(target=begin)
        thread.start()
        thread.join()
    assert refused == ["experiment 1 has not ended yet"]


async def test_tasks_work_for_the_experiment_that_one_of_them_holds(run: Run) -> None:
    @run.step("part {name}")
    async def part(name: str) -> None:
        await asyncio.sleep(0)
        run.tiers["workspace"].put(name, name)

    @run.experiment("tasks", phase="accumulation")
    async def together() -> str:
        await asyncio.gather(*(part(name) for name in "abc"))
        return "done"

    assert await together() == "done"
    assert {members["x"] for members in told(run, "put")} == {1}
    assert {m["name"] for m in told(run, "step.end")} == {"part a", "part b", "part c"}


async def test_a_cancelled_task_aborts_its_experiment(run: Run) -> None:
    begun = asyncio.Event()

    async def forever() -> None:
        async with run.experiment("long", "exploration"):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(forever())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [end["status"] for end in told(run, "experiment.end")] == ["aborted"]
    async with run.experiment("next", "exploration") as experiment:
        assert experiment.number == 2


def test_a_new_phase_is_declared_with_its_first_experiment(run: Run) -> None:
    run.tiers["workspace"].put("early", 1)
    with run.experiment("one", "exploration"):
        run.tiers["workspace"].put("light", 1)
    with run.experiment("two", "verification"):
        run.tiers["workspace"].put("heavy", 1)
    phases = {entry.key: entry.phase for entry in run.tiers["workspace"].entries()}
    assert phases == {"early": "", "light": "exploration", "heavy": "verification"}


def test_an_experiment_that_cannot_be_logged_neither_begins_nor_stays(tmp_path: Path) -> None:
    files = FailingFiles()
    with Run.open(tmp_path / "run", RunOptions(agent="tester"), files=files) as run:
        files.fail_all("write")
        with pytest.raises(LogError), run.experiment("unheard", "exploration"):
            pytest.fail("it began")
        assert (run.current, run.experiments) == (None, 0)
        files.heal()
        with run.experiment("heard", "exploration") as experiment:
            assert experiment.number == 1
            files.fail_all("write")
            with pytest.raises(LogError):
                run.tiers["workspace"].put("a", 1)
            experiment.status = "failed"
            files.heal()
        assert run.current is None


def test_an_experiment_without_a_phase_goes_on_in_that_of_the_one_before(run: Run) -> None:
    for title, phase in (("one", "exploration"), ("two", None), ("three", ""), ("four", None)):
        with run.experiment(title, phase=phase):
            run.tiers["workspace"].put(title, 1)
    with run.experiment("five", "accumulation"):
        pass
    phases = [entry.phase for entry in run.tiers["workspace"].entries()]
    assert phases == ["exploration", "exploration", "", ""]
    begun = [members["phase"] for members in told(run, "experiment.begin")]
    assert begun == ["exploration", "exploration", "", "", "accumulation"]


def test_a_phase_outlives_a_restart(tmp_path: Path) -> None:
    for phase in ("verification", None):
        with Run.open(tmp_path / "run", RunOptions(agent="t")) as run, run.experiment("x", phase):
            pass
    assert [members["phase"] for members in told(run, "experiment.begin")] == ["verification"] * 2


@pytest.mark.parametrize("status", ["sucess", "crashed", None, 3, ["kept"], "\ud800"])
def test_an_unknown_status_ends_as_done_and_is_told(run: Run, status: Any) -> None:
    with run.experiment("one") as experiment:
        experiment.status = status
        experiment.title = status
    assert [end["status"] for end in told(run, "experiment.end")] == ["done"]
    (error,) = told(run, "error")
    assert error["kind"] == "status"
    assert "done, kept, discarded, failed, aborted" in error["message"]
    assert run.current is None


class Untellable(Exception):
    """Of an agent; it cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_what_an_agent_says_for_people_never_fails_it(tmp_path: Path) -> None:
    name: Any = "caf\udce9 \x1b[31m"
    run = Run.open(tmp_path / "run", RunOptions(agent="t"))

    def work() -> None:
        with run, run.experiment(name, phase=name):
            with run.tool(name) as call, run.step(name):
                call.status, call.bytes_out = name, name
            run.note(name)
            run.error(name, name)
            raise Untellable

    with pytest.raises(Untellable):
        work()
    for kind, member in (("tool.end", "status"), ("note", "text"), ("experiment.end", "title")):
        assert told(run, kind)[0][member] == "caf? \x1b[31m"
    assert told(run, "tool.end")[0]["bytes_out"] is None
    assert told(run, "run.end")[0]["reason"] == "Untellable: (it cannot be told)"
