"""One thing that was done about memory: what is known of it besides what it did."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memwatch.analytics.efficacy.effect import When
from memwatch.domain.intervention import Intervention

DeedKind = Literal[
    "routine", "purge", "checkpoint", "request", "plan", "mode", "restart", "compact"
]
WHOLE = ("memory", "unaccounted")
"""What is measured of the process tree."""
SERIES = {"disk": "run_bytes"}
"""Names of resources where the ring's series has another."""


class Deed(Struct, frozen=True, kw_only=True):
    """Pure description; the row of it without anything that was measured."""

    kind: DeedKind
    row: Intervention
    when: When | None = None
    """On the ring's axis; None until it is done, and where nothing was done."""
    resources: tuple[str, ...] = ()
    """What is measured, first the one it is about."""
    acts_on: frozenset[str] = frozenset()
    """What it is meant to change: others cannot be told from it there."""
    claims: str = ""
    """The resource that `row.claimed` is about."""
    holds: bool = False
    """It keeps new experiments from beginning."""
    lsn: int = 0
    """Its record in the agent's log, the first of a series; 0 for what only the ledger tells."""

    @property
    def id(self) -> str:
        """Return the name of the row."""
        return self.row.id

    @property
    def what(self) -> str:
        """What was done, in words, for rows of others."""
        routine = "retention of " if self.kind == "routine" else f"{self.row.action} "
        return f"{routine}{self.row.tier}".strip()


def of_tier(tier: str) -> tuple[str, ...]:
    """Return what is measured of a purge of one tier."""
    return (f"tier:{tier}", f"tokens:{tier}", *WHOLE)
