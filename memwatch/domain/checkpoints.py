"""Checkpoints, of our own format and of everyone's: each one, the chain, figures and verdicts.

Parts of the snapshot; names are the contract for scripts, members may be added. Source: R5,
metrics.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

CheckpointState = Literal["begun", "committed", "aborted", "incomplete", "damaged"]
"""`begun`: it is being written; `incomplete`: nobody is writing it any more; `damaged`: it was
complete, and is not what it was."""
BROKEN: Final = ("aborted", "incomplete", "damaged")
"""States of those that are none, and nobody is at any more."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """One checkpoint, as a log or a directory tells it."""

    id: str
    kind: Literal["full", "incremental", "experiment"] | str
    """`experiment` is an incremental one with all values of the experiment in progress."""
    state: CheckpointState
    base: str | None = None
    first_lsn: int | None = None
    last_lsn: int | None = None
    bytes: int | None = None
    """Its own files, and persisted values that it is the first of its chain to refer to."""
    file_bytes: int | None = None
    """Its own files alone, where the log says it."""
    state_bytes: int | None = None
    """What the state held in memory that a full one saved, where it is said."""
    entries: int | None = None
    began_us: int = 0
    """0 where nobody knows."""
    committed_us: int | None = None
    duration_s: float | None = None
    stall_s: float | None = None
    reason: str = ""
    """Why it was taken, aborted, or why it does not count."""
    step: int | None = None
    """The program's own number of it: `global_step` of a trainer, step of a graph."""
    thread: str = ""
    """Which of several chains in one store it belongs to."""
    files: int | None = None
    partial: bool = False
    """Holds only what was trained on top (an adapter): its base model must be there as well."""


class Chain(Struct, frozen=True, kw_only=True):
    """What lies behind the newest recoverable full checkpoint."""

    deltas: int = 0
    bytes: int = 0
    """Bytes of the incremental checkpoints since the full one ("18 of 50 MB")."""
    limit_bytes: int = 50_000_000
    entries: int = 0


class CheckpointStats(Struct, frozen=True, kw_only=True):
    """Figures over the known checkpoints; those of a kind only where the name says so."""

    complete: int = 0
    failed: int = 0
    """Aborted, incomplete or damaged."""
    duration_p50_s: float | None = None
    duration_p95_s: float | None = None
    full_bytes_p50: float | None = None
    full_bytes_p95: float | None = None
    growth_bytes: float | None = None
    """Robust slope of the size of full ones, bytes from one to the next; None before three."""
    every_s: float | None = None
    """Median time from one to the next: the cadence as it is."""
    total_bytes: int | None = None
    """Of all that lie there."""
    write_bytes_per_s: float | None = None
    time_share: float | None = None
    """Time spent in checkpoints of the time of the run."""


class Bloat(Struct, frozen=True, kw_only=True):
    """Whether checkpoints grow, or take time, without the state growing."""

    verdict: Literal["not enough data", "stable", "watching", "bloat"] = "not enough data"
    why: str = ""
    """One line with the figures that led to it."""
    do: str = ""
    """What would cure it."""


class Prune(Struct, frozen=True, kw_only=True):
    """Which checkpoints could go. Advice only: nothing here is ever deleted by us."""

    ids: tuple[str, ...] = ()
    """The oldest of them."""
    count: int = 0
    """All of them."""
    bytes: int = 0
    why: str = ""
    """What would stay, or why none may go: "the newest is incomplete"."""


class Checkpoints(Struct, frozen=True, kw_only=True):
    """Checkpoints: the last, what recovery would start from, what is due, how they do."""

    source: Literal["native", "directory", "langgraph"] = "native"
    last: Checkpoint | None = None
    last_recoverable_full: Checkpoint | None = None
    """The newest full one that was committed and lies on disk."""
    newest: tuple[Checkpoint, ...] = ()
    """Newest first, a handful; all that are known come by the session's `rows`."""
    chain: Chain = Chain()
    age_s: float | None = None
    """Age of the last committed one."""
    overdue: bool = False
    """By the grace of the profile behind the agent's cadence, or its habit where none is told."""
    overdue_kind: Literal["full", "incremental"] | None = None
    next_kind: Literal["full", "incremental"] | None = None
    due_in_s: float | None = None
    """Time until the next one is due; negative when it is late."""
    due_experiments: int | None = None
    """It is due after so many experiments, too, of which `due_experiments_done` are done."""
    due_experiments_done: int | None = None
    experiments_since: int | None = None
    """Experiments that ended since the newest committed one; aborted ones do not count."""
    next_bytes: int | None = None
    """What the next full one will take on disk, by the last and by growth."""
    next_fits: bool | None = None
    """The disk has room for two more full ones beside its reserve; None before the first."""
    incomplete: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Committed by the log, but not found on disk, or not whole: the newest full one, increments
    behind it."""
    damaged: tuple[str, ...] = ()
    """Those that lie there and are not what was committed; among them one that is not needed now,
    as a newer one is whole."""
    writing: tuple[str, ...] = ()
    """Those that are being written now."""
    count: int = 0
    stats: CheckpointStats = CheckpointStats()
    bloat: Bloat = Bloat()
    prune: Prune = Prune()


class StoreLook(Struct, frozen=True, kw_only=True):
    """One look at a checkpoint store that is not ours: a directory, a database of LangGraph."""

    source: Literal["directory", "langgraph"]
    t_us: int
    """Wall clock of the look."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """In order of their commit, oldest first; the newest `most` of them."""
    count: int = 0
    """All that lie there."""
    total_bytes: int = 0
    """On disk, hard links counted once."""
    state_bytes: int | None = None
    """Size of the newest state that a checkpoint holds, where the store tells it."""
    written_bytes: int | None = None
    """Written for all checkpoints that lie there, where that differs from `total_bytes`."""
    load_bytes: int | None = None
    """Read to load the newest one, with all that it stands on, where the store tells it."""
    log_bytes: int = 0
    """Of `total_bytes`, the write-ahead log of a database."""
    dead_bytes: int | None = None
    """Of `total_bytes`, pages of a database that hold nothing."""
    best: str = ""
    """Id of the one that the program calls its best (`best_model_checkpoint`)."""
    named: tuple[str, ...] = ()
    """Ids that a link beside them, or the store's own tag (`latest`), points to."""
    writers: tuple[int, ...] = ()
    """Processes that hold files of the store open for writing."""
    watch: Literal["events", "polling"] = "polling"
    why: str = ""
    """What could not be looked at, in words; empty when all could."""
    gone: bool = False
    """Nothing lies at its path any more, since `t_us`: what is told is from before."""
