"""Names in a run directory say what they hold, and nothing else has such a name."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.wal import segment as module
from memwatch.wal.segment import (
    delta_name,
    delta_range,
    full_lsn,
    full_name,
    segment_lsn,
    segment_name,
    segments,
)

lsns = st.integers(1, (1 << 63) - 2)


@given(lsns, lsns)
def test_names_and_back(first: int, last: int) -> None:
    assert segment_lsn(segment_name(first)) == first
    assert full_lsn(full_name(last)) == last
    assert delta_range(delta_name(first, last)) == (first, last)


@given(st.lists(lsns, unique=True))
def test_names_sort_as_their_numbers_do(found: list[int]) -> None:
    names = sorted(map(segment_name, found))
    assert segments(names) == sorted(found) == [segment_lsn(name) for name in names]


@pytest.mark.parametrize(
    "name",
    [
        "", "1.wal", "00000000000000000000.wal", "00000000000000000001.wal.tmp",
        ".00000000000000000001.wal", "0000000000000000000a.wal", "00000000000000000001.WAL",
        "+0000000000000000001.wal", "00000000000000000001.wal\n", "99999999999999999999.wal",
        "09223372036854775807.wal", "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠١.wal", "000000000000000000001.wal",
    ],
)  # fmt: skip
def test_what_is_no_segment(name: str) -> None:
    assert segment_lsn(name) is None
    assert segments([name, segment_name(5)]) == [5]


@pytest.mark.parametrize(
    "name",
    ["full-1", "full-0000000000000000000٠", "full-00000000000000000001.tmp", "delta-1-2.wal"],
)
def test_what_is_no_checkpoint(name: str) -> None:
    assert full_lsn(name) is None
    assert delta_range(name) is None


def test_the_examples_in_the_docstrings() -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
