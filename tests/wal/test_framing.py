"""Lines and their offsets do not depend on how the bytes came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.wal.framing import Framer, Line, Overlong
from tests.wal.strategies import chunked

few_letters = st.text("ab\n", max_size=60).map(str.encode)


def expected(data: bytes, start: int, longest: int) -> list[Line | Overlong]:
    """Return the lines as a reader would find them who has all bytes at once."""
    found: list[Line | Overlong] = []
    *whole, _ = data.split(b"\n")
    for line in whole:
        length = len(line) + 1
        found.append(Line(start, line) if length <= longest else Overlong(start, length))
        start += length
    return found


@given(few_letters, st.data(), st.integers(0, 1 << 50), st.integers(1, 12))
def test_any_chunking_gives_the_same_lines(
    data: bytes, draw: st.DataObject, start: int, longest: int
) -> None:
    framer = Framer(start, longest)
    found = [line for chunk in draw.draw(chunked(data)) for line in framer.feed(chunk)]
    assert found == expected(data, start, longest)
    assert framer.torn_bytes == len(data) - (data.rfind(b"\n") + 1)
    assert framer.offset + framer.torn_bytes == start + len(data)


@given(few_letters, few_letters)
def test_a_torn_end_can_be_stepped_over(before: bytes, after: bytes) -> None:
    framer = Framer()
    framer.feed(before)
    framer.skip_torn()
    assert (framer.offset, framer.torn_bytes) == (len(before), 0)
    assert framer.feed(after) == expected(after, len(before), 1000)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_line_without_end_is_not_kept_in_memory(size: int) -> None:
    framer = Framer(0, 50)
    for _ in range(1000):
        assert framer.feed(b"x" * size) == []
        assert sum(map(len, framer._pending)) < 50
    (overlong,) = framer.feed(b"\n")
    assert overlong == Overlong(0, 1000 * size + 1)
    assert framer.feed(b"good\n") == [Line(1000 * size + 1, b"good")]


def test_the_longest_line_fits_and_one_byte_more_does_not() -> None:
    framer = Framer(0, 5)
    assert framer.feed(b"1234\n12345\n") == [Line(0, b"1234"), Overlong(5, 6)]
    assert framer.feed(b"12") == []
    assert framer.feed(b"34\n") == [Line(11, b"1234")]
