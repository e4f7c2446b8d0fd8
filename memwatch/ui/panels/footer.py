"""The last lines: what is done or suggested; keys, or a passing word; and what we cost."""

from __future__ import annotations

from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import bytes_text
from memwatch.ui.actions import ACTIONS, BY_ID, PANELS, Action
from memwatch.ui.deeds.offers import is_offered, label_of, refusal
from memwatch.ui.format import percent_text, speed_text
from memwatch.ui.frame import Frame
from memwatch.ui.line import Line, cut, cut_line, joined, spread, width_of
from memwatch.ui.panels.acts import command_line, recent
from memwatch.ui.words import plan_words

_TOGETHER = {"zoom_in": "zoom", "pan_back": "pan"}
"""Keys that stand side by side with one word: the label of the first of the two."""
_SECOND = {"zoom_in": "zoom_out", "pan_back": "pan_forward"}
_LAST_TO_GO = (
    "quit", "help", "checkpoint", "full", "purge", "pause", "read_only", "abort", "leak", "engine",
    "checkpoints", "interventions", "freeze", "zoom_in", "pan_back", "note",
)  # fmt: skip


def footer(frame: Frame, width: int) -> Line:
    """Return the keys, or what there is to say; those in brackets cannot be used now."""
    word = _word(frame)
    cost = each_cost(frame) if width >= 150 else own_cost(frame) if width >= 110 else []
    if word:
        return spread([(" ", ""), *word], cost, width)
    offered = _offered(frame)
    room = width - width_of(cost)
    for gone in range(len(_LAST_TO_GO)):
        kept = _LAST_TO_GO[: len(_LAST_TO_GO) - gone]
        keys = [_key(one, frame) for one in offered if one.id in kept]
        line: Line = [(" ", ""), *joined(keys, ("  ", ""))]
        if width_of(line) < room:  # one cell stays between them
            return spread(line, cost, width)
    return cut_line(line, width)


def _offered(frame: Frame) -> list[Action]:
    found = [a for a in ACTIONS if a.footer and is_offered(a, frame.snapshot)]
    found.sort(key=lambda action: action.footer)
    called = called_for(frame.snapshot)
    if called == "full":  # a key that is not in the footer, unless it is what helps
        found = [BY_ID[called] if action.id == "checkpoint" else action for action in found]
    return found


def called_for(snapshot: Snapshot | None) -> str:
    """Return the action of the checkpoint that brings a crash under its budget, where one does."""
    budget = None if snapshot is None else snapshot.recovery.budget
    if budget is None or not budget.over or budget.checkpoint is None:
        return ""
    return "full" if budget.checkpoint == "full" else "checkpoint"


def _key(action: Action, frame: Frame) -> Line:
    off = refusal(action, frame.snapshot, view_only=frame.view_only)
    second = _SECOND.get(action.id)
    shown = f"{action.shown} {BY_ID[second].shown}" if second else action.shown
    label = _TOGETHER.get(action.id) or label_of(action, frame.snapshot)
    if off:
        return [(f"({shown} {label})", "greyed")]
    if action.id == called_for(frame.snapshot):
        return [(f"{shown} {label}!", "notice")]
    return [(shown, "key"), (f" {label}", "warn" if label.endswith(": on") else "dim")]


def _word(frame: Frame) -> Line:
    """Return what was just said, or how far a request is that the acts panel does not show."""
    if frame.said:
        return [(frame.said, "strong")]
    if frame.snapshot is None:
        return []
    commands = recent(frame.snapshot)
    return command_line(commands[0], frame.snapshot.t_us) if commands else []


