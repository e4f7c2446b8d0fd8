"""What a recovery tells: its progress, what it used, what was wrong or lost, how long it took.

Every sentence here is for people and may quote bytes of the run directory: make it inert before
it goes to a terminal (`memwatch.domain.text.inert`).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TermName = Literal["start", "load", "blobs", "read", "replay", "decode"]


class Progress(Struct, frozen=True):
    """How far a recovery is."""

    done_bytes: int
    total_bytes: int
    """As known now: it grows when something damaged has to be made up for."""
    what: str
    """File that is being read, relative to the run directory."""


class Term(Struct, frozen=True):
    """One part of the time that a recovery takes."""

    name: TermName
    """`start`: a drill's process until it begins; `load`: the full checkpoint, from its files to
    entries that are proved by its hashes, and the look for blobs; `blobs`: those read and proved;
    `read`: the bytes of increments and log, with their checksums; `replay`: increments and log
    applied, and the state hash; `decode`: canonical text to objects (a restart does that for what
    it asks for; a drill for everything)."""
    seconds: float
    bytes: int = 0
    records: int = 0
    """Entries, blobs, lines of increments and records of the log, values; 0 for what has none."""


class FileState(Struct, frozen=True):
    """How a file that the run wrote compares with what its log says of it."""

    path: str
    """As logged, relative to the workspace."""
    state: Literal["same", "missing", "changed", "put back"]
    """`put back`: it was missing, and a start wrote it again; a recovery alone writes nothing."""


class Resume(Struct, frozen=True, kw_only=True):
    """What a checkpointer must know to go on with the chain."""

    base: str | None = None
    """Full checkpoint that the chain stands on."""
    last_lsn: int = 0
    """Last lsn that the chain's newest checkpoint includes; `State.changes` count from here."""
    chain_bytes: int = 0
    """Of the increments."""
    experiments_since_any: int = 0
    experiments_since_full: int = 0
    full_due: bool = True
    """The chain has damage, or none could be used: take a full one at once."""


class Report(Struct, frozen=True, kw_only=True):
    """How a recovery went."""

    run_id: str
    full: str | None
    """Full checkpoint that it began with; None: with nothing, from the first record on."""
    deltas: tuple[str, ...]
    """Increments that it used, in order."""
    records: int
    """Records of the log that it replayed."""
    last_lsn: int
    """The state is that of this record."""
    damaged: tuple[str, ...]
    """What is not as it was written, and where, also where something else made up for it."""
    lost: tuple[str, ...]
    """What the state lacks or cannot give, in sentences."""
    lossy: bool
    """Whether anything is lost, or the state differs from the hash that the run logged."""
    matches: bool | None
    """Whether the state as of the newest checkpoint that it went through has the hash that the
    run logged there; None where none was logged."""
    verified: dict[str, str] | None
    """State hash of each tier as of `verified_lsn`, equal to what the run logged; else None."""
    verified_lsn: int | None
    terms: tuple[Term, ...]
    total_s: float
    memory_bytes: int
    """What the recovered entries hold in memory."""
    resume: Resume
    files: tuple[FileState, ...] = ()
    """Files of the workspace, where one was named (R7)."""
