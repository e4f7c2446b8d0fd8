"""What the guard keeps of recoveries: estimates in its log, restarts that it saw, what they teach.

Runs on the clerk's thread, as it reads and writes files. A restart is held against the estimate
that stood when the agent died: the newest one older than the restart's first record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from memwatch.analytics.recovery.costs import (
    Costs,
    StartSeen,
    costs_of,
    learn,
    shared,
)
from memwatch.analytics.recovery.estimate import comparable, expected
from memwatch.config.policy import CrashBudget
from memwatch.domain.clock import Clock
from memwatch.domain.record import Record, figure
from memwatch.domain.recovery import DiskRate, PastRecovery, Recovery, RecoveryTerm
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.host.lock import LockHeldError
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.runs.host_file import HostFile
from memwatch.runtime.runs.recovery_file import RecoveryNews, append_recovery
from memwatch.runtime.views.recovery_view import Known
from memwatch.runtime.views.ring import Ring

_MOVED: Final = 0.10
_AGAIN_US: Final = 300_000_000
_STOOD: Final = 30
"""Looks whose estimates are remembered: what is newer than a restart's begin says nothing of it."""
_HOST_US: Final = 60_000_000
_NAMES: Final = frozenset(("start", "load", "blobs", "read", "replay"))


class Estimates:
    """Follows the estimates and the restarts of one run."""

    def __init__(
        self, home: Path, host: HostFile, agent: str, ring: Ring, recorder: Recorder, clock: Clock
    ) -> None:
        """`home` is what the guard keeps of the run, `host` what the machine keeps of all."""
        self._home = home
        self._host = host
        self._agent = agent
        self._ring = ring
        self._recorder = recorder
        self._clock = clock
        self._stood: deque[tuple[int, tuple[RecoveryTerm, ...]]] = deque(maxlen=_STOOD)
        self._written: tuple[int, float] | None = None
        """Boot clock and value of the newest estimate in the log."""
        self._was_past = False
        self._news = RecoveryNews(home)
        self._kept: tuple[PastRecovery, ...] = ()
        """What the run's file holds, newest first."""
        self._seen: list[PastRecovery] = []
        """Restarts that were found by this guard."""
        self._taught: tuple[tuple[PastRecovery, ...], tuple[StartSeen, ...]] | None = None
        self._host_due_us = 0
        self._costs: Costs | None = None
        self.rate: Callable[[], DiskRate | None] = lambda: None
        """Of the run's disk."""
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each restart that was written down."""

    @property
    def past(self) -> tuple[PastRecovery, ...]:
        """Drills and restarts of this run, newest first."""
        known = {one.t_us: one for one in (*self._seen, *self._kept)}
        return tuple(sorted(known.values(), key=lambda one: one.t_us, reverse=True))

    def known(self, budget: CrashBudget) -> Known:
        """Return what an estimate needs besides the ring."""
        return Known(
            past=self.past,
            costs=self._costs,
            disk=self.rate(),
            budget=budget,
            agent=self._agent,
        )

    def restore(self, told: list[Record]) -> None:
        """Take the estimates that a guard before this one wrote, in order."""
        for record in told:
            if record.kind == "estimate" and (terms := _terms_of(record)):
                self._stood.append((record.t_us, terms))

    def begin(self) -> None:
        """Read what the machine keeps."""
        self._read_host()
        self._read_file()

    def look(self, snapshot: Snapshot | None) -> None:
        """Do what is due, with the newest snapshot."""
        self._read_file()
        self._find_restarts()
        self._teach()
        if snapshot is not None and snapshot.recovery.rto_s is not None:
            self._follow(snapshot.recovery, snapshot.run.state in PAST)

    def _read_file(self) -> None:
        if (found := self._news.look()) is not None:
            self._kept = found
            self._ring.touch()

    # -- estimates -----------------------------------------------------------------------------

    def _follow(self, recovery: Recovery, is_past: bool) -> None:
        """Remember the estimate, and write it down when it moved, it is time, or the agent died."""
        rto, now_us = recovery.rto_s, self._clock.boot_us()
        if rto is None:
            return
        died, self._was_past = is_past and not self._was_past, is_past
        self._stood.append((self._clock.wall_us(), recovery.terms))
        if self._written is not None and not died:
            at_us, likely = self._written
            moved = abs(rto.likely - likely) > _MOVED * likely
            if is_past or (not moved and now_us - at_us < _AGAIN_US):
                return
        self._written = (now_us, rto.likely)
        self._recorder.append("estimate", _members(recovery))

    # -- restarts --------------------------------------------------------------------------------

    def _find_restarts(self) -> None:
        restarts = self._ring.state.restarts
        known = {one.t_us for one in self.past}
        for done in reversed(restarts.restarts()):
            if done.t_us in known:
                continue
            stood = self._stood_at(restarts.began_us(done))
            names = [term.name for term in done.terms]
            done = replace(done, estimate=comparable(stood, names), expected=expected(stood))
            self._seen.append(done)
            self.tell(self._recorder.append("restart", msgspec.to_builtins(done)))
            try:
                append_recovery(self._home, done)
            except OSError:
                continue  # it is in the guard's own log, and known while this guard lives
            self._ring.touch()

    def _stood_at(self, t_us: int) -> tuple[RecoveryTerm, ...]:
        """Return the newest estimate that is older."""
        return next((terms for at_us, terms in reversed(self._stood) if at_us < t_us), ())

    # -- what it teaches -------------------------------------------------------------------------

    def _teach(self) -> None:
        past, starts = self.past, self._ring.state.restarts.starts()
        if self._taught == (past, starts):
            if self._clock.boot_us() >= self._host_due_us:
                self._read_host()
            return
        learnt = learn(past, starts, None, self._agent)
        if learnt != Costs():
            try:
                self._host.change_costs(lambda kept: shared(learnt, costs_of(kept)))
            except (OSError, LockHeldError):
                return  # tried again at the next look
        self._taught = (past, starts)
        self._read_host()

    def _read_host(self) -> None:
        self._host_due_us = self._clock.boot_us() + _HOST_US
        found = costs_of(self._host.costs())
        if found != self._costs:
            self._costs = found
            self._ring.touch()


def _members(recovery: Recovery) -> dict[str, Any]:
    rto = recovery.rto_s
    work = {
        "full_bytes": recovery.full_bytes,
        "blob_bytes": recovery.blob_bytes,
        "delta_bytes": recovery.delta_bytes,
        "tail_bytes": recovery.tail_bytes,
        "tail_records": recovery.tail_records,
    }
    members: dict[str, Any] = (
        {}
        if rto is None
        else {
            "low_s": round(rto.low, 6),
            "likely_s": round(rto.likely, 6),
            "high_s": round(rto.high, 6),
        }
    )
    return members | {
        "terms": {term.name: round(term.seconds, 6) for term in recovery.terms},
        "grade": recovery.grade,
        "work": {name: amount for name, amount in work.items() if amount},
    }


def _terms_of(record: Record) -> tuple[RecoveryTerm, ...]:
    """Return the terms of an estimate in the log, each with the range of the whole."""
    low, likely, high = (
        figure(record.members.get(f"{name}_s")) for name in ("low", "likely", "high")
    )
    told = record.members.get("terms")
    if not low or not likely or not high or not isinstance(told, dict):
        return ()
    seconds = {name: figure(value) for name, value in told.items() if name in _NAMES}
    return tuple(
        RecoveryTerm(
            name=name,
            seconds=value,
            low_s=value * low / likely,
            high_s=value * high / likely,
            basis="assumed",
        )
        for name, value in seconds.items()
        if value is not None
    )
