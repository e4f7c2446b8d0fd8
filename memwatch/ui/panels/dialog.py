"""A question to a person, as lines: what is asked, the choices, what they gain, the keys."""

from __future__ import annotations

from memwatch.ui.deeds.dialog import Choice, Dialog, trial_figure, trial_text
from memwatch.ui.line import Line, cut, cut_line, wrapped

_LEAST_CHOICES = 3


def dialog_lines(dialog: Dialog, width: int, height: int, why_not: str = "") -> list[Line]:
    """Return the question in at most `height` lines; the choices and the keys go last.

    `why_not` says why nothing of it can be done any more.
    """
    said = [row for text in dialog.question.lines for row in wrapped(text, width)]
    below = _detail(dialog, width, why_not)
    keys = wrapped(_keys(dialog), width, "dim")
    body = _name_line(dialog, width) if dialog.typing else _choices(dialog, width, height)
    parts = [said, body, below, keys]
    while sum(len(part) + 1 for part in parts if part) - 1 > height and any(parts[::2]):
        parts[0 if parts[0] else 2] = []  # first what was read already, then what it gains
    lines: list[Line] = []
    for part in parts:
        lines += [[], *part] if lines and part else part
    return lines[:height]


def _choices(dialog: Dialog, width: int, height: int) -> list[Line]:
    """Return one line for each choice; where there is no room for all, those around the cursor."""
    room = max(height - 2, _LEAST_CHOICES)
    first = min(max(dialog.at - room // 2, 0), max(len(dialog.question.choices) - room, 0))
    shown = list(enumerate(dialog.question.choices))[first : first + room]
    return [_choice(number, choice, dialog, width) for number, choice in shown]


def _choice(number: int, choice: Choice, dialog: Dialog, width: int) -> Line:
    here = number == dialog.at
    text = f"{'▸' if here else ' '} {number + 1} {choice.text}"
    aside = trial_figure(dialog.trials.get(number)) or ("" if here else choice.note)
    line: Line = [(text, "strong" if here else ""), (f"  {aside}" if aside else "", "dim")]
    return cut_line(line, width)


def _name_line(dialog: Dialog, width: int) -> list[Line]:
    names = dialog.question.names
    if not names:
        return wrapped("this run has no name that can be typed: nothing can be done here", width)
    asked = wrapped(f"type {names[0]} to {dialog.choice.text}:", width)
    return [*asked, [("> ", "dim"), (cut(dialog.typed, width - 3), "strong"), ("▏", "key")]]


def _detail(dialog: Dialog, width: int, why_not: str) -> list[Line]:
    """Return what is known of the choice under the cursor."""
    lines: list[Line] = []
    if why_not:
        lines += wrapped(f"not possible any more: {why_not}", width, "warn")
    if dialog.choice.note:
        lines += wrapped(dialog.choice.note, width)
    if told := trial_text(dialog.trials.get(dialog.at)):
        lines += wrapped(told, width)
    return lines


def _keys(dialog: Dialog) -> str:
    if dialog.typing:
        if dialog.typed in dialog.question.names:
            return "Enter does it · Esc leaves everything as it is"
        wrong = "not the name yet · " if dialog.typed else ""
        return f"{wrong}Esc leaves everything as it is"
    if len(dialog.question.choices) == 1:
        return "Esc closes"
    if dialog.only:
        return "y does it · Enter or Esc leaves everything as it is"
    return "↑ ↓ choose · Enter does it · Esc leaves everything as it is"
