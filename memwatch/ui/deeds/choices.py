"""What deeds are made of: requests, choices, and the names of a run. Pure."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from msgspec import Struct

from memwatch.domain.command import Command
from memwatch.domain.operations import must_be_named
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.wording import request_text
from memwatch.ui.actions import BY_ID
from memwatch.ui.deeds.dialog import NAME_CELLS, Choice

LEAVE = Choice(text="leave everything as it is")


class Request(Struct, frozen=True, kw_only=True):
    """Something that is handed over without asking first."""

    command: Command
    sent: str
    """What is said then: asked, never done."""


def command(action: str, op: str, /, **args: Any) -> Command:
    """Return a command that names the key it came by."""
    return Command(op=op, args=args, why=f"key {BY_ID[action].shown}")


def choice(command: Command, *, note: str = "", trial: bool = False, text: str = "") -> Choice:
    """Return a choice that hands a command over, in its own words unless others are given."""
    words = text or request_text(command.op, command.args)
    return Choice(
        text=words,
        command=command,
        note=note,
        sent=f"{words}: asked for",
        typed=must_be_named(command.op, command.args),
        trial=trial,
    )


def names_of(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the names of a run that may be typed: its id, as the header shows it, its directory.

    One that nobody could type is left out.
    """
    run = snapshot.run
    names = dict.fromkeys((run.id, PurePath(run.path).name))
    return tuple(
        name
        for name in names
        if name.isprintable() and name == name.strip() and 0 < len(name) <= NAME_CELLS
    )


def of_run(snapshot: Snapshot) -> str:
    """Return which run, by the name that may be typed."""
    run = snapshot.run
    return f"run {inert((*names_of(snapshot), run.id)[0], 60)}, pid {run.pid}"
