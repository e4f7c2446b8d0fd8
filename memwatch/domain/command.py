"""A request to act, from a person's key, a script or the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

CommandState = Literal[
    "proposed", "asked", "accepted", "running", "done", "refused", "failed", "expired", "unknown"
]

AGENT_STATES: Final[Mapping[str, CommandState]] = {
    "accepted": "accepted",
    "running": "running",
    "done": "done",
    "refused": "refused",
    "failed": "failed",
    "expired": "expired",
}
"""What an agent may say of a request."""
FINAL_STATES: frozenset[str] = frozenset({"done", "refused", "failed", "expired", "unknown"})


class Command(Struct, frozen=True, kw_only=True):
    """What is asked for. `op` is an operation of the agent, a hold, or one of the guard's own.

    Holds: `pause`, `read_only`; `resume`, `read_write` release them. The guard's own: `note`,
    `guard.stop`, `engine.mode`, `engine.approve`, `engine.decline`, `engine.reset`,
    `notify.test`.
    """

    op: str
    args: dict[str, Any] = {}
    origin: str = "operator"
    """Who asks: operator, engine, agent."""
    why: str = ""
    id: str = ""
    """Given by who asks when the same request may be handed over twice; else the guard names it."""
    by: str = ""
    """Which viewer: owner of the holds that it asks for, shown as "who"."""
    plan: str = ""
    """The plan that it is a step of."""
    dry_run: bool = False
    """Only say what would be done."""
    confirm: str = ""
    """What a person typed: the run's name, where the operation asks for it."""
    expect: dict[str, Any] = {}
    """What must be so for it to make sense, as `state.json` names it."""
    ttl_us: int | None = None


class CommandInfo(Struct, frozen=True, kw_only=True):
    """How far a request came. "Asked" is never shown as "done"."""

    id: str
    op: str
    state: CommandState
    asked_us: int
    changed_us: int
    origin: str = "operator"
    detail: str = ""
    by: str = ""
    why: str = ""
    plan: str = ""
    what: str = ""
    """Arguments in words: "purge workspace, expired first"."""
    dry_run: bool = False
    result: dict[str, Any] = {}
    """What the agent told with `done`; small, inert."""
