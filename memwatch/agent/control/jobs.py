"""The life of a command: taken, judged, run at a safe point, answered; each id is obeyed once.

Whatever moment the agent is killed at, the next start finds in `cur/` and `ack/` how far it was:
not begun is run if still in time, begun is run again only where that is harmless, and is answered
`failed: interrupted` otherwise. Therefore what may not be done twice begins only when its answer
`running` is on the disk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from memwatch.agent.context import Context
from memwatch.agent.control.answers import Answers, tellable
from memwatch.agent.control.judge import UNKNOWN, Job, Judge
from memwatch.agent.control.operation import Later, Operation, RefusedError, Request
from memwatch.agent.control.spool import Spool
from memwatch.domain.command import FINAL_STATES
from memwatch.wal.spool_format import CUR, NEW, Ack, Busy, parse_name

REFRESH_US = 5_000_000
"""A running command says so again this often."""
MOST_WAITING = 100
"""Commands that may wait for a safe point, which runs all of them; the least urgent are refused."""
_TAKEN_AT_ONCE = MOST_WAITING
"""Of `new/`, before it is listed again: what is urgent does not wait behind a flood."""
_RETRY_US = 250_000
_OVERDUE = "its time to live passed before it ran"
_CROWDED = f"{MOST_WAITING} commands as urgent wait already: send it again when they are done"
_INTERRUPTED = "interrupted: its effect is unknown"
_DEADLINE = "deadline: it passed while this ran, its effect is unknown"


class Jobs:
    """All commands of one start. Thread-safe."""

    def __init__(
        self,
        context: Context,
        spool: Spool,
        operations: Mapping[str, Operation],
        facts: Callable[[], Mapping[str, Any]],
        call: Callable[[], None],
    ) -> None:
        """`facts` returns what a command may expect; `call` asks the agent to come by."""
        self._context = context
        self._clock = context.clock
        self._spool = spool
        self._operations = operations
        self._call = call
        self._judge = Judge(context, facts)
        self._answers = Answers(context, spool)
        self._lock = threading.RLock()
        self._waiting: list[Job] = []
        self._running: Job | None = None
        self.left_over = False
        """Whether more lies in `new/` than was taken."""
        self._later: list[Job] = []
        self._claimed: dict[str, str] = {}
        """Names in `cur/` of commands that have their end but not their answer."""

    @property
    def epoch(self) -> int:
        """Highest that was seen."""
        return self._judge.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._judge.epoch = epoch

    @property
    def waiting(self) -> bool:
        """Whether something waits for a safe point."""
        return bool(self._waiting)

    @property
    def busy(self) -> Busy | None:
        """What is done now: in the agent's thread, else behind it."""
        job = self._running or next(iter(self._later), None)
        if job is None:
            return None
        progress = tellable(job.later.progress) if job.later else {}
        return Busy(op=job.command.op, id=job.command.id, since_us=job.begun_us, progress=progress)

    def recover(self) -> None:
        """Take up what was claimed before a crash."""
        self._take_all(CUR)

    def take_published(self) -> None:
        """Take what lies in `new/`; raises OSError."""
        self._take_all(NEW)

    def watch(self) -> None:
        """Give up what is overdue, tell how far the rest is, write answers that are late."""
        with self._lock:
            for command_id in self._answers.publish_late():
                name = self._claimed.pop(command_id, None)
                if name is not None:
                    self._spool.drop(CUR, name)
            for job in [job for job in self._waiting if self._judge.is_overdue(job)]:
                self._waiting.remove(job)
                self._finish(job, "expired", _OVERDUE)
            for job in self._at_work():
                self._watch(job)

    def serve(self, *, whole: bool) -> None:
        """Run what waits, in the thread that calls; without `whole` only what may run anywhere."""
        for _ in range(MOST_WAITING):  # what is published meanwhile does not keep the agent here
            job = self._begin_next(whole)
            if job is None:
                return
            self._run(job)

    def stale(self, epoch: int | None) -> str:
        """Return why an epoch is over, or nothing; a higher one ends those before it."""
        with self._lock:
            return self._judge.stale(epoch)

    def refuse_unread(self, command_id: str, why: str) -> None:
        """Answer a file that was no command or hold, as far as it says whom to answer."""
        with self._lock:
            self._answers.refuse_unread(command_id, why)

    def run_ended(self) -> None:
        """Answer what waits for the run to end: it has."""
        with self._lock:
            for job in [job for job in self._waiting if job.operation.ends_run]:
                self._waiting.remove(job)
                self._finish(job, "done", "the run ended before")

    def disown(self) -> None:
        """In a forked child: only the registered process obeys."""
        self._lock = threading.RLock()
        self._waiting, self._running, self._later = [], None, []

    # Below: called with the lock held, unless said otherwise.

    def _take_all(self, folder: str) -> None:
        """Take what lies in a folder. Called without the lock: each file takes it."""
        names = self._spool.names(folder)
        if folder == NEW:
            self.left_over = len(names) > _TAKEN_AT_ONCE
            del names[_TAKEN_AT_ONCE:]
        for name in names:
            with self._lock, suppress(OSError):  # one bad file does not hold up the others
                self._take(folder, name)

    def _take(self, folder: str, name: str) -> None:
        parsed = parse_name(name)
        before = self._spool.ack(parsed[1]) if parsed else None
        if parsed and self._is_known(parsed[1], before):
            self._spool.drop(folder, name)
            return
        try:
            command, written_us = self._spool.read(folder, name)
        except FileNotFoundError:
            return
        except RefusedError as error:
            self._spool.set_aside(folder, name)
            self._answers.refuse_unread(parsed[1] if parsed else "", str(error))
            return
        job = Job(
            name=name,
            command=command,
            operation=self._operations.get(command.op, UNKNOWN),
            written_us=written_us,
            accepted_us=self._clock.boot_us(),
            experiment=self._context.experiment,
            ack=before or self._answers.blank(command.id),
        )
        if folder == NEW:
            self._spool.claim(name)
        self._admit(job, begun=before is not None and before.state == "running")

    def _is_known(self, command_id: str, before: Ack | None) -> bool:
        if before is not None and before.state in FINAL_STATES:
            return True
        at_work = (job.command.id for job in (*self._waiting, *self._at_work()))
        return command_id in self._claimed or command_id in at_work

    def _admit(self, job: Job, *, begun: bool) -> None:
        if refusal := self._judge.refusal(job):
            self._finish(job, "refused", refusal)
        elif begun and not (job.operation.idempotent or job.command.dry_run):
            self._finish(job, "failed", _INTERRUPTED)
        elif self._judge.is_overdue(job):
            self._finish(job, "expired", _OVERDUE)
        elif unmet := self._judge.unmet(job):
            self._finish(job, "refused", unmet)
        else:
            self._waiting.append(job)
            self._waiting.sort(key=lambda waiting: waiting.name[0])
            last = self._waiting.pop() if len(self._waiting) > MOST_WAITING else None
            if last is not job:
                self._call()  # first: whoever reads the answer may count on it
                self._answer(job, "accepted")
            if last is not None:
                self._finish(last, "refused", _CROWDED)

    def _at_work(self) -> list[Job]:
        return ([self._running] if self._running else []) + self._later

    def _watch(self, job: Job) -> None:
        now_us = self._clock.boot_us()
        if job.final:
            return
        if now_us - job.accepted_us > job.command.deadline_us:
            self._finish(job, "failed", _DEADLINE)
            if job.later is not None:
                job.later.cancel()
        elif now_us - job.ack.boot_us >= REFRESH_US:
            progress = job.later.progress if job.later else {}
            self._answer(job, "running", result=progress, logged=False)

    def _begin_next(self, whole: bool) -> Job | None:
        """Return the next job, begun. Called without the lock."""
        with self._lock:
            if self._running is not None:  # in another thread, or further up in this one
                return None
            behind = {job.command.op for job in self._later}
            now_us = self._clock.boot_us()
            for job in list(self._waiting):
                if now_us < job.retry_us or job.command.op in behind:
                    continue
                if (whole or job.operation.anywhere) and self._is_ready(job) and self._begin(job):
                    return job
        return None

    def _is_ready(self, job: Job) -> bool:
        try:
            return job.operation.ready()
        except Exception as error:  # noqa: BLE001 - the agent's code: its answer, as in `_run`
            self._waiting.remove(job)
            self._finish(job, "failed", f"its ready() failed: {str(error) or type(error).__name__}")
            return False

    def _begin(self, job: Job) -> bool:
        """Leave the queue; false when the job is not to be run, or not now."""
        late, unmet = self._judge.is_overdue(job), self._judge.unmet(job)
        if not (late or unmet):
            ack = self._answers.next(job.ack, "running", "", {})
            if not self._answers.publish(ack) and not job.operation.idempotent:
                self._answers.withdraw(ack.id)
                job.retry_us = self._clock.boot_us() + _RETRY_US
                return False
            job.ack, job.begun_us = ack, ack.boot_us
            self._log(job)
            self._running = job
        self._waiting.remove(job)
        if late:
            self._finish(job, "expired", _OVERDUE)
        elif unmet:
            self._finish(job, "refused", unmet)
        return not job.final

    def _run(self, job: Job) -> None:
        """Do the work; called without the lock."""
        command = job.command
        request = Request(
            command.args,
            command_id=command.id,
            origin=command.by.origin,
            dry_run=command.dry_run,
        )
        try:
            result = job.operation.run(request)
        except RefusedError as error:
            self._end(job, "refused", str(error), {})
        except Exception as error:  # noqa: BLE001 - whatever an operation raises is its answer
            self._end(job, "failed", str(error) or type(error).__name__, {})
        except BaseException as error:
            self._end(job, "failed", f"interrupted by {type(error).__name__}", {})
            raise
        else:
            if isinstance(result, Later):
                self._put_behind(job, result)
            else:
                self._end(job, "done", "", result)

    def _put_behind(self, job: Job, later: Later) -> None:
        with self._lock:
            job.later, self._running = later, None
            self._later.append(job)
        later.when_ended(partial(self._end, job))

    def _end(self, job: Job, state: str, detail: str, result: dict[str, Any]) -> None:
        """Finish what was run. Called without the lock, from any thread."""
        with self._lock:
            try:
                self._finish(job, state, detail, result)
            finally:  # also where an interrupt comes: or nothing would be run any more
                if self._running is job:
                    self._running = None

    def _finish(
        self, job: Job, state: str, detail: str = "", result: dict[str, Any] | None = None
    ) -> None:
        """Give the last answer, unless it was given before."""
        if job.final:
            return
        self._answer(job, state, detail, result)
        if job.later is not None:
            self._later.remove(job)
        if self._answers.is_late(job.command.id):
            self._claimed[job.command.id] = job.name
        else:
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
        job.ack = self._answers.next(job.ack, state, detail, result or {})
        self._answers.publish(job.ack)
        if logged:
            self._log(job)

    def _log(self, job: Job) -> None:
        command = job.command
        self._answers.log(job.ack, command.op, command.by.origin, dry_run=command.dry_run)
