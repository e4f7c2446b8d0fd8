"""The table from an action to what it asks for: a request at once, or a question first. Pure.

Confirmations are those of the contracts: none for a checkpoint, one for purge, pause, read-only
and their release, the run's name for an abort, an end, and a purge of `verified`.
"""

from __future__ import annotations

from collections.abc import Callable

from memwatch.domain.snapshot import Snapshot
from memwatch.ui.deeds import agent, guard
from memwatch.ui.deeds.choices import Request
from memwatch.ui.deeds.dialog import Question

Deed = Request | Question


def deed(action: str, snapshot: Snapshot) -> Deed:
    """Return what the key of an action asks for; it was looked at that it can be used."""
    return DEEDS[action](snapshot)


DEEDS: dict[str, Callable[[Snapshot], Deed]] = {
    "checkpoint": agent.checkpoint,
    "full": agent.full,
    "purge": agent.purge,
    "compact": agent.compact,
    "pause": agent.pause,
    "read_only": agent.read_only,
    "abort": agent.abort,
    "end": agent.end,
    "engine": guard.engine,
    "approve": guard.approve,
    "decline": guard.decline,
    "leak": agent.leak,
}
