"""What keys ask of the agent. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memwatch.domain.command import Command
from memwatch.domain.control import Hold, Suggestion
from memwatch.domain.operations import ENGINE
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.domain.units import duration_text
from memwatch.domain.wording import op_text
from memwatch.ui.actions import LEAK_MB_PER_MIN
from memwatch.ui.deeds.choices import LEAVE, Request, choice, command, names_of, of_run
from memwatch.ui.deeds.dialog import Choice, Question
from memwatch.ui.deeds.offers import holds_of
from memwatch.ui.words import hold_words, owner_words

TYPED_S = 60.0
"""Experiments shorter than this may end while a name is typed."""


def note(text: str) -> Request:
    """Put a note on the time axis."""
    return Request(command=command("note", "note", text=inert(text.strip(), 160)), sent="note sent")


def checkpoint(_snapshot: Snapshot) -> Request:
    """Ask for what changed since the newest checkpoint."""
    asked = command("checkpoint", "checkpoint", kind="incremental")
    return Request(command=asked, sent="checkpoint asked for")


def full(_snapshot: Snapshot) -> Request:
    """Ask for the whole state."""
    return Request(
        command=command("full", "checkpoint", kind="full"), sent="full checkpoint asked for"
    )


def compact(_snapshot: Snapshot) -> Request:
    """Ask for a shorter conversation."""
    return Request(command=command("compact", "compact"), sent="compaction asked for")


def leak(snapshot: Snapshot) -> Request:
    """Switch to the other of what the agent itself says: other viewers switch it too."""
    on = not snapshot.run.switches.get("leak")
    asked = command("leak", "leak", mb_per_min=LEAK_MB_PER_MIN if on else 0)
    return Request(command=asked, sent=f"demo leak: {'on' if on else 'off'} asked for")


def purge(snapshot: Snapshot) -> Question:
    """Ask what is to go; what is suggested stands first."""
    offers: list[tuple[str, dict[str, Any]]] = [("purge", {"how": "expired"})]
    offers += [("purge", {"tier": tier.name}) for tier in snapshot.tiers[:5]]
    offers.append(("purge", {}))
    if "reclaim" in snapshot.run.ops:
        offers.append(("reclaim", {}))
    hint = snapshot.suggestion
    if hint is not None and hint.op in ("purge", "reclaim"):
        suggested = (hint.op, hint.args)
        offers = [suggested, *(offer for offer in offers if offer != suggested)]
    return Question(
        action="purge",
        title="free memory",
        lines=(
            f"asked of {of_run(snapshot)}; done at its next safe point",
            "nothing irreplaceable is lost: what leaves memory lies on disk, or is made again",
        ),
        choices=(LEAVE, *(_freeing(op, args, hint) for op, args in offers)),
        names=names_of(snapshot),
    )


def _freeing(op: str, args: dict[str, Any], hint: Suggestion | None) -> Choice:
    suggested = hint is not None and (hint.op, hint.args) == (op, args)
    notes = [_FREES.get(op, "")]
    if hint is not None and suggested:
        notes = [f"suggested: {inert(hint.text, 100)}", inert(hint.basis, 80)]
    return choice(
        Command(op=op, args=args, why=f"key P{', as suggested' if suggested else ''}"),
        note="; ".join(note for note in notes if note),
        trial=op == "purge",
    )


_FREES = {"reclaim": "caches are dropped, garbage is collected, the allocator gives pages back"}


def pause(snapshot: Snapshot) -> Question:
    """Ask whether to pause, or whose pause is to end."""
    lines = (
        "no new experiment begins; the one in progress goes on to its end",
        "memory stops growing then, a pause frees nothing by itself",
    )
    return _hold("pause", "resume", lines, snapshot)


def read_only(snapshot: Snapshot) -> Question:
    """Ask whether to stop all changes, or whose hold is to end."""
    lines = (
        "the agent changes nothing in its tiers, and no new experiment begins",
        "nothing is freed by it",
    )
    return _hold("read_only", "read_write", lines, snapshot)


_BEGIN = {"pause": "pause the agent", "read_only": "make the agent read-only"}
_KEPT = "until you release it: it outlives this viewer, the guard and a new start of the agent"


def _hold(op: str, release: str, lines: Sequence[str], snapshot: Snapshot) -> Question:
    held = holds_of(op, snapshot)
    if not held:
        begin = choice(command(op, op), note=_KEPT, text=_BEGIN[op])
        asked = f"asked of {of_run(snapshot)}"
        return Question(action=op, title=op_text(op), lines=(asked, *lines), choices=(LEAVE, begin))
    owners = {hold.owner: hold for hold in held}
    choices = [LEAVE]
    choices += [_release(op, release, hold, snapshot) for hold in list(owners.values())[:6]]
    if len(owners) > 1:
        everyone = f"{op_text(release)}: release all {len(held)} holds, whoever holds"
        choices.append(choice(command(op, release, all=True), text=everyone))
    if all(owner == ENGINE for owner in owners):
        choices.append(choice(command(op, op), note=_KEPT, text="hold it yourself as well"))
    return Question(
        action=op,
        title=op_text(release),
        lines=(f"{of_run(snapshot)}: free once no hold remains; only what you choose is released",),
        choices=tuple(choices),
    )


def _release(op: str, release: str, hold: Hold, snapshot: Snapshot) -> Choice:
    return choice(
        command(op, release, owner=hold.owner),
        text=f"{op_text(release)}: release the hold of {owner_words(hold.owner)}",
        note=hold_words(hold, snapshot.t_us),
    )


def abort(snapshot: Snapshot) -> Question:
    """Ask for the name of the run, then abort the experiment that is shown, and no later one.

    Where experiments end faster than a name is typed, it is the one in progress by then.
    """
    run, mean_s = snapshot.run, snapshot.recovery.mean_experiment_s
    if mean_s is not None and mean_s < TYPED_S:
        experiment, expect = "the experiment in progress", {}
        which = f"the one that the agent is at by then (they take {duration_text(mean_s)})"
    else:
        experiment, expect = f"experiment {run.experiment}", {"experiment": run.experiment}
        which = "a later one is not hit: the agent refuses when this one has ended"
    title = f" ({inert(run.experiment_title, 60)})" if expect and run.experiment_title else ""
    asked = Command(op="abort_experiment", args={"save": "best_effort"}, why="key X", expect=expect)
    return Question(
        action="abort",
        title=f"abort {experiment}",
        lines=(
            f"asked of {of_run(snapshot)}",
            f"{experiment}{title} is lost, the agent lives on; a checkpoint is tried after it",
            which,
        ),
        choices=(LEAVE, choice(asked, text=f"abort {experiment}")),
        names=names_of(snapshot),
    )


def end(snapshot: Snapshot) -> Question:
    """Ask for the name of the run, then end it."""
    risk = snapshot.recovery.at_risk_s
    lost = "" if risk is None else f" (the newest checkpoint is {duration_text(risk)} old)"
    return Question(
        action="end",
        title="end the run",
        lines=(
            f"asked of {of_run(snapshot)}",
            f"the agent saves its state and exits{lost}; nothing starts it again",
            "it goes on if its state cannot be saved",
        ),
        choices=(
            LEAVE,
            choice(command("end", "end_run", save="required"), text="end the run"),
        ),
        names=names_of(snapshot),
    )
