"""What the engine decided: each explains itself in one line."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from memwatch.domain.level import Level
from memwatch.domain.plan import Plan

Kind = Literal[
    "level",
    "soft_limit",
    "plan",
    "ask",
    "withdraw",
    "effect",
    "suppressed",
    "breaker",
    "shout",
]
"""level: one was entered or left · soft_limit: it moved · plan: one was made, moved on or ended
(`plan` holds it whole) · ask: hand over a request (a step, a release, a retention) · withdraw: take
back one that was not begun · effect: a plan was measured · suppressed: a level calls for a plan and
none is made, told once · breaker: opened or closed · shout: a person must know, and nothing that
stands in a snapshot says it."""


class Decision(Struct, frozen=True, kw_only=True):
    """One decision. Written down before it is carried out."""

    kind: Kind
    why: str
    """value, limit, window, rule, and what would have changed it."""
    rule: str
    """Path of the policy's rule: `thresholds.intervene`, `soft.growth_bytes_per_min`, …"""
    level: Level = "normal"
    resource: str = "memory"
    value: float | None = None
    limit: float | None = None
    plan: Plan | None = None
    op: str = ""
    args: dict[str, Any] = {}
    command_id: str = ""
    dry: bool = False
    """Not to be sent: the engine is in shadow."""