def listing_footer(frame: Frame, hint: str, width: int) -> Line:
    """Return the keys of a long table, or what there is to say."""
    if word := _word(frame):
        return cut_line([(" ", ""), *word], width)
    asked = BY_ID[called_for(frame.snapshot) or "checkpoint"]
    act = [_key(asked, frame)] if is_offered(asked, frame.snapshot) else []
    own: list[Line] = [[(hint[:1], "key"), (hint[1:], "dim")]] if hint else []
    look: list[Line] = [[(key, "key"), (f" {label}", "dim")] for key, label in _LISTING_KEYS]
    keys = [*look[:2], *own, *act, *look[2:]]
    while keys and width_of(joined(keys, ("  ", ""))) >= width:
        keys.pop()
    return [(" ", ""), *joined(keys, ("  ", ""))]


_LISTING_KEYS = (("q", "back"), ("⏎", "evidence"), ("↑↓", "move"), ("?", "help"))
_KEY_OF = {"purge": "P", "reclaim": "P", "checkpoint": "C"}


def next_step(frame: Frame, width: int, *, advice: bool = True) -> list[Line]:
    """Return what the guard is at, else what a person could do, else the best of the advice.

    Without `advice` where a panel gives it.
    """
    snapshot = frame.snapshot
    if snapshot is None or frame.past:
        return []
    plan, hint = snapshot.engine.plan, snapshot.suggestion
    if plan is not None and plan.in_flight:
        line: Line = [(f" guard: {plan_words(plan)}", "strong"), (f"  {inert(plan.why)}", "dim")]
    elif hint is not None:
        key = _KEY_OF.get(hint.op, "")
        line = [(" suggested: ", "dim"), (f"{key} ", "key"), (inert(hint.text, 120), "")]
        line.append((f"  ({inert(hint.basis, 80)})" if hint.basis else "", "dim"))
    elif snapshot.engine.waiting and snapshot.level != "normal":
        line = [(f" guard waits: {inert(snapshot.engine.waiting)}", "dim")]
    elif advice and snapshot.advice:
        line = [(" advice: ", "dim"), (inert(snapshot.advice[0].text, 200), "")]
    else:
        return []
    return [cut_line(line, width)]


def tabs(frame: Frame, width: int) -> Line:
    """Return the line that names the panels where one is shown at a time."""
    line: Line = []
    for number, name in enumerate(PANELS, 1):
        front = name == frame.panel
        text = f"[{number} {name}]" if front else f" {number} {name} "
        line.append((text, "strong" if front else "dim"))
    cost = own_cost(frame)
    return spread(line, cost, width) if width_of([*line, *cost]) < width else cut_line(line, width)


def each_cost(frame: Frame) -> Line:
    """Return what guard and viewer cost, each for itself."""
    own, guard = frame.own, frame.snapshot.guard.own if frame.snapshot else None
    parts: list[str] = []
    if guard is not None and guard.rss_bytes is not None:
        parts.append(f"guard {bytes_text(guard.rss_bytes)} {percent_text(guard.cpu_percent)}")
    if own.rss_bytes is not None:
        viewer = f"viewer {bytes_text(own.rss_bytes)} {percent_text(own.cpu_percent)}"
        parts.append(f"{viewer} {speed_text(own.terminal_bytes_per_s)}")
    return [("  ".join(parts) + " ", "dim")] if parts else []


def own_cost(frame: Frame) -> Line:
    """Return what guard and viewer cost: memory of both, processor time, bytes to the terminal."""
    own = frame.own
    guard = frame.snapshot.guard.own if frame.snapshot else None
    rss = [guard.rss_bytes if guard else None, own.rss_bytes]
    cpu = [guard.cpu_percent if guard else None, own.cpu_percent]
    known = [amount for amount in rss if amount is not None]
    if not known:
        return []
    busy = [percent for percent in cpu if percent is not None]
    parts = [f"us {bytes_text(sum(known))}", percent_text(sum(busy)) if busy else ""]
    parts.append(speed_text(own.terminal_bytes_per_s) if own.terminal_bytes_per_s else "")
    return [(cut(" ".join(part for part in parts if part), 40) + " ", "dim")]
