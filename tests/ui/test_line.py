"""Widths are cells of a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from memwatch.domain.text import inert
from memwatch.ui.line import (
    ascii_text,
    cut_line,
    fit,
    joined,
    spread,
    text_of,
    width_of,
    wrapped,
)

TEXTS = st.text(alphabet=st.sampled_from("ab –│记忆…é\u0301█"), max_size=30).map(inert)


@given(TEXTS, st.integers(0, 40))
def test_fit_takes_exactly_the_cells_it_was_given(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(fit(text, width, "right")) == width


@given(st.lists(st.tuples(TEXTS, st.just("")), max_size=5), st.integers(0, 60))
def test_a_cut_line_is_never_too_wide(line: list[tuple[str, str]], width: int) -> None:
    assert width_of(cut_line(line, width)) <= width


@given(st.text(max_size=40).map(inert))
def test_ascii_text_is_ascii_and_keeps_its_width(text: str) -> None:
    plain = ascii_text(text)
    assert plain.isascii()
    assert cell_len(plain) == cell_len(text)


def test_spread_lets_the_left_part_give_way() -> None:
    line = spread([("a long beginning", "")], [("12:00", "strong")], 14)
    assert text_of(line) == "a long…  12:00"


def test_joined_leaves_out_parts_that_say_nothing() -> None:
    assert text_of(joined([[("a", "")], [], [("b", "")]])) == "a │ b"


def test_wrapped_cuts_between_words_and_cuts_a_word_that_is_too_long() -> None:
    lines = [text_of(line) for line in wrapped("one two threeandmore", 8)]
    assert lines == ["one two", "threean…"]
