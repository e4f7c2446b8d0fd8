"""Help: every key from the table of actions, with the reason where one cannot be used now."""

from __future__ import annotations

from memwatch.ui.actions import ACTIONS, Action
from memwatch.ui.deeds.offers import refusal
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, fit, wrapped

_KEY = 6


def help_lines(frame: Frame, width: int) -> list[Line]:
    """Return all actions: those that act on the agent first, then those that only look."""
    lines: list[Line] = []
    groups = (("act", "act on the agent (recorded)"), ("look", "look (never touch the agent)"))
    for group, title in groups:
        lines.append([(title, "title")])
        for action in ACTIONS:
            if action.group == group:
                lines += _action(action, frame, width)
        lines.append([])
    lines.append([(fit("^P", _KEY) + " ", "key"), ("all actions by name", "")])
    lines.append([])
    lines += _glyphs()
    return lines


def _action(action: Action, frame: Frame, width: int) -> list[Line]:
    off = refusal(action, frame.snapshot, view_only=frame.view_only)
    text = f"{action.help} – not now: {off}" if off else action.help
    rows = wrapped(text, max(width - _KEY - 1, 10), "greyed" if off else "")
    head = (fit(action.shown, _KEY) + " ", "greyed" if off else "key")
    return [[head, *rows[0]], *([(" " * (_KEY + 1), ""), *row] for row in rows[1:])]


def _glyphs() -> list[Line]:
    return [
        [("on the time axis", "title")],
        [("C", "mark"), (" full, ", "dim"), ("c", "mark"), (" incremental checkpoint  ", "dim"),
         ("p", "mark"), (" purge  ", "dim"), ("n", "note"), (" note  ", "dim")],
        [("z", "mark"), (" pause  ", "dim"), ("g", "mark"), (" memory given back  ", "dim"),
         ("k", "mark"), (" compaction  ", "dim"), ("×", "warn"), (" it had no effect", "dim")],
        [("!", "crit"), (" error  ", "dim"), ("R", "mark"), (" start or end  ", "dim"),
         ("▏", "dim"), (" new phase  ", "dim"), ("'", "strong"), (" peak in a column", "dim")],
    ]  # fmt: skip
