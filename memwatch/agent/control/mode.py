"""What the agent may do now: its mode, the gate before experiments, aborts and ends.

The mode follows from what holds (pause, read-only), from a log that cannot be written, from an
abort or end that was asked for, and from whether an experiment is in progress. Nothing here stops
a thread from outside: an abort is raised where the agent itself comes by. Source: R8, R9, D6.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.control.holder import Holder
from memwatch.agent.control.holds import Hold
from memwatch.domain.errors import LogError, ReadOnlyError
from memwatch.domain.text import inert
from memwatch.wal.spool_format import HoldState, ModeName

WAKE_S = 0.05
"""One who waits at the gate looks this often whether there is work."""
RETRY_US = 250_000
"""A log that could not be written is tried again this often."""
REST_US = 1_000_000
"""After an abort by the engine no experiment begins for so long: it holds the run next (R8)."""
_UNTOLD = 32


class ExperimentAborted(BaseException):
    """The experiment in progress was aborted from outside; the agent goes on without it.

    Raised at every safe point, step and tool call of the experiment's thread (in an event loop: of
    its task and those begun by it) until the experiment has ended. Let it pass:
    `with run.experiment(...)` takes it, also out of the group of exceptions of a task group.
    """


UNWINDING: Final = (ExperimentAborted, ReadOnlyError)
"""What ends the experiment in progress where nobody catches it, and nothing else of the agent."""


class RunEnded(SystemExit):
    """The run was ended from outside, its state is saved; raised at every safe point from then."""

    def __str__(self) -> str:
        """Return what the log says as the reason."""
        return "ended from outside"


class Abort(Struct):
    """An experiment that was asked to end."""

    number: int | None
    """None: it ended by itself meanwhile."""
    finish: Callable[[bool], None]
    """Saves and answers, once, at the first safe point after its end; told whether the abort was
    raised in it, or it ended by itself. Never raises."""
    rest_us: int
    """Time after it in which no experiment begins."""
    raised: bool = False
    begun: bool = False


class End(Struct):
    """A run that was asked to end."""

    finish: Callable[[], bool]
    """Saves and answers; false lets the run go on. Never raises."""
    due_us: int
    """Boot clock: an experiment in progress may go on until then."""
    why: str
    begun: bool = False
    over: bool = False


class Mode:
    """One for a run. Thread-safe; none of its calls waits for anybody but the gates."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.RLock()
        self.state: ModeName = "running"
        self.gen = 0
        """Rises with each change of mode or holds."""
        self.attention = False
        """The one thing that a safe point looks at: something waits for it."""
        self._holds: tuple[Hold, ...] = ()
        self._log_failure = ""
        self._retry_us = 0
        self._untold: deque[tuple[ModeName, str]] = deque(maxlen=_UNTOLD)
        self._refusal = ""
        """Why nothing may change; empty when it may."""
        self._open = threading.Event()
        self._open.set()
        self._holder: Holder | None = None
        self._abort: Abort | None = None
        self._end: End | None = None
        self._rests_until_us = 0
        """Boot clock."""
        self._over = False
        context.check_writable = self.check_writable
        context.log_failed = self.log_failed
        _modes.add(self)

    def check_writable(self) -> None:
        """Raise ReadOnlyError, which names who, why, and how it ends, where nothing may change."""
        if self._refusal:
            raise ReadOnlyError(self._refusal)

    def gate(self, safe_point: Callable[[], object]) -> None:
        """Wait until an experiment may begin, and do meanwhile what waits for a safe point."""
        while True:
            if self.attention:
                safe_point()
            if self._open.is_set():
                return
            self._open.wait(WAKE_S)

    async def gate_async(self, safe_point: Callable[[], object]) -> None:
        """Do as `gate` does without holding up the event loop."""
        from asyncio import sleep  # not loaded by an agent that uses no event loop

        while True:
            if self.attention:
                safe_point()
            if self._open.is_set():
                return
            await sleep(WAKE_S)

    def experiment_began(self) -> None:
        """Say that an experiment is in progress, in this thread or task."""
        self._holder = Holder()
        if not self._open.is_set():
            self.look()

    def experiment_ended(self) -> None:
        """Say that it has ended: what an abort left to do is done at the next safe point."""
        self._holder = None
        if self._abort is not None or not self._open.is_set():
            self.look()

    def ended(self) -> None:
        """Say that the run is over; in the log the record `run.end` says it."""
        with self._lock:
            self._over, self.state, self.attention, self._refusal = True, "ended", False, ""
            self.gen += 1
            self._open.set()

    # Below: for the control listener and its operations.

    @property
    def in_experiment(self) -> bool:
        """Whether an experiment is in progress."""
        return self._context.experiment is not None

    @property
    def pressing(self) -> bool:
        """Whether every safe point must come by: an abort or an end was asked for."""
        return self._abort is not None or self._end is not None

    def abort(self, finish: Callable[[bool], None], why: str, rest_us: int = 0) -> None:
        """Abort the experiment in progress, see `Abort`."""
        with self._lock:
            self._abort = Abort(self._context.experiment, finish, rest_us)
            self.attention = True
            self._settle(why)

    def end(self, end: End) -> None:
        """End the run at the first safe point outside of an experiment, or when it is due."""
        with self._lock:
            self._end = end
            self.attention = True
            self._settle(end.why)

    def cancel_abort(self) -> None:
        """Let the experiment go on after all, if it is still there."""
        with self._lock:
            self._abort = None
            self._settle("the abort came too late")

    def interrupt(self, *, whole: bool) -> None:
        """Raise or finish what was asked for, where its time has come.

        Without `whole`, where the state may be half changed, only an abort is raised.
        """
        abort = self._abort
        if abort is not None and abort.number == self._context.experiment is not None:
            if self._holder is not None and self._holder.is_here():
                abort.raised = True
                raise ExperimentAborted("the experiment was aborted from outside")
        elif abort is not None and whole:
            self._finish_abort(abort)
        if self._end is not None and whole:
            self._finish_end()

    def _finish_abort(self, abort: Abort) -> None:
        with self._lock:  # two threads may come by
            if abort.begun:
                return
            abort.begun = True
        abort.finish(abort.raised)
        with self._lock:
            self._rests_until_us = self._context.clock.boot_us() + abort.rest_us
            if self._abort is abort:  # and not the next one
                self._abort = None
            self._settle("the experiment was aborted")

    def _finish_end(self) -> None:
        with self._lock:
            end = self._end
            if end is None or not (end.over or self._is_due(end)):
                return
            end.begun = True
        if not end.over and not end.finish():
            with self._lock:
                self._end = None
                self._settle("the run was not ended")
            return
        end.over = True
        raise RunEnded(0)

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """Replace what holds."""
        with self._lock:
            if _keys(holds) != _keys(self._holds):
                self.gen += 1
            self._holds = tuple(holds)
            self._settle()

    def hold_states(self) -> list[HoldState]:
        """Return what is made of each hold."""
        drained = not self.in_experiment
        return [hold.told_back(drained=drained) for hold in self._holds]

    def log_failed(self, error: LogError) -> None:
        """Be read-only until a record can be written again."""
        with self._lock:
            if not self._log_failure and not self._over:
                self._log_failure = inert(str(error))
                self._retry_us = self._context.clock.boot_us() + RETRY_US
                self._settle(always=True)

    def look(self) -> None:
        """Notice a log that fails, or works again: called ten times a second."""
        with self._lock:
            failure = self._context.log.failed
            if failure and not self._log_failure:
                self.log_failed(LogError(failure))
            now_us = self._context.clock.boot_us()
            if self._untold and now_us >= self._retry_us:
                self._retry_us = now_us + RETRY_US
                if self._tell() and self._log_failure:
                    self._log_failure = ""
                    self._settle("the log can be written again", always=True)
            self._settle()

    # Below: called with the lock held.

    def _settle(self, cause: str = "nothing holds it any more", *, always: bool = False) -> None:
        """Derive mode, gate and refusal from what is so; tell a change of mode."""
        if self._over:
            return
        self._refusal = self._why_read_only()
        rests = self._abort or self._context.clock.boot_us() < self._rests_until_us
        if self._holds or self._log_failure or self._end is not None or rests:
            self._open.clear()
        else:
            self._open.set()
        state, blamed = self._derived()
        if state != self.state or always:
            self.gen += state != self.state
            self.state = state
            self._untold.append((state, blamed or cause))
            self._tell()

    def _derived(self) -> tuple[ModeName, str]:
        """Return the mode, and what it is due to where that is a hold or the log."""
        if self._abort is not None:
            return "aborting", ""
        if self._log_failure:
            return "read_only", f"log: {self._log_failure}"
        for hold in self._holds:
            if hold.file.op == "read_only":
                return "read_only", hold.about
        for hold in self._holds:
            return ("draining" if self.in_experiment else "paused"), hold.about
        return ("running" if self._end is None else "draining"), ""

    def _why_read_only(self) -> str:
        if self._log_failure:
            return (
                f"the run is read-only, as its log cannot be written ({self._log_failure}); "
                "it ends by itself as soon as it can"
            )
        for hold in self._holds:
            if hold.file.op == "read_only":
                ends = "deleted" if hold.ends_us is None else "deleted or no longer renewed"
                return f"the run is read-only ({hold.about}); it ends when that hold is {ends}"
        return ""

    def _is_due(self, end: End) -> bool:
        over = self._context.clock.boot_us() >= end.due_us
        return not end.begun and (over or not self.in_experiment)

    def _tell(self) -> bool:
        """Log the changes of mode that are not logged yet; say whether all are."""
        number = self._context.experiment
        where = {} if number is None else {"x": number}
        while self._untold:
            mode, cause = self._untold[0]
            try:  # not by the context, which would tell us of the failure
                self._context.log.append("mode", {**where, "mode": mode, "cause": inert(cause)})
            except LogError as error:
                self.log_failed(error)
                return False
            self._untold.popleft()
        return True

    def _disown(self) -> None:
        """In a forked child: nothing holds it, as its log refuses it anyway."""
        self._lock, self._open = threading.RLock(), threading.Event()
        self._abort = self._end = None
        self.ended()


def _keys(holds: Sequence[Hold]) -> list[tuple[str, str]]:
    return [(hold.name, hold.file.id) for hold in holds]


_modes: weakref.WeakSet[Mode] = weakref.WeakSet()


def _disown_all() -> None:
    for mode in list(_modes):
        mode._disown()


os.register_at_fork(after_in_child=_disown_all)
