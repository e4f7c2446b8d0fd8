"""Which values can never change in place, so that a checkpoint need not look at them again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from memwatch.agent.memory.values import Types


class Point(Struct, frozen=True):
    x: float
    name: str | None = None


class Path(Struct, frozen=True):
    points: tuple[Point, ...]
    data: bytes = b""
    above: Path | None = None


class Bag(Struct, frozen=True):
    items: list[int]


class Loose(Struct):
    x: int


class Holder(Struct, frozen=True):
    loose: Loose


class Anything(Struct, frozen=True):
    what: Any


TYPES = Types((Point, Path, Bag, Loose, Holder, Anything))


@pytest.mark.parametrize("value", [b"", "text", 1, 1.5, None, True, Point(1.0), Path((Point(0),))])
def test_fixed(value: object) -> None:
    assert TYPES.is_fixed(value)


@pytest.mark.parametrize(
    "value",
    [[], {}, (), bytearray(), Bag([1]), Loose(1), Holder(Loose(1)), Anything(1), object()],
)
def test_not_fixed(value: object) -> None:
    assert not TYPES.is_fixed(value)


def test_a_class_that_the_run_was_not_told_of_is_not() -> None:
    assert not Types().is_fixed(Point(1.0))
