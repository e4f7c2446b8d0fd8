"""A plan: what is done about a level, in ordered steps that are each acknowledged.

Source: R8; contracts, "Plans".
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from memwatch.domain.command import CommandState
from memwatch.domain.level import Level

Effect = Literal["pending", "effective", "none", "worse", "unmeasured"]
"""What a plan did to the memory, as measured; `pending` until it is."""


class Step(Struct, frozen=True, kw_only=True):
    """One step: an operation of the agent and how far it came."""

    op: str
    """An operation of contracts.md, or a hold: `pause`, `read_only`."""
    args: dict[str, Any] = {}
    patience_s: float = 30.0
    """The plan goes on without an answer after this time; the request itself may still end."""
    command_id: str = ""
    """`<plan id>.<place>`: the same request may be handed over twice, it is obeyed once."""
    state: CommandState = "proposed"
    detail: str = ""
    asked_us: int = 0
    """Boot clock; 0 before it."""


class Plan(Struct, frozen=True, kw_only=True):
    """The reaction to a level. One is in flight per run; a higher level pre-empts it."""

    id: str
    level: Level
    rule: str
    """Path of the policy's rule that called for it: `levels.warn`, `outlook.time`, …"""
    resource: str = "memory"
    """Whose level it is about."""
    why: str
    """One line: value, limit, window, rule, and what would have changed it."""
    steps: tuple[Step, ...]
    at: int = 0
    """Place of the step in work; `len(steps)` when all are behind it."""
    state: CommandState = "proposed"
    detail: str = ""
    dry: bool = False
    """Made in shadow: nothing is sent."""
    effect: Effect = "pending"
    made_us: int = 0
    """Wall clock."""
    made_m_us: int = 0
    """Boot clock."""
    done_m_us: int = 0
    """Boot clock, when its last step was behind it; 0 before."""
    before_bytes: float | None = None
    after_bytes: float | None = None
    """Usage before its first step, and some time after its last."""

    @property
    def freed_bytes(self) -> float | None:
        """Bytes that usage fell by; negative when it rose."""
        if self.before_bytes is None or self.after_bytes is None:
            return None
        return self.before_bytes - self.after_bytes

    @property
    def in_flight(self) -> bool:
        """Whether steps of it are still to come or to be answered."""
        return self.state in ("asked", "accepted", "running")
