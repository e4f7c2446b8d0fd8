"""Operations that an agent may take, and the words of their arguments (contracts, "Operations")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

HoldOp = Literal["pause", "read_only"]
HOLDS: Final[Mapping[str, HoldOp]] = {name: name for name in get_args(HoldOp)}
"""In force until they are released, or nobody renews them. Every agent that listens keeps them,
without stating it."""
RELEASES: Final[Mapping[str, HoldOp]] = {"resume": "pause", "read_write": "read_only"}
"""What ends which hold."""
JOBS: Final = (
    "checkpoint",
    "purge",
    "reclaim",
    "compact",
    "retain",
    "abort_experiment",
    "end_run",
)
"""Done once, and answered."""
OPERATIONS: Final = (*JOBS, *HOLDS)
"""What may stand in `allow` and in the steps of a plan."""

PurgeHow = Literal["expired", "oldest", "least_accessed", "compress", "reclaim"]
PURGE_HOWS: Final[tuple[PurgeHow, ...]] = get_args(PurgeHow)
CheckpointKind = Literal["incremental", "full", "experiment"]
CHECKPOINT_KINDS: Final[tuple[CheckpointKind, ...]] = get_args(CheckpointKind)

ENGINE: Final = "engine"
"""Who asks where no person does, and owner of the holds that were asked for so."""


def must_be_named(op: str, args: Mapping[str, Any]) -> bool:
    """Say whether a person types the run's name first: what goes does not come back by itself.

    Source: contracts, "Plans" (confirmations).

    >>> must_be_named("purge", {"tier": "verified"}), must_be_named("purge", {"tier": "recent"})
    (True, False)
    """
    if op in ("abort_experiment", "end_run"):
        return True
    return op == "purge" and (args.get("tier") == "verified" or bool(args.get("keys")))
