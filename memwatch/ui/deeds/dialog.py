"""A question to a person before something is asked of the agent or the guard. Pure.

The first choice leaves everything as it is, and is where the cursor stands at first: a key hit by
accident, twice even, does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from memwatch.domain.command import FINAL_STATES, Command, CommandInfo
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text

NAME_CELLS = 60
"""Most characters that are taken for a name."""


class Choice(Struct, frozen=True, kw_only=True):
    """One thing that can be chosen."""

    text: str
    command: Command | None = None
    """None: leave everything as it is."""
    note: str = ""
    """What it gained before, or how it ends."""
    sent: str = ""
    """What is said when it was handed over: asked, never done."""
    typed: bool = False
    """It is done once the run's name was typed."""
    trial: bool = False
    """The agent can say beforehand what it would do."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked of the person."""

    action: str
    """Of the table; whether it can still be used is looked at again before it is done."""
    title: str
    lines: tuple[str, ...] = ()
    """What will be asked, of which run, and how it ends."""
    choices: tuple[Choice, ...]
    names: tuple[str, ...] = ()
    """Names that may be typed, the one that is shown first."""


class Dialog(Struct, frozen=True, kw_only=True):
    """A question as it stands on the screen."""

    question: Question
    at: int = 0
    typing: bool = False
    typed: str = ""
    trials: Mapping[int, CommandInfo | str] = {}
    """By choice: how far the question to the agent is, or why it could not be asked; empty while
    it is on its way."""

    @property
    def choice(self) -> Choice:
        """The one under the cursor."""
        return self.question.choices[self.at]

    @property
    def only(self) -> bool:
        """There is one thing to do, or to leave."""
        return len(self.question.choices) == 2

    @property
    def untried(self) -> bool:
        """The choice under the cursor is one that the agent was not yet asked about."""
        return self.choice.trial and self.at not in self.trials


class Pressed(NamedTuple):
    """What a key did."""

    dialog: Dialog
    over: bool = False
    chosen: Choice | None = None
    """What is to be done; None when it is over: leave everything."""


def opened(question: Question) -> Dialog:
    """Return a question as it is first shown; with nothing to choose, a name is typed at once."""
    dialog = Dialog(question=question)
    if dialog.only and question.choices[1].typed:
        return replace(dialog, at=1, typing=True)
    return dialog


def pressed(dialog: Dialog, key: str, character: str | None = None) -> Pressed:
    """Return what a key does; `character` is what it prints, None for keys that print nothing."""
    if key == "escape":
        return Pressed(dialog, over=True)
    if dialog.typing:
        return _typed(dialog, key, character)
    last = len(dialog.question.choices) - 1
    if key == "enter":
        return _taken(dialog)
    if key == "q" or (key == "n" and dialog.only):
        return Pressed(dialog, over=True)
    if key == "y" and dialog.only:
        return _taken(replace(dialog, at=1))
    if key in _MOVES:
        return Pressed(replace(dialog, at=min(max(dialog.at + _MOVES[key], 0), last)))
    if key.isascii() and key.isdigit() and 0 < int(key) <= last + 1:
        return Pressed(replace(dialog, at=int(key) - 1))
    return Pressed(dialog)


_MOVES = {"up": -1, "k": -1, "shift+tab": -1, "down": 1, "j": 1, "tab": 1}


def _taken(dialog: Dialog) -> Pressed:
    if dialog.choice.command is None:
        return Pressed(dialog, over=True)
    if dialog.choice.typed:
        return Pressed(replace(dialog, typing=True, typed=""))
    return Pressed(dialog, over=True, chosen=dialog.choice)


def _typed(dialog: Dialog, key: str, character: str | None) -> Pressed:
    if key == "enter":
        command = dialog.choice.command
        if command is None or dialog.typed not in dialog.question.names:
            return Pressed(dialog)
        confirmed = replace(command, confirm=dialog.typed)
        return Pressed(dialog, over=True, chosen=replace(dialog.choice, command=confirmed))
    if key == "backspace":
        return Pressed(replace(dialog, typed=dialog.typed[:-1]))
    if key == "ctrl+u":
        return Pressed(replace(dialog, typed=""))
    return Pressed(pasted(dialog, character or ""))


def pasted(dialog: Dialog, text: str) -> Dialog:
    """Return the dialog with text behind what was typed, as far as it can be part of a name."""
    if not dialog.typing:
        return dialog
    printable = "".join(letter for letter in text if letter.isprintable())
    return replace(dialog, typed=(dialog.typed + printable)[:NAME_CELLS])


# -- what the agent would do ---------------------------------------------------------------------


def tried(dialog: Dialog, at: int, found: CommandInfo | str) -> Dialog:
    """Return the dialog with how far the question about a choice is."""
    return replace(dialog, trials={**dialog.trials, at: found})


def is_open(trial: CommandInfo | str | None) -> bool:
    """Return whether an answer of the agent is still to come."""
    return isinstance(trial, CommandInfo) and trial.state not in FINAL_STATES


def trial_figure(trial: CommandInfo | str | None) -> str:
    """Return what would be freed, in a few characters; nothing while that is not known."""
    freed = trial.result.get("freed_bytes") if isinstance(trial, CommandInfo) else None
    known = isinstance(freed, int | float) and not is_open(trial)
    return f"{bytes_text(freed)} would be freed" if known else ""


def trial_text(trial: CommandInfo | str | None) -> str:
    """Return what the agent says it would do, in words.

    >>> trial_text("no guard"), trial_text(None)
    ('the agent could not be asked: no guard', '')
    """
    if trial is None:
        return ""
    if trial == "" or is_open(trial):
        return "the agent is being asked what it would free…"
    if isinstance(trial, str):
        return f"the agent could not be asked: {inert(trial, 100)}"
    if trial.state != "done":
        return f"the agent does not say ({trial.state}): {inert(trial.detail, 100)}"
    freed, entries = trial.result.get("freed_bytes"), trial.result.get("entries")
    if not isinstance(freed, int | float):
        return inert(trial.detail, 100) or "the agent says that it can"
    if not freed:
        return "the agent says: nothing would be freed now"
    text = f"the agent says it would free {bytes_text(freed)}"
    if isinstance(entries, int):
        text += f", {entries} entr{'y' if entries == 1 else 'ies'}"
    refused = trial.result.get("refused")
    return f"{text} ({inert(str(refused), 80)})" if refused else text
