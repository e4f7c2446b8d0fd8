"""Long work in slices: the same result as in one go."""

from __future__ import annotations

import gc
import random

import pytest

from memwatch.agent.checkpoints.slices import SLICE, in_order, let_go, slices


@pytest.fixture(params=[True, False], ids=["collected", "not collected"])
def collector(request: pytest.FixtureRequest) -> bool:
    """Whether the program lets garbage be collected; the library leaves that as it is."""
    return bool(request.param)


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 50_000])
def test_sorted_in_slices_is_sorted(count: int, collector: bool) -> None:
    keys = [f"key/{number}" for number in range(count)]
    random.Random(count).shuffle(keys)
    before = gc.isenabled()
    (gc.enable if collector else gc.disable)()
    try:
        parts = list(map(list, in_order(keys, key=str)))
        assert gc.isenabled() == collector
    finally:
        (gc.enable if before else gc.disable)()
    assert [key for part in parts for key in part] == sorted(keys)
    assert max(map(len, parts)) < max(8 * SLICE, 2), "no part holds the interpreter for long"


def test_slices_and_letting_go() -> None:
    items = list(range(2 * SLICE + 1))
    assert [len(some) for some in slices(items)] == [SLICE, SLICE, 1]
    let_go(items)
    assert items == []
