"""What leaves `inert` is printable, whatever a stranger wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.text import inert


@given(st.text(), st.integers(0, 300))
def test_a_strangers_text_is_printable_and_short(text: str, width: int) -> None:
    told = inert(text, width)
    assert told.isprintable()
    assert len(told) <= max(width, 1)


def test_a_no_break_space_does_not_pass_as_printable() -> None:
    assert inert("a\N{NO-BREAK SPACE}b\N{IDEOGRAPHIC SPACE}c\N{OGHAM SPACE MARK}") == "a b c "


def test_every_code_point_comes_out_printable() -> None:
    assert all(inert(chr(code), 1).isprintable() for code in range(0x110000))
