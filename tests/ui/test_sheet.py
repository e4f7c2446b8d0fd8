"""The long table: its cursor stays on its row, and what matters most stays above it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memwatch.ui.line import text_of, width_of, wrapped_line
from memwatch.ui.panels.sheet import Cursor, Sheet, SheetRow, moved, placed, rows_in, sheet_lines
from memwatch.ui.panels.table import Cell, TableColumn
from tests.ui.harness import texts

COLUMNS = (TableColumn("name", 0, "left"), TableColumn("size", 4))


def sheet(*names: str, above: int = 0) -> Sheet:
    return Sheet(
        above=tuple((rank, [(f"figure {rank}", "")]) for rank in range(above)),
        columns=COLUMNS,
        rows=tuple(SheetRow(name, (Cell(name), Cell("1"))) for name in names),
        nothing="nothing yet",
    )


def test_the_row_under_the_cursor_is_marked_without_colour() -> None:
    shown = sheet("a", "b", "c")
    cursor = placed(moved(Cursor(), shown, 1), shown, 9)
    assert texts(sheet_lines(shown, cursor, 20, 9)) == [
        "  name          size",
        "  a                1",
        "▸ b                1",
        "  c                1",
    ]


def test_the_cursor_stays_on_its_row_when_newer_ones_come() -> None:
    before, after = sheet("b", "c"), sheet("x", "a", "b", "c")
    untouched = placed(Cursor(), after, 9)
    assert untouched.at == 0, "nobody moved it: the newest row is marked"
    chosen = moved(Cursor(), before, 1)
    assert placed(chosen, after, 9).at == 3
    gone = placed(chosen, sheet("x", "y"), 9)
    assert gone.at == 1


def test_little_room_keeps_rows_and_the_gravest_figures() -> None:
    shown = sheet(*"abcdefgh", above=6)
    lines = texts(sheet_lines(shown, Cursor(), 30, 8))
    assert lines[:2] == ["figure 0", "figure 1"]
    assert len(lines) == 8
    assert rows_in(shown, 8) == 5
    assert texts(sheet_lines(sheet(above=1), Cursor(), 30, 8)) == ["figure 0", "nothing yet"]


@given(
    count=st.integers(0, 40),
    above=st.integers(0, 9),
    height=st.integers(1, 30),
    width=st.integers(1, 60),
    steps=st.lists(st.integers(-50, 50), max_size=8),
)
def test_the_marked_row_is_always_in_sight(
    count: int, above: int, height: int, width: int, steps: list[int]
) -> None:
    shown = sheet(*(f"row{n}" for n in range(count)), above=above)
    cursor = Cursor()
    for step in steps:
        cursor = placed(moved(cursor, shown, step), shown, height)
    lines = sheet_lines(shown, placed(cursor, shown, height), width, height)
    assert len(lines) <= height
    assert all(width_of(line) <= width for line in lines)
    if count and height >= 4 and width > 2:
        assert sum(text_of(line).startswith("▸") for line in lines) == 1


@given(st.text(alphabet="ab 记", max_size=80), st.integers(12, 40))
def test_a_wrapped_line_loses_no_word_that_fits(text: str, width: int) -> None:
    rows = wrapped_line([("label ", "dim"), (text, "")], width, 6)
    assert all(width_of(row) <= width for row in rows)
    words = [word for word in text.split() if width_of([(word, "")]) <= width - 6]
    whole = " ".join(text_of(row) for row in rows).split()
    assert set(words) <= set(whole) | {word for word in words if "…" in "".join(whole)}
