"""How a checkpoint ended."""

from __future__ import annotations

from msgspec import Struct

from memwatch.agent.checkpoints.cadence import Kind


class Outcome(Struct, frozen=True, kw_only=True):
    """How an attempt ended."""

    id: str
    kind: Kind
    committed: bool
    bytes: int = 0
    """Its own files, and the blobs that it is the first of the chain to refer to."""
    sha256: str = ""
    path: str = ""
    """Relative to the run directory."""
    reason: str = ""
    stall_us: int = 0
    """How long the agent waited."""
    persisted: int = 0
    """Rebuildable values of the current experiment that were written (kind `experiment`)."""
    unpersisted: int = 0
    """Those of them that no text can be made of."""


def words(error: Exception) -> str:
    """Return what went wrong, never nothing."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
