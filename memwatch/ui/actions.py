"""The one table of actions: key bindings, footer, help, command palette and README come from it.

Small letters and arrows only look; capital letters act on the agent, or say what the guard may do.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Group = Literal["look", "act"]

LEAK_MB_PER_MIN = 120
"""How fast the demo's switch makes it leak: WARN comes within about two minutes."""

PANELS = ("tiers", "growth", "acts", "recovery", "since", "procs", "log")
"""Panels in the order of their number keys."""


class Action(Struct, frozen=True, kw_only=True):
    """One thing a key does."""

    id: str
    """Names what the app does, up to a colon; the rest is an argument."""
    keys: tuple[str, ...]
    shown: str
    """The key as a person reads it."""
    label: str
    """Two or three words for the footer."""
    help: str
    group: Group = "look"
    op: str = ""
    """Operation of the agent that must be in `run.ops`; empty = the guard's own."""
    footer: int = 0
    """Place in the footer, lowest first; 0 = not there."""


def _panel(number: int, name: str, help_text: str) -> Action:
    label = f"panel {number}"
    return Action(
        id=f"panel:{name}", keys=(str(number),), shown=str(number), label=label, help=help_text
    )


def _act(
    key: str,
    name: str,
    label: str,
    help_text: str,
    op: str = "",
    footer: int = 0,
) -> Action:
    return Action(
        id=name,
        keys=(key,),
        shown=key,
        label=label,
        help=help_text,
        group="act",
        op=op,
        footer=footer,
    )


ACTIONS: tuple[Action, ...] = (
    _act(
        "C",
        "checkpoint",
        "checkpoint",
        "ask the agent for an incremental checkpoint",
        "checkpoint",
        footer=1,
    ),
    _act("F", "full", "full checkpoint", "ask the agent for a full checkpoint", "checkpoint"),
    _act(
        "P",
        "purge",
        "purge",
        "free memory in the agent: choose what goes, with what each would free",
        "purge",
        footer=2,
    ),
    _act("K", "compact", "compact", "ask the agent to compact its conversation", "compact"),
    _act(
        "Z",
        "pause",
        "pause",
        "let no new experiment begin; while one is held: choose which holds are released",
        "pause",
        footer=3,
    ),
    _act(
        "R",
        "read_only",
        "read-only",
        "let the agent change nothing; while one is held: choose which holds are released",
        "read_only",
        footer=4,
    ),
    _act(
        "X",
        "abort",
        "abort",
        "abort the experiment in progress, the agent lives on; the run's name is typed",
        "abort_experiment",
        footer=5,
    ),
    _act(
        "E",
        "end",
        "end run",
        "save the state and end the agent; the run's name is typed",
        "end_run",
    ),
    _act(
        "G",
        "engine",
        "guard",
        "choose what the guard may do by itself, or let it try again",
        footer=7,
    ),
    _act("Y", "approve", "let plan go", "let the plan go that the guard proposes"),
    _act("N", "decline", "decline plan", "decline the plan that the guard proposes"),
    _act(
        "L",
        "leak",
        "demo leak",
        f"make the demo leak {LEAK_MB_PER_MIN} MB a minute, or stop and release it",
        "leak",
        footer=6,
    ),
    Action(
        id="note",
        keys=("n",),
        shown="n",
        label="note",
        help="put a note of one line on the time axis; it is recorded",
        group="act",
        footer=8,
    ),
    _panel(1, "tiers", "memory by tier over time"),
    _panel(2, "growth", "growth of each tier, of what is unaccounted for, and of the tree"),
    _panel(3, "acts", "plans, holds and requests; what was done, what it freed, whether it held"),
    _panel(4, "recovery", "if it crashed now: how long until it is back, and what would be lost"),
    _panel(5, "since", "what happened since the last viewer left, alerts, what the past teaches"),
    _panel(6, "procs", "the process tree"),
    _panel(7, "log", "what happened, newest last"),
    Action(
        id="checkpoints",
        keys=("k",),
        shown="k",
        label="checkpoints",
        help="all checkpoints: kind, size, complete or not, what is due, bloat, what may go",
        footer=12,
    ),
    Action(
        id="interventions",
        keys=("i",),
        shown="i",
        label="interventions",
        help="all interventions by the bytes that they really freed; s sorts by another figure",
        footer=13,
    ),
    Action(id="next_panel:1", keys=("tab",), shown="Tab", label="next panel", help="next panel"),
    Action(
        id="next_panel:-1",
        keys=("shift+tab",),
        shown="⇧Tab",
        label="former panel",
        help="the panel before",
    ),
    Action(
        id="one_panel",
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
        footer=9,
    ),
    Action(
        id="zoom_out",
        keys=("x",),
        shown="x",
        label="zoom out",
        help="show a longer span of time",
    ),
    Action(
        id="pan_back",
        keys=("left",),
        shown="←",
        label="back",
        help="look further back in time; recording goes on",
        footer=10,
    ),
    Action(
        id="pan_forward",
        keys=("right",),
        shown="→",
        label="forward",
        help="look nearer to now",
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
        footer=11,
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
    Action(
        id="policy",
        keys=("p",),
        shown="p",
        label="policy",
        help="thresholds in force and why, what the guard may do, its plans, why it waits",
    ),
    Action(id="mouse", keys=("m",), shown="m", label="mouse", help="mouse on or off"),
    Action(
        id="redraw",
        keys=("ctrl+l",),
        shown="^L",
        label="redraw",
        help="draw the whole screen again, when something else wrote on it",
    ),
    Action(id="help", keys=("question_mark",), shown="?", label="help", help="all keys", footer=90),
    Action(
        id="quit",
        keys=("q",),
        shown="q",
        label="quit",
        help="leave; the guard goes on watching",
        footer=91,
    ),
)
"""Every action; the order is that of help and README."""

BY_ID = {action.id: action for action in ACTIONS}
