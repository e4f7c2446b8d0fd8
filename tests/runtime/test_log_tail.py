"""Bytes behind a number of the log, whatever the order in which its parts are read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.runtime.views.log_tail import LogTail, Segments

LINE = 100


def tail_of(*spans: tuple[int, int]) -> LogTail:
    tail = LogTail()
    for first, last in spans:
        tail.add(first, last, LINE * (last - first + 1))
    return tail


@given(
    st.lists(st.integers(2, 500), unique=True, max_size=60),
    st.integers(0, 500),
    st.integers(0, 500),
    st.randoms(),
)
def test_any_order_gives_the_same_bytes(cuts: list[int], asked: int, kept: int, dice: Any) -> None:
    edges = [1, *sorted(cuts), 501]
    spans = [(first, after - 1) for first, after in pairwise(edges)]
    dice.shuffle(spans)
    tail = tail_of(*spans)
    tail.forget(min(asked, kept))
    assert tail.behind(asked) == pytest.approx(LINE * (500 - asked), abs=1)


def test_numbers_that_come_again_replace_what_they_held() -> None:
    tail = tail_of((1, 100))
    tail.forget(50)
    tail.add(51, 60, 5)
    assert tail.behind(50) == 5 + 40 * LINE


def test_what_is_forgotten_stays_so() -> None:
    tail = LogTail()
    tail.forget(50)
    tail.add(41, 60, 20 * LINE)
    assert tail.behind(0) == 10 * LINE


def test_gaps_hold_nothing() -> None:
    tail = tail_of((1, 10), (91, 100))
    assert tail.behind(0) == 20 * LINE
    assert tail.behind(50) == 10 * LINE
    assert tail.behind(100) == 0


def test_a_log_full_of_gaps_costs_no_memory() -> None:
    tail = tail_of(*((first, first) for first in range(1, 4000, 2)))
    assert len(tail._spans) <= 32
    assert tail.behind(3990) == pytest.approx(5 * LINE)
    assert tail.behind(0) == pytest.approx(2000 * LINE)


def test_segments_are_read_whole_whatever_the_order_they_came_in() -> None:
    segments = Segments()
    assert (segments.newest_bytes, segments.behind(0)) == (0, 0)
    for first, end in ((201, 20), (201, 300), (1, 1000), (101, 50), (101, 2000)):
        segments.add(first, end)
    assert segments.newest_bytes == 300
    assert segments.behind(150) == 2300, "from 101 on"
    assert segments.behind(199) == 2300, "the last record of a segment is due"
    assert segments.behind(200) == 300
    assert segments.behind(0) == 3300
    for first in range(300, 1000):
        segments.add(first, 1)
    assert segments.behind(0) < 100, "as far as they are known"
