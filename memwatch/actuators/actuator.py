"""How the guard reaches an agent: one implementation per way of control.

The ledger knows requests and their states; an actuator knows how to hand one over and where its
answer is found. Source: D6; control, 1 and 2.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from memwatch.domain.command import Command, CommandState
from memwatch.domain.control import Hold
from memwatch.wal.spool_format import AgentState

Guarantee = Literal["A", "K", "B", "–"]
"""A: the agent acknowledges · K: the kernel enforces · B: best effort, to be observed · – none."""


class Offer(Struct, frozen=True, kw_only=True):
    """Whether an operation can be asked for, and what its answer is worth."""

    guarantee: Guarantee = "A"
    why_not: str = ""
    """Why it cannot be asked for; empty when it can."""
    dry_runs: bool = False


class Answer(Struct, frozen=True, kw_only=True):
    """What is known of a request."""

    state: CommandState
    detail: str = ""
    result: dict[str, Any] = {}


class Actuator(Protocol):
    """One way of control. Thread-safe; calls may take a moment, none waits for the agent."""

    @property
    def name(self) -> str:
        """How it reaches the agent, for people: `control spool`."""
        ...

    def offers(self) -> Mapping[str, Offer]:
        """Return all operations it knows, holds and their release included."""
        ...

    def begin(self, command: Command, now_us: int) -> None:
        """Hand a request over (`command.id` names it); raises MemwatchError with the reason.

        The same id again is the same request. Identity of the target is checked here, each time.
        """
        ...

    def answer(self, command_id: str) -> Answer | None:
        """Return what is known of a request that was begun; None when nothing is."""
        ...

    def has(self, command_id: str) -> bool:
        """Say whether a request was handed over, by this guard or one before it."""
        ...

    def withdraw(self, command_id: str) -> bool:
        """Take back a request that was not begun; True when it will not be carried out."""
        ...

    def holds(self) -> tuple[Hold, ...]:
        """Return what holds the agent: by its own word, and what we keep besides."""
        ...

    def keep(self, m_us: int) -> tuple[str, ...]:
        """Renew leases that are due; returns what went wrong or was found changed, for people."""
        ...


class Reach(Actuator, Protocol):
    """An actuator as a guard holds it: there is one guard at a time that acts on a run."""

    no_commands: str
    """Why nothing at all can be asked for; empty where something can."""
    ops: Mapping[str, Any]
    """Replaced when the agent began again and offers others."""
    epoch: int
    """Of this guard; carried by what the engine asks for."""
    engine_lease_us: int
    """Of the engine's pause, when the request names no other."""
    alone: bool
    """No other guard acts on this run, as of the newest look; only then the engine may."""

    def claim(self) -> None:
        """Be the guard that acts on this run, now or as soon as no other one is."""
        ...

    def let_go(self) -> None:
        """Let another guard act."""
        ...

    def claim_epoch(self, known: int = 0) -> int:
        """Begin a new epoch above `known`, and keep what the guard before held; returns it."""
        ...

    def renew_engine_while(self, acts: Callable[[], bool]) -> None:
        """Renew the engine's holds only while it may act; else they end with their lease."""
        ...

    def state(self) -> AgentState | None:
        """Return what the agent says of itself; None when that is old or cannot be read."""
        ...
