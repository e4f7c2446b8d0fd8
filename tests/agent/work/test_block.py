"""Blocks: with, async with, and functions of both kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from types import TracebackType

import pytest

from memwatch.agent.work.block import Block


class Aborted(BaseException):
    """Swallowed by a block."""


class Told(Block[str]):
    """Tells when it begins and ends."""

    def __init__(self, name: str, told: list[str]) -> None:
        super().__init__(name)
        self.told = told

    def again(self, name: str) -> Told:
        return Told(name, self.told)

    def __enter__(self) -> str:
        self.told.append(f"begin {self.name}")
        return self.name

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.told.append(f"end {self.name}" + (f": {error}" if error else ""))
        return isinstance(error, Aborted)


def test_with_and_async_with() -> None:
    told: list[str] = []

    async def later() -> None:
        async with Told("b", told) as name:
            assert name == "b"

    with Told("a", told) as name:
        assert name == "a"
    asyncio.run(later())
    assert told == ["begin a", "end a", "begin b", "end b"]


def test_each_call_of_a_function_is_a_block_of_its_own() -> None:
    told: list[str] = []

    @Told("level {level} of {most}: {rest}", told)
    def climb(level: int, *rest: int, most: int = 9) -> int:
        """Climb."""
        return (climb(level - 1, *rest) or 0) if level > 1 else level

    assert climb(2, 7) == 1
    assert climb.__doc__ == "Climb."
    assert told == [
        "begin level 2 of 9: (7,)",
        "begin level 1 of 9: (7,)",
        "end level 1 of 9: (7,)",
        "end level 2 of 9: (7,)",
    ]


async def test_async_functions_may_run_at_the_same_time() -> None:
    told: list[str] = []
    both = asyncio.Barrier(2)

    @Told("{name}", told)
    async def work(name: str) -> str:
        await both.wait()
        return name

    assert list(await asyncio.gather(work("a"), work(name="b"))) == ["a", "b"]
    assert sorted(told) == ["begin a", "begin b", "end a", "end b"]


async def test_what_a_block_swallows_makes_a_function_return_none() -> None:
    told: list[str] = []

    @Told("a", told)
    def now() -> int:
        raise Aborted

    @Told("b", told)
    async def later() -> int:
        raise Aborted

    assert now() is None
    assert await later() is None

    @Told("c", told)
    def broken() -> int:
        raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        broken()
    assert told[-1] == "end c: why"


def test_wrong_arguments_and_generators_are_refused() -> None:
    told: list[str] = []

    @Told("{level}", told)
    def climb(level: int) -> None:
        del level

    with pytest.raises(TypeError):
        climb()  # type: ignore[call-arg] # on purpose

    def generator() -> Iterator[int]:
        yield 1

    async def async_generator() -> AsyncIterator[int]:
        yield 1

    for function in (generator, async_generator):
        with pytest.raises(TypeError, match="generator is a generator"):
            Told("x", told)(function)
    assert told == []
