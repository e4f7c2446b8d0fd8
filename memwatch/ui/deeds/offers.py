"""What can be used now, why not, and how it is called: from the snapshot only. Pure."""

from __future__ import annotations

from memwatch.domain.control import Hold
from memwatch.domain.plan import Plan
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.domain.text import inert
from memwatch.ui.actions import Action

HOLDS = {"pause": ("pause agent", "resume"), "read_only": ("read-only", "read-write")}
"""By hold: the words of its key while the agent is free, and while it is held."""


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
        return "" if action.id == "note" else f"the run is over ({snapshot.run.state})"
    if action.op and action.op not in snapshot.run.ops:
        return _lacking(action.op, snapshot)
    if action.id in ("approve", "decline") and proposed(snapshot) is None:
        return "no plan waits for a person"
    if action.id == "abort" and snapshot.run.experiment is None:
        return "no experiment is in progress"
    return ""


def _lacking(op: str, snapshot: Snapshot) -> str:
    why = inert(snapshot.engine.missing.get(op, ""), 100)
    if why:
        return why
    takes = ", ".join(inert(name, 20) for name in snapshot.run.ops) or "nothing"
    return f"the agent does not take {op!r}; it takes {takes}"


def is_offered(action: Action, snapshot: Snapshot | None) -> bool:
    """Return whether an action is worth a place in the footer.

    The leak is the demo's alone; of a checkpoint store nothing can be asked, ever.
    """
    if action.op and snapshot is not None and snapshot.checkpoints.source != "native":
        return False
    return action.id != "leak" or (snapshot is not None and "leak" in snapshot.run.ops)


def label_of(action: Action, snapshot: Snapshot | None) -> str:
    """Return the words of an action; those of a switch say how it stands, as the agent tells."""
    if snapshot is None:
        return action.label
    if action.op in HOLDS:
        return HOLDS[action.op][bool(holds_of(action.op, snapshot))]
    stated = snapshot.run.switches.get(action.op) if action.op else None
    if stated is None:
        return action.label
    return f"{action.label} {stated:g}/min: on" if stated else f"{action.label}: off"


def holds_of(op: str, snapshot: Snapshot) -> tuple[Hold, ...]:
    """Return the holds of a kind, as the agent says that they are in force, or as we keep them."""
    return tuple(hold for hold in snapshot.holds if hold.op == op)


def proposed(snapshot: Snapshot) -> Plan | None:
    """Return the plan that waits for a person."""
    plan = snapshot.engine.plan
    return plan if plan is not None and plan.state == "proposed" and not plan.dry else None
