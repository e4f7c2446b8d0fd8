"""What the guard keeps of recoveries: estimates in its log, restarts that it saw, what they teach.

Runs on the clerk's thread, as it reads and writes files. A restart is held against the estimate
that stood when the agent died: the newest one older than the restart's first record. It is written
to the guard's log first and then to the run's file, so what is in the file is in the log, and a
guard that was killed in between leaves the next one only the file to write.
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
from memwatch.analytics.recovery.sound import sound
from memwatch.config.policy import CrashBudget
from memwatch.domain.clock import Clock
from memwatch.domain.record import Record, figure
from memwatch.domain.recovery import DiskRate, PastRecovery, Recovery, RecoveryTerm
from memwatch.domain.snapshot import PAST, Snapshot
from memwatch.host.lock import LockHeldError
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.runs.host_file import HostFile
from memwatch.runtime.runs.recovery_file import MOST, RecoveryNews, append_recovery
from memwatch.runtime.views.recovery_view import Known
from memwatch.runtime.views.ring import Ring

_MOVED: Final = 0.10
_AGAIN_US: Final = 300_000_000
_STOOD: Final = 30
"""Looks whose estimates are remembered: what is newer than a restart's begin says nothing of it."""
_HOST_US: Final = 60_000_000
_UNFILED: Final = 64
_LOGGED: Final = 256
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
        """With their instants on the ring's axis: the wall clock may jump."""
        self._written: tuple[int, float] | None = None
        """Boot clock and value of the newest estimate in the log."""
        self._was_past = False
        self._news = RecoveryNews(home)
        self._kept: tuple[PastRecovery, ...] = ()
        """What the end of the run's file holds, newest first."""
        self._seen: dict[int, PastRecovery] = {}
        """Restarts by their time that are not in the file, as far as was looked, oldest first."""
        self._logged: deque[int] = deque(maxlen=_LOGGED)
        """Times of restarts that are in the guard's log."""
        self._past: tuple[PastRecovery, ...] = ()
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
        return self._past

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
        """Take the estimates and restarts that a guard before this one wrote, in order."""
        for record in told:
            if record.kind == "restart":
                self._take_logged(record)
            elif terms := _terms_of(record):
                self._stood.append((self._axis_of(record), terms))

    def _take_logged(self, record: Record) -> None:
        try:
            done = sound(msgspec.convert(record.members, PastRecovery))
        except (ValueError, RecursionError):
            return
        if done is not None and done.kind == "restart":
            self._logged.append(done.t_us)
            self._note(done)

    def _axis_of(self, record: Record) -> int:
        of_this_boot = record.m_us <= self._clock.boot_us()
        return record.m_us if of_this_boot else self._ring.to_axis(record.t_us)

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
            for done in found:
                self._seen.pop(done.t_us, None)
            self._put_together()

    # -- estimates -----------------------------------------------------------------------------

    def _follow(self, recovery: Recovery, is_past: bool) -> None:
        """Remember the estimate, and write it down when it moved, it is time, or the agent died."""
        rto, now_us = recovery.rto_s, self._clock.boot_us()
        if rto is None:
            return
        died, self._was_past = is_past and not self._was_past, is_past
        self._stood.append((now_us, recovery.terms))
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
        known = {*self._seen, *self._logged, *(one.t_us for one in self._kept)}
        for done in reversed(restarts.restarts()):
            if done.t_us not in known:
                stood = self._stood_at(self._ring.axis_of(restarts.began(done)))
                names = [term.name for term in done.terms]
                estimate = comparable(stood, names)
                self._note(replace(done, estimate=estimate, expected=expected(stood)))
        for done in tuple(self._seen.values()):
            self._keep(done)

    def _note(self, done: PastRecovery) -> None:
        """Take a restart of which the file does not know yet."""
        self._seen[done.t_us] = done
        while len(self._seen) > _UNFILED:
            del self._seen[next(iter(self._seen))]
        self._put_together()

    def _keep(self, done: PastRecovery) -> None:
        """Write a restart down; what a full disk refuses is tried again at the next look."""
        if done.t_us not in self._logged:
            record = self._recorder.append("restart", msgspec.to_builtins(done))
            if not record.lsn:
                return
            self._logged.append(done.t_us)
            self.tell(record)
        try:
            append_recovery(self._home, done)
        except OSError:
            return
        self._read_file()

    def _put_together(self) -> None:
        """Take those that lie in no file yet before all others: these are in order already."""
        self._past = (*reversed(self._seen.values()), *self._kept)[:MOST]
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
