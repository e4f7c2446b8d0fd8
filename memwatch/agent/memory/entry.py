"""One value of a tier, wherever the value is now, and what purges and recovery must know of it.

A value is *resident* as an object (`value`) or as its canonical text (`packed`); else it lies in a
blob, or only its source is known and it is made again when asked for (R4). Where it is makes no
difference to the state of the run, so moving it is not logged entry by entry.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from memwatch.domain.operations import PurgeHow

Text = bytes
"""Canonical JSON in UTF-8: sorted members, bytes in base64."""


class Absent:
    """Type of ABSENT; None is a value like any other."""

    def __repr__(self) -> str:
        """Return its name."""
        return "ABSENT"


ABSENT: Final = Absent()
"""In place of a value that is not in memory as an object."""


class Source(Struct, frozen=True):
    """How a rebuildable value is made: a builder's name (`RunOptions.builders`), its arguments."""

    by: str
    args: dict[str, Any] = {}


class Blob(Struct, frozen=True):
    """A canonical value on disk, named by its content."""

    sha256: str
    """Of the canonical text; hexadecimal; the name of the file."""
    bytes: int
    """Length of the canonical text, not of the file."""


class Entry(Struct, kw_only=True):
    """One value of a tier.

    A change makes a new Entry, so that a checkpoint may hold the old one while it writes; only
    where the value is (`value`, `packed`, `blob`, `bytes`) and `heat` change in place.
    """

    key: str
    lsn: int
    """Of its last change: what makes replay idempotent."""
    bytes: int
    """What it holds in memory now: itself, key, and the value as far as it is resident."""
    full_bytes: int = 0
    """What it holds with its value as an object, as measured last; 0 where that is not known."""
    digest: str
    """SHA-256, hexadecimal, of the canonical value; of the canonical source where it has one."""
    type: str = ""
    """Empty for JSON-like values, `bytes`, or the name of one of the run's types."""
    value: Any = ABSENT
    packed: Text | None = None
    """The canonical value (compressed or not, see `compression.unpack`) in place of the object."""
    shadow: Text | None = None
    """The canonical value as of `lsn`, kept beside a value that is changed in place."""
    blob: Blob | None = None
    """Where the value as of `lsn` lies on disk, if it does."""
    source: Source | None = None
    """Present for a rebuildable entry: its source stands for its value in log and checkpoints."""
    tokens: int | None = None
    importance: float = 0.5
    experiment: int | None = None
    """What retention by experiments counts it under."""
    phase: str = ""
    """Phase of the run when it was put."""
    born_us: int = 0
    """Boot clock of its last change, of this boot: TTL and idle time count from here."""
    ttl_us: int | None = None
    heat: Any = None
    """Accesses of the last 24 h by hour (`memory.heat.Heat`), None before the first."""

    @property
    def rebuildable(self) -> bool:
        """Whether it can be made again from its source (R4)."""
        return self.source is not None

    @property
    def resident(self) -> bool:
        """Whether the value is in memory."""
        return self.value is not ABSENT or self.packed is not None


class Change(Struct, kw_only=True):
    """What happened to a key since the last checkpoint, net."""

    lsn: int
    """Of its last change."""
    was_present: bool
    """Whether the checkpoint before knows the key."""
    base_lsn: int = 0
    """`lsn` of the entry as that checkpoint knows it: what `ops` apply to."""
    ops: list[dict[str, Any]] | None = None
    """All differences since then, in order; None: only the whole value says it."""
    ops_bytes: int = 0


How = PurgeHow
Cause = Literal["retention", "share_cap", "pressure", "engine", "operator", "phase", "agent"]
