"""What keys do to a question: a pure function, by table; and how the question is drawn."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.command import Command, CommandInfo
from memwatch.ui.deeds.dialog import (
    Choice,
    Dialog,
    Pressed,
    Question,
    opened,
    pasted,
    pressed,
    trial_text,
    tried,
)
from memwatch.ui.line import text_of, width_of
from memwatch.ui.panels.dialog import dialog_lines

LEAVE = Choice(text="leave")
A = Choice(text="a", command=Command(op="a"), trial=True)
B = Choice(text="b", command=Command(op="b"))
NAMED = Choice(text="named", command=Command(op="named"), typed=True)
NAMES = ("night-7", "20260731-night-7")


def question(*choices: Choice) -> Question:
    return Question(action="purge", title="t", choices=(LEAVE, *choices), names=NAMES)


def after(dialog: Dialog, keys: Iterable[str]) -> Pressed:
    """Press keys until the dialog is over."""
    found = Pressed(dialog)
    for key in keys:
        found = pressed(found.dialog, key, key if len(key) == 1 else None)
        if found.over:
            break
    return found


@pytest.mark.parametrize(
    ("choices", "keys", "chosen"),
    [
        ((A,), ["enter"], None),
        ((A,), ["enter", "enter"], None),
        ((A,), ["escape"], None),
        ((A,), ["n"], None),
        ((A,), ["q"], None),
        ((A,), ["y"], "a"),
        ((A,), ["down", "enter"], "a"),
        ((A,), ["2", "enter"], "a"),
        ((A, B), ["enter"], None),
        ((A, B), ["q"], None),
        ((A, B), ["3", "enter"], "b"),
        ((A, B), ["down", "down", "down", "down", "enter"], "b"),
        ((A, B), ["down", "down", "up", "enter"], "a"),
        ((A, B), ["tab", "shift+tab", "enter"], None),
        ((A, B), ["up", "enter"], None),
        ((A, B), ["3", "escape"], None),
        ((NAMED,), [*"night-7", "enter"], "named"),
        ((NAMED,), [*"20260731-night-7", "enter"], "named"),
        ((NAMED,), [*"night-8", "backspace", "7", "enter"], "named"),
        ((NAMED,), [*"xyz", "ctrl+u", *"night-7", "enter"], "named"),
        ((NAMED,), [*"night-7", "escape"], None),
        ((A, NAMED), ["3", "enter", *"night-7", "enter"], "named"),
    ],
)
def test_what_keys_end_in(choices: tuple[Choice, ...], keys: list[str], chosen: str | None) -> None:
    found = after(opened(question(*choices)), keys)
    assert found.over
    command = found.chosen.command if found.chosen else None
    assert (command.op if command else None) == chosen


@pytest.mark.parametrize(
    ("choices", "keys"),
    [
        ((A, B), ["y"]),
        ((A, B), ["n"]),
        ((A, B), ["9", "0", "x", "left", "ctrl+a"]),
        ((A,), ["down", "up", "space"]),
        ((NAMED,), ["enter"]),
        ((NAMED,), ["y", "enter"]),
        ((NAMED,), [*"night", "enter"]),
        ((NAMED,), [*"NIGHT-7", "enter"]),
        ((NAMED,), [*" night-7", "enter"]),
        ((A, NAMED), ["3", "enter", "enter", "enter"]),
    ],
)
def test_what_keys_do_not_end_it(choices: tuple[Choice, ...], keys: list[str]) -> None:
    assert not after(opened(question(*choices)), keys).over


def test_what_was_typed_goes_along_as_the_confirmation() -> None:
    found = after(opened(question(NAMED)), [*"night-7", "enter"])
    assert found.chosen is not None
    assert found.chosen.command == Command(op="named", confirm="night-7")
    other = after(opened(question(A)), ["y"])
    assert other.chosen is not None
    assert other.chosen.command == Command(op="a")


def test_a_name_may_be_pasted_but_never_confirms_by_itself() -> None:
    dialog = pasted(opened(question(NAMED)), "night-7\r\n")
    assert dialog.typed == "night-7"
    assert pasted(opened(question(A)), "y").typed == ""


KEYS = st.lists(
    st.one_of(
        st.sampled_from(
            ["enter", "escape", "up", "down", "tab", "y", "n", "q", "1", "2", "3", "backspace"]
        ),
        st.characters(),
    ),
    max_size=30,
)


@given(KEYS)
def test_no_keys_confirm_what_was_not_typed_and_the_cursor_stays_within(keys: list[str]) -> None:
    found = after(opened(question(A, NAMED)), keys)
    assert 0 <= found.dialog.at < 3
    if found.chosen is not None and found.chosen.text == "named":
        assert found.chosen.command is not None
        assert found.chosen.command.confirm in NAMES


# -- how it is drawn -----------------------------------------------------------------------------

HOSTILE = "\x1b[2J\u202e" + "x" * 300


def info(**result: object) -> CommandInfo:
    return CommandInfo(id="1", op="a", state="done", asked_us=0, changed_us=0, result=result)


@pytest.mark.parametrize(
    ("trial", "said"),
    [
        (info(freed_bytes=36_600_000, entries=60), "would free 37M, 60 entries"),
        (info(freed_bytes=1, entries=1), "would free 1B, 1 entry"),
        (info(freed_bytes=0), "nothing would be freed now"),
        (info(freed_bytes="a lot"), "says that it can"),
        (info(freed_bytes=5, entries=1, refused="disk full"), "(disk full)"),
        ("no guard listens", "could not be asked: no guard listens"),
    ],
)
def test_what_the_agent_would_do_is_said_in_its_name(trial: CommandInfo | str, said: str) -> None:
    assert said in trial_text(trial)


@pytest.mark.parametrize("size", [(1, 1), (12, 3), (34, 10), (74, 22), (90, 38)], ids=str)
@pytest.mark.parametrize("at", [0, 4, 8])
def test_a_question_fits_and_shows_the_cursor(size: tuple[int, int], at: int) -> None:
    choices = tuple(Choice(text=f"choice {n}", command=Command(op="x")) for n in range(8))
    asked = Question(
        action="purge", title="t", lines=("long words " * 30,), choices=(LEAVE, *choices)
    )
    dialog = tried(Dialog(question=asked, at=at), at, HOSTILE)
    lines = dialog_lines(dialog, *size, why_not="the run is over")
    assert len(lines) <= size[1]
    assert all(width_of(line) <= size[0] and text_of(line).isprintable() for line in lines)
    if size[1] >= 10:
        shown = "leave" if at == 0 else f"choice {at - 1}"
        assert any(text_of(line).startswith(f"▸ {at + 1} {shown}") for line in lines)


def test_the_keys_that_count_are_said() -> None:
    def keys(dialog: Dialog) -> str:
        return text_of(dialog_lines(dialog, 90, 20)[-1])

    assert keys(opened(question(A))) == "y does it · Enter or Esc leaves everything as it is"
    assert keys(opened(question(A, B))).startswith("↑ ↓ choose · Enter does it")
    typing = opened(question(NAMED))
    assert keys(typing) == "Esc leaves everything as it is"
    assert keys(pasted(typing, "nigh")).startswith("not the name yet")
    assert keys(pasted(typing, "night-7")).startswith("Enter does it")
