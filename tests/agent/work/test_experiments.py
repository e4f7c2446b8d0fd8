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
