"""Recovery, "if it crashed now": the estimate, its terms, and recoveries that happened (R12).

Parts of the snapshot; names are the contract for scripts, members may be added. Source: metrics.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

TermName = Literal["start", "load", "blobs", "read", "replay"]
"""`start`: from the process's first instant to its first record, without the recovery itself;
`load`: the newest recoverable full checkpoint; `blobs`: persisted values; `read`: increments and
the log's tail; `replay`: their records applied. Together they are the time until it is back."""
Basis = Literal["measured", "drilled", "assumed"]
"""`measured` by a real restart or a look at the disk, `drilled` by practice, else `assumed`."""
Grade = Literal["good", "watch", "poor"]


class DiskRate(Struct, frozen=True, kw_only=True):
    """How fast a disk is, the system's own memory out of the way; None where nobody could tell."""

    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    """Sequential, until it is on the device."""
    t_us: int
    """When that was measured."""
    how: str = ""
    """One line: "32M of our own, written and read cold"."""


class Span(Struct, frozen=True, kw_only=True):
    """A duration in seconds as a range."""

    low: float
    likely: float
    high: float


class RecoveryTerm(Struct, frozen=True, kw_only=True):
    """One term of the estimate, and what it rests on."""

    name: TermName
    seconds: float
    low_s: float
    high_s: float
    basis: Basis
    age_s: float | None = None
    """Age of the newest measurement that it rests on; None for what is assumed."""
    bytes: int | None = None
    records: int | None = None
    how: str = ""
    """One line: "3 drills of this run, 0.9 s a GB"."""


class MeasuredTerm(Struct, frozen=True):
    """A part of the time that a recovery took: start, load, blobs, read, replay, decode."""

    name: str
    seconds: float
    bytes: int
    records: int = 0


class PastRecovery(Struct, frozen=True, kw_only=True):
    """A recovery that was done: for practice (`memwatch drill`), or by a restart after a crash."""

    t_us: int
    """When it was done."""
    total_s: float
    """Of the terms of `TermName`, and what lies between them; decoding every value is not in it."""
    kind: Literal["drill", "restart"] = "drill"
    terms: tuple[MeasuredTerm, ...] = ()
    bytes: int = 0
    """Read from disk."""
    state_bytes: int = 0
    """What the recovered entries hold in memory."""
    memory_bytes: int = 0
    """Most that its process held; 0 where nobody looked."""
    cold_cache: bool = False
    """The files came from the disk, not from the system's memory."""
    waited_s: float | None = None
    """Of `total_s`, for so long others had the processor; None where nobody counted."""
    matches: bool | None = None
    """Whether the state had the hash that the agent logged; None where it logged none."""
    lossy: bool = False
    """Whether anything was lost."""
    estimate: Span | None = None
    """What was estimated just before, for the terms that this one has; None where nothing was."""
    expected: tuple[MeasuredTerm, ...] = ()
    """The same by term, with the bytes and records that were thought to be its work."""

    @property
    def error_share(self) -> float | None:
        """By how much it took longer than estimated, as a share of the estimate."""
        if self.estimate is None or self.estimate.likely <= 0:
            return None
        return self.total_s / self.estimate.likely - 1

    @property
    def work_error_share(self) -> float | None:
        """The same without the start, which a drill does not measure: it stands on both sides."""
        start_s = next((term.seconds for term in self.terms if term.name == "start"), 0.0)
        if self.kind != "drill" or self.estimate is None or self.estimate.likely <= start_s:
            return None
        return (self.total_s - start_s) / (self.estimate.likely - start_s) - 1


class RecoveryBudget(Struct, frozen=True, kw_only=True):
    """What the policy allows a crash to cost, and whether it would cost more now."""

    recover_s: float | None = None
    """"Never more than 60 s" until it is back; None: no such limit."""
    work_s: float | None = None
    """"Never more than 5 minutes of work" that no checkpoint holds."""
    over: tuple[str, ...] = ()
    """What is over its budget now, in words; empty while nothing is."""
    beyond: tuple[str, ...] = ()
    """Of it, what no checkpoint would bring under."""
    checkpoint: Literal["incremental", "full"] | None = None
    """Kind of checkpoint that would bring it under; None where nothing is over or none would."""


class Recovery(Struct, frozen=True, kw_only=True):
    """If it crashed now: how long until it is back, what would be lost, will a restore fit."""

    rto_s: Span | None = None
    """None where nothing can be said: no start and no checkpoint was seen."""
    grade: Grade | None = None
    terms: tuple[RecoveryTerm, ...] = ()
    fix: str = ""
    """Which term to fix and how, in one line, unless the grade is good."""
    plain_s: float | None = None
    """The plain formula of R12, beside the estimate."""
    plain: str = ""
    """The same in words, with its figures: "1.4 GB / 410 MB/s + …"."""
    disk: DiskRate | None = None
    """The rates of the run's disk that the estimate and the plain formula rest on, and from when;
    None before it was measured: then they are assumed."""
    memory_bytes: int | None = None
    """Most that a restore would hold."""
    memory_fits: bool | None = None
    memory_how: str = ""
    """What that rests on, and what it is held against."""
    error: str = ""
    """How past estimates did: "last 5: −8 … +12 %"; empty before the first."""
    past: tuple[PastRecovery, ...] = ()
    """The newest drills and restarts, newest first, five at most."""
    drill: PastRecovery | None = None
    """What a drill measured last; None before the first."""
    budget: RecoveryBudget = RecoveryBudget()
    full_bytes: int | None = None
    delta_bytes: int = 0
    blob_bytes: int | None = None
    tail_bytes: int = 0
    """Bytes of the log behind the newest checkpoint: what a recovery replays."""
    tail_records: int = 0
    at_risk_s: float | None = None
    """Time since the newest checkpoint that can be loaded (since the start without one): work that
    no checkpoint holds."""
    redo_s: float | None = None
    """Of it, what is done again even when the log is whole: the experiment in progress; all of it
    where there is no log."""
    at_risk_experiments: int = 0
    """Experiments ended or begun in that time."""
    mean_experiment_s: float | None = None
