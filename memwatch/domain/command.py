"""A request to act, from a person's key or a script."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

CommandState = Literal[
    "proposed", "asked", "accepted", "running", "done", "refused", "failed", "expired", "unknown"
]

FINAL_STATES: frozenset[str] = frozenset({"done", "refused", "failed", "expired", "unknown"})


class Command(Struct, frozen=True, kw_only=True):
    """What is asked for. `op` is an operation of the agent, or `note`, or `guard.stop`."""

    op: str
    args: dict[str, Any] = {}
    origin: str = "operator"
    """Who asks: operator, engine, agent."""
    why: str = ""


class CommandInfo(Struct, frozen=True, kw_only=True):
    """How far a request came. "Asked" is never shown as "done"."""

    id: str
    op: str
    state: CommandState
    asked_us: int
    changed_us: int
    origin: str = "operator"
    detail: str = ""
