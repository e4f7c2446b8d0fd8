"""Deep sizes: each object once, containers and attributes included, comparable with tracemalloc."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import Struct

from memwatch.agent.memory.sizes import deep_bytes


class Packed(Struct):
    """A struct, as the demo's results are."""

    chunks: tuple[bytes, ...]
    ratio: float


@dataclass
class Plain:
    """An instance with a dictionary of its own."""

    text: str


class Slotted:
    """An instance with slots, one of them empty."""

    __slots__ = ("empty", "text")

    def __init__(self, text: str) -> None:
        self.text = text


def test_a_leaf_is_its_own_size() -> None:
    assert deep_bytes(b"x" * 1000) == sys.getsizeof(b"x" * 1000)


def test_what_exists_anyway_costs_nothing() -> None:
    assert [deep_bytes(value) for value in (None, True, 7, len, str, sys)] == [0] * 6


def test_an_object_that_is_held_twice_counts_once() -> None:
    big = b"x" * 10_000
    assert deep_bytes([big, big]) < 11_000


def test_a_ring_ends() -> None:
    ring: list[Any] = [b"x" * 1000]
    ring.append(ring)
    assert 1000 < deep_bytes(ring) < 1300


@pytest.mark.parametrize(
    "wrap",
    [
        lambda big: [big],
        lambda big: (big,),
        lambda big: {"key": big},
        lambda big: {big},
        lambda big: deque([big]),
        lambda big: Packed((big,), 1.5),
        lambda big: Plain(big),
        lambda big: Slotted(big),
        lambda big: memoryview(big),
    ],
)
def test_what_a_container_holds_is_included(wrap: Callable[[Any], Any]) -> None:
    big = b"x" * 100_000
    assert 100_000 < deep_bytes(wrap(big)) < 101_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: [bytes([n % 256]) * 200 for n in range(2000)],
        lambda: {f"key {i}": f"value {i}" * 5 for i in range(2000)},
        lambda: [Packed((b"%d" % i * 50,), i / 7) for i in range(1000)],
        lambda: [Plain("t" * (i % 990)) for i in range(1000)],
    ],
)
def test_agrees_with_tracemalloc_within_a_tenth(make: Callable[[], Any]) -> None:
    gc.collect()  # empties free lists, whose objects tracemalloc would not see
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        value = make()
        traced = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert deep_bytes(value) == pytest.approx(traced, rel=0.10)
