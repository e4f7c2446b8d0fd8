"""Takes commands from the spool and runs them at safe points of the agent's own loop.

A thread looks at the spool ten times a second and accepts or refuses; the work itself is done by
`safe_point`, so an operation never meets a half-changed state. Each step is answered in `ack/`
and logged as a `command` record. An id is obeyed once: sent again, it finds its first answer.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.control.spool import RefusedError, Spool
from memwatch.domain.command import FINAL_STATES
from memwatch.domain.errors import LogError
from memwatch.domain.text import inert
from memwatch.wal.segment import CONTROL_DIR
from memwatch.wal.spool_format import CUR, NEW, Ack, CommandFile, parse_name

POLL_S = 0.1
LIST_S = 2.0
"""The folder is listed this often even if its time did not change."""
REFRESH_US = 5_000_000
"""A running command says so again this often."""
KEEP_ACKS_US = 7 * 86_400 * 1_000_000
SWEEP_S = 3600.0


class Operation(Struct, frozen=True, kw_only=True):
    """Something that an agent does on request."""

    run: Callable[[dict[str, Any]], dict[str, Any]]
    """Takes the arguments, returns the result; an exception becomes `failed` with its text."""
    about: str = ""
    args: dict[str, str] = {}
    """Names and meaning of the arguments, told to people in run.json."""
    idempotent: bool = True
    """After a crash in the middle it may simply be run again."""


class Job(Struct):
    """A command in work."""

    name: str
    command: CommandFile
    accepted_us: int
    ack: Ack


class ControlListener:
    """The agent's side of the spool."""

    def __init__(self, context: Context, operations: Mapping[str, Operation]) -> None:
        self._context = context
        self._clock = context.clock
        self._operations = operations
        self._spool = Spool(context.path / CONTROL_DIR, context.files)
        self._lock = threading.RLock()
        self._waiting: list[Job] = []
        self._running: Job | None = None
        self._unwritten: dict[str, Ack] = {}
        self._first_seen_us: dict[str, int] = {}
        self._epoch = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="memwatch-control", daemon=True)
        _listeners.add(self)

    def start(self) -> None:
        """Go on with what an earlier start claimed, then listen."""
        self._recover()
        self._thread.start()

    def stop(self) -> None:
        """End the thread; what waits stays claimed and is found by the next start."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def waiting(self) -> bool:
        """Whether `safe_point` has something to do."""
        return bool(self._waiting)

    def safe_point(self) -> None:
        """Run what waits; costs next to nothing when nothing does."""
        while self._waiting:
            with self._lock:
                if not self._waiting:
                    return
                job = self._running = self._waiting.pop(0)
                if self._is_late(job.command):
                    self._finish(job, "expired", "its time to live passed before it ran")
                    continue
                self._answer(job, "running")
            state, detail, result = self._run(job)
            with self._lock:
                self._finish(job, state, detail, result)

    def poll(self) -> None:
        """Look at the spool once: what the thread does."""
        with self._lock:
            self._write_late_acks()
            self._watch_running()
        for name in self._spool.names(NEW):
            with self._lock, suppress(OSError):  # one bad file does not hold up the others
                self._take(name)

    # Below: called with the lock held, unless said otherwise.

    def _listen(self) -> None:
        marker, listed, swept = 0, 0.0, -SWEEP_S
        while not self._stop.wait(POLL_S):
            now = time.monotonic()
            with suppress(OSError):  # a spool that cannot be read now is looked at again
                seen = self._spool.marker()
                if seen != marker or now - listed >= LIST_S or self._running or self._unwritten:
                    marker, listed = seen, now
                    self.poll()
                if now - swept >= SWEEP_S:
                    swept = now
                    self._spool.sweep(self._clock.wall_us() - KEEP_ACKS_US)

    def _recover(self) -> None:
        """Take up what was claimed before a crash; what may be half done is not always redone."""
        for name in self._spool.names(CUR):
            with self._lock, suppress(OSError):
                self._take(name, CUR)

    def _take(self, name: str, folder: str = NEW) -> None:
        parsed = parse_name(name)
        before = self._spool.ack(parsed[1]) if parsed else None
        if parsed and self._is_known(parsed[1], before):
            self._spool.drop(folder, name)
            return
        try:
            command = self._spool.read(folder, name)
        except FileNotFoundError:
            return
        except RefusedError as error:
            self._spool.set_aside(folder, name)
            self._refuse_unread(parsed[1] if parsed else "", str(error))
            return
        job = Job(name, command, self._clock.boot_us(), before or self._blank(command.id))
        if folder == NEW:
            self._spool.claim(name)
        self._judge(job, interrupted=before is not None and before.state == "running")

    def _is_known(self, command_id: str, before: Ack | None) -> bool:
        at_work = [self._running, *self._waiting]
        return (before is not None and before.state in FINAL_STATES) or any(
            job is not None and job.command.id == command_id for job in at_work
        )

    def _judge(self, job: Job, *, interrupted: bool) -> None:
        command, operation = job.command, self._operations.get(job.command.op)
        self._first_seen_us.setdefault(command.id, job.accepted_us)
        if command.run_id != self._context.run_id:
            self._finish(job, "refused", "wrong_run: it names another run")
        elif not_offered := self._not_offered(command):
            self._finish(job, "refused", not_offered)
        elif operation is None:
            self._finish(job, "refused", f"unsupported: this agent has no {command.op}")
        elif unknown := set(command.args) - set(operation.args):
            self._finish(job, "refused", f"unknown arguments: {', '.join(sorted(unknown))}")
        elif interrupted and not operation.idempotent:
            self._finish(job, "failed", "interrupted: its effect is unknown")
        elif self._is_late(command):
            self._finish(job, "expired", "its time to live passed before it ran")
        else:
            self._answer(job, "accepted")
            self._waiting.append(job)
            self._waiting.sort(key=lambda waiting: waiting.name[0])

    def _not_offered(self, command: CommandFile) -> str:
        """Return why a command cannot be taken as it is meant, or nothing.

        To act without a condition that was set would be worse than not to act.
        """
        if command.dry_run:
            return "unsupported: this agent offers no dry run; nothing was done"
        if command.confirm is not None:
            return "unsupported: this agent asks for no confirmation and can check none"
        if command.expect:
            return f"unsupported: this agent does not state {', '.join(sorted(command.expect))}"
        if command.epoch is not None and command.epoch < self._epoch:
            return f"stale: epoch {command.epoch} is over, {self._epoch} was seen"
        self._epoch = max(self._epoch, command.epoch or 0)
        return ""

    def _is_late(self, command: CommandFile) -> bool:
        age_us = self._clock.wall_us() - command.issued_us
        seen_us = self._first_seen_us.get(command.id)
        if seen_us is not None:  # the wall clock may have been set back meanwhile
            age_us = max(age_us, self._clock.boot_us() - seen_us)
        return age_us > command.ttl_us

    def _watch_running(self) -> None:
        job = self._running
        if job is None or job.ack.state in FINAL_STATES:
            return
        now_us = self._clock.boot_us()
        if now_us - job.accepted_us > job.command.deadline_us:
            detail = "its deadline passed while it ran: its effect is unknown"
            self._answer(job, "failed", detail)
        elif job.ack.state == "running" and now_us - job.ack.boot_us >= REFRESH_US:
            self._answer(job, "running", logged=False)

    def _run(self, job: Job) -> tuple[str, str, dict[str, Any]]:
        """Do the work; called without the lock."""
        try:
            result = self._operations[job.command.op].run(job.command.args)
        except Exception as error:  # noqa: BLE001 - whatever an operation raises is its answer
            return "failed", str(error) or type(error).__name__, {}
        return "done", "", result

    def _finish(
        self, job: Job, state: str, detail: str = "", result: dict[str, Any] | None = None
    ) -> None:
        if job.ack.state not in FINAL_STATES:
            self._answer(job, state, detail, result)
        if self._running is job:
            self._running = None
        self._first_seen_us.pop(job.command.id, None)
        if job.command.id not in self._unwritten:
            self._spool.drop(CUR, job.name)

    def _answer(
        self,
        job: Job,
        state: str,
        detail: str = "",
        result: dict[str, Any] | None = None,
        *,
        logged: bool = True,
    ) -> None:
        job.ack = self._next(job.ack, state, inert(detail), result or {})
        self._publish(job.ack)
        if logged:
            self._log(job.ack, job.command.op, job.command.by.origin)

    def _refuse_unread(self, command_id: str, why: str) -> None:
        """Answer a file that was no command, if its name says whom to answer."""
        blank = self._next(self._blank(command_id or "-"), "refused", inert(why), {})
        if command_id and self._spool.ack(command_id) is None:
            self._publish(blank)
        self._log(blank, "?", "unknown")

    def _blank(self, command_id: str) -> Ack:
        return Ack(
            id=command_id,
            run_id=self._context.run_id,
            seq=0,
            state="",
            wall_us=0,
            boot_us=0,
            pid=os.getpid(),
        )

    def _next(self, ack: Ack, state: str, detail: str, result: dict[str, Any]) -> Ack:
        return Ack(
            id=ack.id,
            run_id=self._context.run_id,
            seq=ack.seq + 1,
            state=state,
            wall_us=self._clock.wall_us(),
            boot_us=self._clock.boot_us(),
            pid=os.getpid(),
            detail=detail,
            result=result,
        )

    def _publish(self, ack: Ack) -> None:
        try:
            self._spool.write_ack(ack)
            self._unwritten.pop(ack.id, None)
        except OSError:  # a full disk: the poll tries again until it is out
            self._unwritten[ack.id] = ack

    def _write_late_acks(self) -> None:
        for ack in list(self._unwritten.values()):
            self._publish(ack)

    def _log(self, ack: Ack, op: str, origin: str) -> None:
        members: dict[str, Any] = {"id": ack.id, "op": inert(op, 60), "state": ack.state}
        members |= {"detail": ack.detail, "result": ack.result, "origin": inert(origin, 40)}
        with suppress(LogError):  # the answer in the spool stands without it
            self._context.record("command", members)

    def _disown(self) -> None:
        """In a forked child: only the registered process obeys."""
        self._lock = threading.RLock()
        self._waiting, self._running = [], None


_listeners: weakref.WeakSet[ControlListener] = weakref.WeakSet()


def _disown_all() -> None:
    for listener in list(_listeners):
        listener._disown()


os.register_at_fork(after_in_child=_disown_all)
