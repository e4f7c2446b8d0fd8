"""Takes checkpoints: captured where the agent stands, written by a thread of its own.

    if checkpoints.pressing and (kind := checkpoints.due()):
        checkpoints.take(kind, wait=False)

belongs to a safe point of the agent. `take` waits for the capture only, which copies nothing: some
microseconds, however much is held. Encoding, hashing, compressing, syncing and the commit are the
thread's. A checkpoint that fails is logged, tried again later, and never raises.
Sources: requirements R5, R6, R7.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Literal, overload

from memwatch.agent.checkpoints.cadence import Kind, Mark, Schedule
from memwatch.agent.checkpoints.outcome import Outcome, words
from memwatch.agent.checkpoints.turn import Turn
from memwatch.agent.context import Context
from memwatch.agent.journal import Journal
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types
from memwatch.domain.errors import LogError
from memwatch.domain.policy import Cadence
from memwatch.domain.text import inert

if TYPE_CHECKING:
    from memwatch.agent.checkpoints.capture import Captured

__all__ = ["Checkpointer", "Kind", "Outcome"]

LOOK_S: Final = 1.0
"""How often the thread looks whether one became due by time."""


class _Job:
    """One checkpoint between capture and outcome."""

    def __init__(
        self, captured: Captured, mark: Mark, tell: Callable[[Outcome], None], token: object
    ) -> None:
        self.captured = captured
        self.token = token
        self.mark = mark
        self.tell = tell
        self.outcome: Outcome | None = None
        self.done = threading.Event()


class Checkpointer:
    """The checkpoints of one run. Safe to call from any thread; a forked child takes none."""

    def __init__(
        self,
        context: Context,
        tiers: Tiers,
        cadence: Cadence | None = None,
        *,
        types: Types,
        blobs: BlobStore,
        journal: Journal,
    ) -> None:
        # Half of this package: who opens a run needs it, who imports the library may not.
        from memwatch.agent.checkpoints.chain import Chain

        self._clock, self._record = context.clock, context.record
        self._chain = Chain(context, tiers, types, blobs, journal)
        self._schedule = Schedule(cadence or Cadence(), self._clock.boot_us())
        self.pressing = False
        """Whether one is due: all that a safe point has to look at."""
        self._refusal = ""
        self._turn = Turn()
        """Held from a capture to its outcome: one checkpoint at a time."""
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="memwatch-checkpoints", daemon=True)
        _checkpointers.add(self)
        self._thread.start()

    def resume(
        self,
        base: str | None,
        last_lsn: int,
        chain_bytes: int = 0,
        experiments_since_any: int = 0,
        experiments_since_full: int = 0,
    ) -> None:
        """Go on with the chain that a recovery went by.

        Without a base, as after a recovery that lost something, a full one is due at once.
        """
        self._chain.resume(base, last_lsn)
        if base is None:
            self._schedule.owe_full()
        else:
            self._schedule.resume(experiments_since_any, experiments_since_full, chain_bytes)
        self.look()

    @property
    def busy(self) -> bool:
        """Whether one is in progress."""
        return self._turn.taken

    def experiment_finished(self) -> None:
        """Count an experiment; failed ones count, aborted ones are not told here (R5)."""
        self._schedule.experiment_finished()
        self.look()

    def due(self) -> Kind | None:
        """Return which kind is due now; None while one is being written."""
        if self._refusal or self.busy:
            return None
        return self._schedule.due(self._clock.boot_us())

    def look(self) -> None:
        """Bring `pressing` up to date: what the thread does each second."""
        self.pressing = self.due() is not None

    @overload
    def take(self, kind: Kind, wait: Literal[True] = True) -> Outcome: ...
    @overload
    def take(
        self, kind: Kind, wait: bool, tell: Callable[[Outcome], None] = ...
    ) -> Outcome | None: ...
    def take(
        self, kind: Kind, wait: bool = True, tell: Callable[[Outcome], None] = lambda _: None
    ) -> Outcome | None:
        """Take a checkpoint now; never raises for what goes wrong with it: see the outcome.

        With `wait` the caller waits for the outcome, and for that of one in progress before it;
        the tiers' lock must not be held then. Without it None is returned once it is begun, and
        `tell` is called with the outcome by the thread; while another is in progress nothing is
        begun, and the outcome says so.
        """
        if self._refusal:
            return Outcome(id="", kind=kind, committed=False, reason=self._refusal)
        token = object()
        try:
            if not self._turn.take(token, wait=wait):
                busy = "another one is in progress"
                return Outcome(id="", kind=kind, committed=False, reason=busy)
            if self._refusal:  # it was closed while we waited
                self._turn.leave(token)
                return Outcome(id="", kind=kind, committed=False, reason=self._refusal)
            self.pressing = False
            mark = self._schedule.mark(self._clock.boot_us())
            job = _Job(self._chain.capture(kind), mark, tell, token)
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            self._turn.leave(token)
            return self._failed(kind, error)
        except BaseException:
            self._build_anew()
            self._turn.leave(token)
            raise
        self._jobs.put(job)
        if not wait:
            return None
        job.done.wait()
        return job.outcome

    def close(self) -> None:
        """Wait for the one in progress, then take no more."""
        if self._refusal:
            return
        token = object()
        self._turn.take(token, wait=True)
        self._refusal = "the run is closed"
        self._turn.leave(token)
        self.pressing = False
        self._jobs.put(None)
        self._thread.join()

    # Below: the thread.

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=LOOK_S)
            except Empty:
                self.look()
                continue
            if job is None:
                return
            self._complete(job)

    def _complete(self, job: _Job) -> None:
        job.outcome = outcome = self._extend(job)
        self._turn.leave(job.token)
        self.look()
        job.done.set()
        try:
            job.tell(outcome)
        except Exception as error:  # noqa: BLE001 - who was told failed: the thread goes on
            message = f"the outcome of {outcome.id} could not be told: {words(error)}"
            with suppress(LogError):
                self._record("error", {"kind": "checkpoint", "message": inert(message, 300)})

    def _extend(self, job: _Job) -> Outcome:
        try:
            outcome = self._chain.extend(job.captured)
        except Exception as error:  # noqa: BLE001 - or nobody would take the next one
            return self._failed(job.captured.header.kind, error)
        if outcome.committed:
            self._schedule.committed(outcome.kind, job.mark, outcome.bytes)
        else:
            self._schedule.failed(self._clock.boot_us())
        return outcome

    def _build_anew(self) -> None:
        """Make the next one full: nobody knows how much of the changes was taken hold of."""
        self._chain.break_off()
        self._schedule.owe_full()

    def _failed(self, kind: Kind, error: Exception) -> Outcome:
        self._build_anew()
        self._schedule.failed(self._clock.boot_us())
        return Outcome(id="", kind=kind, committed=False, reason=words(error))

    def _disown(self) -> None:
        """In a forked child: no thread of ours runs there, and nothing is written."""
        self._refusal = "this run belongs to the parent process; a forked child takes no checkpoint"
        self.pressing = False
        self._turn = Turn()


_checkpointers: weakref.WeakSet[Checkpointer] = weakref.WeakSet()


def _disown_all() -> None:
    for checkpointer in list(_checkpointers):
        checkpointer._disown()


os.register_at_fork(after_in_child=_disown_all)
