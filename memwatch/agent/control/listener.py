"""Listens to the spool: commands to run at safe points, holds to honour, a state to tell.

A thread looks ten times a second and accepts or refuses; the work itself is done where the agent
comes by (`safe_point`), so an operation never meets a half-changed state. Only the process that
holds the run's lock listens, and never its forked children.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from memwatch.agent.context import Context
from memwatch.agent.control.holds import Holds
from memwatch.agent.control.jobs import Jobs
from memwatch.agent.control.mode import Mode
from memwatch.agent.control.operation import Operation
from memwatch.agent.control.spool import Spool
from memwatch.agent.control.state_file import StateFile
from memwatch.domain.errors import LogError
from memwatch.wal.segment import CONTROL_DIR
from memwatch.wal.spool_format import MAX_TTL_US, AgentState

POLL_S = 0.1
LIST_US = 2_000_000
"""The folders are listed this often even if their times did not change."""
SWEEP_US = 3600 * 1_000_000


class ControlListener:
    """The agent's side of the spool. Raises OSError where the spool cannot be ours."""

    def __init__(
        self, context: Context, operations: Mapping[str, Operation], mode: Mode | None = None
    ) -> None:
        self._context = context
        self._clock = context.clock
        self.mode = mode or Mode(context)
        self._spool = Spool(context.path / CONTROL_DIR, context.files)
        self._jobs = Jobs(context, self._spool, operations, self._facts, self._call)
        self._holds = Holds(context, self._spool, self._jobs.stale, self._jobs.refuse_unread)
        self._state = StateFile(self._spool, context.files)
        self._passed_us: int | None = None
        self._marker: tuple[int, int] | None = None
        self._listed_us = self._swept_us = 0
        self._trouble = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="memwatch-control", daemon=True)
        _listeners.add(self)

    def start(self) -> None:
        """Go on with what an earlier start was asked for and held by, then listen."""
        before = self._state.begin(self._spool)
        if before is not None:
            self.mode.gen, self._jobs.epoch = before.gen + 1, before.epoch
        self._jobs.recover()
        self._holds.read()
        with suppress(OSError):  # a full disk: the thread tries again
            self._go_on()
        self._thread.start()

    def stop(self, *, crashed: bool = False) -> None:
        """End the thread; what waits stays claimed and is found by the next start.

        But for a wish to end the run, unless it `crashed`: whoever starts it again may not know.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if not crashed:
            with suppress(OSError):
                self._jobs.run_ended()
        self.mode.ended()
        with suppress(OSError):
            self._state.keep(self.state())

    @property
    def waiting(self) -> bool:
        """Whether a command waits for a safe point."""
        return self._jobs.waiting

    def safe_point(self) -> None:
        """Run what waits; call it where the state is whole. Costs next to nothing mostly.

        Raises ExperimentAborted and RunEnded where that was asked for.
        """
        if self.mode.attention:
            self._passed_us = self._clock.boot_us()
            self._come_by(whole=True)

    def interruption_point(self) -> None:
        """Do only what needs no whole state: where a step or tool call begins.

        Raises ExperimentAborted where that was asked for.
        """
        if self.mode.attention:
            self._come_by(whole=False)

    def poll(self) -> None:
        """Look at the whole spool once: what the thread does; raises OSError."""
        self._list()
        self._go_on()

    def state(self) -> AgentState:
        """Return what the agent is doing now."""
        mode, now_us, passed_us = self.mode, self._clock.boot_us(), self._passed_us
        return AgentState(
            run_id=self._context.run_id,
            start_id=self._context.start_id,
            pid=os.getpid(),
            mode=mode.state,
            gen=mode.gen,
            epoch=self._jobs.epoch,
            holds=mode.hold_states(),
            busy=self._jobs.busy,
            since_safe_point_us=None if passed_us is None else now_us - passed_us,
            experiment=self._context.experiment,
            wall_us=self._clock.wall_us(),
            boot_us=now_us,
        )

    def _come_by(self, *, whole: bool) -> None:
        self._jobs.serve(whole=whole)
        # Should a command come in between, the thread's next look asks for attention again.
        self.mode.attention = self._jobs.waiting or self.mode.pressing
        self.mode.interrupt(whole=whole)

    def _listen(self) -> None:
        while not self._stop.wait(POLL_S):
            try:
                self._look()
            except OSError:  # a spool that cannot be read or written now is looked at again
                continue
            except Exception as error:  # noqa: BLE001 - an agent that is deaf is worse
                self._complain(f"{type(error).__name__}: {error}")

    def _look(self) -> None:
        now_us = self._clock.boot_us()
        try:
            marker = self._spool.marker()
            if marker != self._marker or now_us - self._listed_us >= LIST_US:
                self._list()
                self._marker = None if self._jobs.left_over else marker
                self._listed_us = now_us
        except FileNotFoundError:  # somebody removed it
            self._spool.prepare()
        finally:
            self._go_on()
        if now_us - self._swept_us >= SWEEP_US or not self._swept_us:
            self._swept_us = now_us
            self._spool.sweep(self._clock.wall_us() - MAX_TTL_US)

    def _list(self) -> None:
        self._jobs.take_published()
        self._holds.read()

    def _go_on(self) -> None:
        """Do what time alone calls for."""
        self._jobs.watch()
        self.mode.set_holds(self._holds.live())
        self.mode.look()
        self._call()  # also when nothing waits: so that we learn when the agent last came by
        self._state.keep(self.state())

    def _call(self) -> None:
        self.mode.attention = True

    def _facts(self) -> dict[str, Any]:
        return {
            "gen": self.mode.gen,
            "mode": self.mode.state,
            "experiment": self._context.experiment,
            "start_id": self._context.start_id,
        }

    def _complain(self, trouble: str) -> None:
        """Log what went wrong in the thread, once."""
        if trouble != self._trouble:
            self._trouble = trouble
            with suppress(LogError):
                self._context.record("error", {"kind": "control", "message": trouble[:200]})

    def _disown(self) -> None:
        """In a forked child: only the registered process obeys."""
        self._jobs.disown()


_listeners: weakref.WeakSet[ControlListener] = weakref.WeakSet()


def _disown_all() -> None:
    for listener in list(_listeners):
        listener._disown()


os.register_at_fork(after_in_child=_disown_all)
