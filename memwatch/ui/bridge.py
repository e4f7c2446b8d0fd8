"""Between the session, which blocks, and the screen, which must not.

Two daemon threads, each with a connection of its own: one waits for snapshots (the newest wins,
at most one per `refresh_s`), the other does what the screen asks for: series, events, commands.
Nothing here waits for them: quitting never depends on the other end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from memwatch.domain.errors import SessionError
from memwatch.runtime.protocol.numbers import GuardSilentError
from memwatch.ui.frame import Link
from memwatch.ui.messages import Answered, LinkChanged, SnapshotReady

if TYPE_CHECKING:
    from textual.message import Message

    from memwatch.domain.snapshot import Snapshot
    from memwatch.runtime.session import Session

Connect = Callable[[], "Session"]
Job = Callable[["Session"], object]
Result = TypeVar("Result")

TRIAL = "trial"
"""Slots of what a question to a person asks the agent begin so."""
LISTED = "rows "
"""Slots of what a long table asks the guard for begin so."""

_PATIENCE_S = 1.0
"""How long the guard may wait for news before it answers that there are none.

A guard that hangs does not answer at all: the screen looks at the age of the link by itself.
"""
_RETRY_S = (0.5, 1.0, 2.0, 3.0)


class Bridge:
    """Runs a session in threads and posts messages; see the module."""

    def __init__(
        self, connect: Connect, post: Callable[[Message], object], refresh_s: float
    ) -> None:
        self.refresh_s = refresh_s
        self._connect = connect
        self._post = post
        self._stopped = threading.Event()
        self._wake = threading.Condition()
        self._newest: Snapshot | None = None
        self._link = Link()
        self._jobs: dict[str, Job] = {}
        self._last_news = self._last_answer = time.monotonic()
        self._working = 0

    def start(self) -> None:
        """Start both threads."""
        for name, run in (("viewer-snapshots", self._follow), ("viewer-jobs", self._work)):
            threading.Thread(target=run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Tell the threads to end; does not wait for them."""
        self._stopped.set()
        with self._wake:
            self._wake.notify_all()

    def take(self) -> Snapshot | None:
        """Return the newest snapshot not taken yet."""
        with self._wake:
            snapshot, self._newest = self._newest, None
            return snapshot

    @property
    def link(self) -> Link:
        """State of the connection, with the age of the last news and of the last answer."""
        link, now = self._link, time.monotonic()
        return Link(
            state=link.state,
            why=link.why,
            age_s=now - self._last_news,
            quiet_s=now - self._last_answer,
        )

    def ask(self, slot: str, job: Job) -> None:
        """Have a job done with a session; one that still waits in the same slot is dropped.

        The outcome comes as `Answered`, in the order of asking.
        """
        with self._wake:
            self._jobs[slot] = job
            self._wake.notify_all()

    @property
    def unanswered(self) -> int:
        """How many jobs were asked for and neither answered nor replaced yet."""
        return len(self._jobs) + self._working

    # -- snapshots ---------------------------------------------------------------------------

    def _follow(self) -> None:
        tries = 0
        while not self._stopped.is_set():
            try:
                session = self._connect()
            except (SessionError, OSError) as error:
                self._lose(error)
                self._stopped.wait(_RETRY_S[min(tries, len(_RETRY_S) - 1)])
                tries += 1
                continue
            tries = 0
            try:
                self._follow_one(session)
            except (SessionError, OSError) as error:
                self._lose(error)
                self._stopped.wait(_RETRY_S[0])
            finally:
                _close(session)

    def _follow_one(self, session: Session) -> None:
        after = 0
        while not self._stopped.is_set():
            began = time.monotonic()
            snapshot = session.latest(after, _PATIENCE_S)
            self._last_answer = time.monotonic()
            if snapshot is None:
                self._tell(LinkChanged())
                continue
            after = snapshot.seq
            with self._wake:
                self._newest = snapshot
            self._last_news = self._last_answer
            self._link = Link(state="live")
            self._tell(SnapshotReady())
            self._stopped.wait(max(began + self.refresh_s - time.monotonic(), 0.02))

    def _lose(self, error: Exception) -> None:
        state: Literal["silent", "lost"] = "lost"
        if isinstance(error, GuardSilentError):
            state = "silent"
        self._link = Link(state=state, why=str(error))
        self._tell(LinkChanged())

    # -- jobs --------------------------------------------------------------------------------

    def _work(self) -> None:
        session: Session | None = None
        while True:
            found = self._next_job()
            if found is None:
                break
            slot, job = found
            try:
                session = session or self._connect()
                answer, error = job(session), ""
            except Exception as failure:  # noqa: BLE001 - a broken job is told, the thread lives on
                answer, error = None, str(failure) or type(failure).__name__
                _close(session)
                session = None
            self._tell(Answered(slot, answer, error))
            self._working = 0
        _close(session)

    def _next_job(self) -> tuple[str, Job] | None:
        """Wait for a job; None when it is time to end."""
        with self._wake:
            while not self._jobs:
                if self._stopped.is_set():
                    return None
                self._wake.wait()
            if self._stopped.is_set():
                return None
            slot = next(iter(self._jobs))
            self._working = 1
            return slot, self._jobs.pop(slot)

    def _tell(self, message: Message) -> None:
        if self._stopped.is_set():
            return
        try:
            self._post(message)
        except RuntimeError:  # the loop of the screen is closed: nobody listens any more
            self._stopped.set()


def _close(session: Session | None) -> None:
    if session is not None:
        try:
            session.close()
        except (SessionError, OSError):
            return
