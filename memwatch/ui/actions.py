"""The one table of actions: key bindings, footer, help, command palette and README come from it.

Small letters and arrows only look; capital letters act on the agent.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memwatch.domain.command import Command
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert

Group = Literal["look", "act"]

LEAK_MB_PER_MIN = 120
"""How fast the demo's switch makes it leak: WARN comes within about two minutes."""

PANELS = ("tiers", "growth", "acts", "recovery", "procs", "log")
"""Panels in the order of their number keys."""


class Action(Struct, frozen=True, kw_only=True):
    """One thing a key does."""

    id: str
    """Also the name of the app's `action_*` method, up to a colon; the rest is its argument."""
    keys: tuple[str, ...]
    shown: str
    """The key as a person reads it."""
    label: str
    """Two or three words for the footer."""
    help: str
    group: Group = "look"
    confirm: Literal["none", "once", "name"] = "none"
    """What is asked before it acts."""
    op: str = ""
    """Operation of the agent that must be in `run.ops`; empty = the guard's own."""
    footer: int = 0
    """Place in the footer, lowest first; 0 = not there."""


def _panel(number: int, name: str, help_text: str) -> Action:
    label = f"panel {number}"
    return Action(
        id=f"panel:{name}", keys=(str(number),), shown=str(number), label=label, help=help_text
    )


ACTIONS: tuple[Action, ...] = (
    Action(
        id="checkpoint",
        keys=("C",),
        shown="C",
        label="checkpoint",
        help="ask the agent for an incremental checkpoint",
        group="act",
        op="checkpoint",
        footer=1,
    ),
    Action(
        id="leak",
        keys=("L",),
        shown="L",
        label="demo leak",
        help=f"make the demo leak {LEAK_MB_PER_MIN} MB a minute, or stop and release it",
        group="act",
        op="leak",
        footer=2,
    ),
    Action(
        id="note",
        keys=("n",),
        shown="n",
        label="note",
        help="put a note of one line on the time axis; it is recorded",
        group="act",
        footer=3,
    ),
    _panel(1, "tiers", "memory by tier over time"),
    _panel(2, "growth", "growth of each tier, of what is unaccounted for, and of the tree"),
    _panel(3, "acts", "purges and checkpoints: before, after, freed"),
    _panel(4, "recovery", "what a recovery would read and replay if it crashed now"),
    _panel(5, "procs", "the process tree"),
    _panel(6, "log", "what happened, newest last"),
    Action(id="next_panel:1", keys=("tab",), shown="Tab", label="next panel", help="next panel"),
    Action(
        id="next_panel:-1",
        keys=("shift+tab",),
        shown="⇧Tab",
        label="former panel",
        help="the panel before",
    ),
    Action(
        id="full",
        keys=("f",),
        shown="f",
        label="one panel",
        help="give the panel in front all the room, or go back to all panels",
    ),
    Action(
        id="zoom_in",
        keys=("z",),
        shown="z",
        label="zoom in",
        help="show a shorter span of time",
        footer=4,
    ),
    Action(
        id="zoom_out",
        keys=("x",),
        shown="x",
        label="zoom out",
        help="show a longer span of time",
        footer=5,
    ),
    Action(
        id="pan_back",
        keys=("left",),
        shown="←",
        label="back",
        help="look further back in time; recording goes on",
        footer=6,
    ),
    Action(
        id="pan_forward",
        keys=("right",),
        shown="→",
        label="forward",
        help="look nearer to now",
        footer=7,
    ),
    Action(
        id="to_now",
        keys=("escape", "end"),
        shown="Esc",
        label="now",
        help="back to now, moving (also End)",
    ),
    Action(
        id="freeze",
        keys=("space",),
        shown="space",
        label="freeze",
        help="let the screen stand still, or move on; never the agent",
        footer=8,
    ),
    Action(
        id="slower",
        keys=("minus",),
        shown="-",
        label="slower",
        help="fewer updates: fewer bytes over a slow line",
    ),
    Action(
        id="faster", keys=("plus", "equals_sign"), shown="+", label="faster", help="more updates"
    ),
    Action(
        id="evidence",
        keys=("enter",),
        shown="⏎",
        label="evidence",
        help="where the figures of the panel in front come from",
    ),
    Action(id="mouse", keys=("m",), shown="m", label="mouse", help="mouse on or off"),
    Action(
        id="redraw",
        keys=("ctrl+l",),
        shown="^L",
        label="redraw",
        help="draw the whole screen again, when something else wrote on it",
    ),
    Action(id="help", keys=("question_mark",), shown="?", label="help", help="all keys", footer=9),
    Action(
        id="quit",
        keys=("q",),
        shown="q",
        label="quit",
        help="leave; the guard goes on watching",
        footer=10,
    ),
)
"""Every action; the order is that of help and README."""

BY_ID = {action.id: action for action in ACTIONS}


def refusal(action: Action, snapshot: Snapshot | None, *, view_only: bool) -> str:
    """Return why an action cannot be used now; empty when it can.

    An action that acts needs a viewer that may, a guard that answers, a run that lives, and an
    agent that takes this operation.
    """
    if action.group == "look":
        return ""
    if view_only:
        return "this viewer was opened with --view, it cannot act"
    if snapshot is None:
        return "no guard yet"
    if snapshot.run.state in PAST:
        return f"the run is over ({snapshot.run.state})" if action.op else ""
    if action.op and action.op not in snapshot.run.ops:
        takes = ", ".join(inert(op, 20) for op in snapshot.run.ops) or "nothing"
        return f"the agent does not take {action.op!r}; it takes {takes}"
    return ""


def is_offered(action: Action, snapshot: Snapshot | None) -> bool:
    """Return whether an action is worth a place in the footer: the leak is the demo's alone."""
    return action.id != "leak" or (snapshot is not None and "leak" in snapshot.run.ops)


def label_of(action: Action, snapshot: Snapshot | None) -> str:
    """Return the words of an action; those of a switch say how it stands, as the agent tells."""
    stated = snapshot.run.switches.get(action.op) if snapshot and action.op else None
    if stated is None:
        return action.label
    return f"{action.label} {stated:g}/min: on" if stated else f"{action.label}: off"


def checkpoint_command() -> Command:
    """Ask for an incremental checkpoint."""
    return Command(op="checkpoint", args={"kind": "incremental"}, why="key C")


def leak_command(*, on: bool) -> Command:
    """Switch the demo's leak."""
    return Command(op="leak", args={"mb_per_min": LEAK_MB_PER_MIN if on else 0}, why="key L")


def note_command(text: str) -> Command:
    """Put a note on the time axis."""
    return Command(op="note", args={"text": inert(text.strip(), 160)}, why="key n")
