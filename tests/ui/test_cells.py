"""What is sent to the terminal shows the same as all of it would, in fewer bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from memwatch.ui.terminal.cells import CellScreen
from memwatch.ui.terminal.sgr import PLAIN, change, parsed
from tests.ui.terminal import Terminal, styled

WIDTH, HEIGHT = 16, 4
STYLES = (
    "", "1", "2", "7", "1;2", "31", "1;31", "39;49", "97;104", "48;5;3", "4;9",
    "38;2;1;2;3;48;2;9;9;9", "2;38;5;110", "38;2;0;0;0",
)  # fmt: skip


def clear() -> str:
    return "\n".join(f"\x1b[{row + 1};1H" + " " * WIDTH for row in range(HEIGHT))


@st.composite
def pieces(draw: st.DrawFn) -> str:
    """Draw a piece of output as Textual writes it: a move, styled text, perhaps a line end."""
    row = draw(st.integers(1, HEIGHT))
    column = draw(st.integers(1, WIDTH))
    room = WIDTH - column + 1
    text = ""
    for character in draw(st.text(alphabet="ab  ─记é", max_size=WIDTH)):
        if cell_len(text + character) <= room:
            text += character
    style = draw(st.sampled_from(STYLES))
    shown = f"\x1b[{style}m{text}\x1b[0m" if style else text
    return f"\x1b[{row};{column}H{shown}" + draw(st.sampled_from(["", "\n", "\r\n"]))


@given(st.lists(st.lists(pieces(), max_size=6), max_size=6))
def test_the_terminal_shows_the_same(frames: list[list[str]]) -> None:
    thrifty, whole, cells = Terminal(WIDTH, HEIGHT), Terminal(WIDTH, HEIGHT), CellScreen()
    for frame in [[clear()], *frames]:
        data = "\x1b[?2026h" + "".join(frame) + "\x1b[?2026l"
        whole.feed(data)
        thrifty.feed(cells.feed(data))
        assert thrifty.seen() == whole.seen()


@given(st.sampled_from(STYLES), st.sampled_from(STYLES))
def test_a_change_of_style_leads_there_by_no_more_bytes_than_a_new_start(
    before: str, after: str
) -> None:
    old, new = parsed(before), parsed(after)
    step = change(old, new)
    assert styled(old, step[2:-1]) == new if step else old == new
    assert len(step) <= len(change(None, new))


def test_nothing_is_sent_when_nothing_changed() -> None:
    cells = CellScreen()
    frame = "\x1b[?2026h\x1b[1;1H\x1b[31mred\x1b[0m and plain\x1b[1;1H\x1b[?2026l"
    assert cells.feed(frame)
    assert cells.feed(frame) == ""


def test_one_digit_costs_a_move_and_a_digit() -> None:
    cells = CellScreen()
    cells.feed("\x1b[3;1H\x1b[38;2;1;2;3m12:00:01\x1b[0m and more")
    assert cells.feed("\x1b[3;1H\x1b[38;2;1;2;3m12:00:02\x1b[0m and more") == (
        "\x1b[3;8H\x1b[38;2;1;2;3m2"
    )
    assert cells.feed("\x1b[3;1H\x1b[38;2;1;2;3m12:00:03\x1b[0m and more") == "\b3"


def test_a_column_of_a_chart_costs_a_step_and_a_glyph_each() -> None:
    cells = CellScreen()
    cells.feed("".join(f"\x1b[{row};1H....." for row in (1, 2, 3)))
    column = cells.feed("".join(f"\x1b[{row};1H..█.." for row in (1, 2, 3)))
    assert column == "\x1b[1;3H█\x1b[B\b█\x1b[B\b█"


def test_after_text_of_doubtful_width_the_next_move_is_by_address() -> None:
    cells = CellScreen()
    cells.feed("\x1b[1;1H.. .....  ....")
    assert cells.feed("\x1b[1;1H记 .....  ...x").endswith("记\x1b[1;14Hx")


def test_near_changes_are_sent_as_one() -> None:
    cells = CellScreen()
    cells.feed("\x1b[1;1Hab cd ef")
    assert cells.feed("\x1b[1;1HaX cX ef") == "\x1b[1;2HX cX"


def test_what_is_no_drawing_goes_through_in_its_place() -> None:
    cells = CellScreen()
    assert cells.feed("\x1b[?25l") == "\x1b[?25l"
    assert cells.feed("\x1b[1;1Hhi\x1b[?1000h\x1b]22;text\x07") == (
        "\x1b[1;1H\x1b[mhi\x1b[?1000h\x1b]22;text\x07"
    )


def test_a_new_screen_is_drawn_whole() -> None:
    cells = CellScreen()
    drawing = "\x1b[1;1H\x1b[7mhi\x1b[0m"
    first = cells.feed(drawing)
    assert cells.feed("\x1b[?1049h" + drawing) == "\x1b[m\x1b[?1049h\x1b[1;1H\x1b[0;7mhi"
    cells.forget()
    assert cells.feed(drawing) == first


def test_leaving_the_screen_leaves_no_style_behind() -> None:
    cells = CellScreen()
    cells.feed("\x1b[1;1H\x1b[31mred\x1b[0m")
    assert cells.feed("\x1b[?1049l") == "\x1b[m\x1b[?1049l"


def test_a_mark_without_width_stays_on_its_letter() -> None:
    cells = CellScreen()
    assert cells.feed("\x1b[1;1Hne\N{COMBINING ACUTE ACCENT}e") == (
        "\x1b[1;1H\x1b[mne\N{COMBINING ACUTE ACCENT}e"
    )


def test_plain_is_what_a_reset_gives() -> None:
    assert parsed("0") == parsed("") == PLAIN


@given(st.lists(pieces(), max_size=6), st.lists(pieces(), max_size=6))
def test_a_terminal_made_smaller_shows_nothing_of_the_larger_layout(
    late: list[str], frame: list[str]
) -> None:
    small = Terminal(WIDTH, HEIGHT)
    cells = CellScreen()
    for row in range(2 * HEIGHT):
        cells.feed(f"\x1b[{row + 1};1H" + "│" * 2 * WIDTH)
    cells.resize(WIDTH, HEIGHT)
    whole = Terminal(WIDTH, HEIGHT)
    for shown in ["".join(late) + "\x1b[2;9H" + "x" * WIDTH, clear() + "".join(frame)]:
        small.feed(cells.feed(shown + f"\x1b[{HEIGHT + 1};1Hbelow"))
    whole.feed(clear() + "".join(frame))
    assert small.seen() == whole.seen()
