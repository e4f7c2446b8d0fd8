"""Aborts in an asyncio program: what works for the experiment unwinds, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from memwatch.agent import Run
from tests.agent.control.test_in_a_run import OPTIONS, ask, state, statuses


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with Run.open(tmp_path / "run", OPTIONS) as opened:
        yield opened


async def come_by_until(run: Run, end: asyncio.Event) -> str:
    while not end.is_set():
        await asyncio.sleep(0)
        run.safe_point()
        with run.tool("look"):
            pass
    return "lives on"


async def abort(run: Run) -> None:
    await asyncio.to_thread(ask, run, "abort_experiment", save="none")


async def test_a_task_beside_the_experiment_lives_on(run: Run) -> None:
    end = asyncio.Event()
    beside = asyncio.create_task(come_by_until(run, end))
    async with run.experiment("aborted"):
        await abort(run)
        for _ in range(5):  # the other one comes by first
            await asyncio.sleep(0)
        run.safe_point()
        pytest.fail("the abort comes before it")
    end.set()
    assert await beside == "lives on"
    assert (state(run), statuses(run)) == ("done", ["aborted"])


@pytest.mark.parametrize("group", [True, False])
async def test_tasks_that_the_experiment_began_unwind_it(run: Run, group: bool) -> None:
    end = asyncio.Event()
    async with run.experiment("aborted"):
        asking = asyncio.ensure_future(abort(run))
        if group:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(2):
                    tasks.create_task(come_by_until(run, end))
        else:
            await asyncio.gather(*(come_by_until(run, end) for _ in range(2)))
        pytest.fail("the abort comes before it")
    end.set()
    await asking
    assert statuses(run) == ["aborted"]
    async with run.experiment("next"):
        run.safe_point()
    assert statuses(run) == ["aborted", "done"]
    assert state(run) == "done"


async def test_an_error_beside_an_abort_goes_on(run: Run) -> None:
    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("its own")

    async def work() -> None:
        async with run.experiment("aborted"), asyncio.TaskGroup() as tasks:
            tasks.create_task(fails())
            await abort(run)
            run.safe_point()

    with pytest.raises(ExceptionGroup) as caught:
        await work()
    assert list(map(str, caught.value.exceptions)) == ["its own"]
    assert statuses(run) == ["failed"]


async def test_an_experiment_whose_task_has_ended_can_be_aborted_by_any(run: Run) -> None:
    stack = AsyncExitStack()

    async def begin() -> None:
        await stack.enter_async_context(run.experiment("left open"))

    await asyncio.create_task(begin())
    await abort(run)
    async with stack:
        run.safe_point()
    assert statuses(run) == ["aborted"]


async def test_a_generator_that_holds_an_experiment_ends_it_when_it_is_closed(run: Run) -> None:
    async def later() -> AsyncIterator[int]:
        async with run.experiment("async"):
            yield 1
            yield 2

    def now() -> Iterator[int]:
        with run.experiment("plain"):
            yield 1
            yield 2

    running = later()
    async for _ in running:
        break
    await running.aclose()  # type: ignore[attr-defined] # a generator is one
    for _ in now():
        break
    assert statuses(run) == ["aborted", "aborted"]
    assert run.current is None


async def test_a_generator_that_is_aborted_raises_in_whoever_goes_on_with_it(run: Run) -> None:
    def work() -> Iterator[int]:
        with run.experiment("plain"):
            yield 1
            run.safe_point()
            yield 2

    numbers = work()
    assert next(numbers) == 1
    await abort(run)
    assert list(numbers) == []
    assert statuses(run) == ["aborted"]
