"""Notices of one channel on their way: held in quiet hours, tried again later and later.

A channel that hangs delays no other: each has a queue and a thread of its own. A newer notice of
the same key takes the place of one that was not sent yet, so that nobody reads in the morning of
an alarm without its all-clear. Source: D7.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from memwatch.actuators.notify.deliver import Outcome
from memwatch.actuators.notify.notice import Notice
from memwatch.domain.clock import Clock
from memwatch.domain.control import ChannelInfo

MOST_WAITING = 64
FIRST_AGAIN_S = 5.0
FACTOR = 3.0
LONGEST_AGAIN_S = 600.0
_QUIET_LOOK_S = 30.0

AttemptState = Literal["sent", "failed", "held"]
Send = Callable[[Notice], Outcome]
Quiet = Callable[[Notice, int], bool]
"""Whether a notice must wait at this wall time."""


class Attempt(Struct, frozen=True, kw_only=True):
    """What a `notify` record tells."""

    channel: str
    key: str
    state: AttemptState
    tries: int = 0
    detail: str = ""
    again_s: float | None = None
    """It is tried again so much later; None: this was the end of it."""


class _Waiting:
    """One notice in the queue."""

    def __init__(self, notice: Notice) -> None:
        self.notice = notice
        self.tries = 0
        self.due_us = 0
        """Boot clock."""
        self.told_held = False


class Outbox:
    """The queue of one channel. Thread-safe; `send` and `log` are called from one thread only."""

    def __init__(
        self,
        name: str,
        send: Send,
        clock: Clock,
        *,
        retries: int = 5,
        quiet: Quiet = lambda _, __: False,
        log: Callable[[Attempt], None] = lambda _: None,
    ) -> None:
        self.info = ChannelInfo(name=name)
        """What viewers see."""
        self._send = send
        self._clock = clock
        self._retries = retries
        self._quiet = quiet
        self._log = log
        self._lock = threading.Lock()
        self._queue: list[_Waiting] = []
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"memwatch-notify-{name}"[:60], daemon=True
        )

    @property
    def stopping(self) -> threading.Event:
        """Set once the guard ends: what takes long should end as well."""
        return self._stop

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End; what waits is told by whoever guards next."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)  # a request that hangs holds nobody up

    def put(self, notice: Notice) -> None:
        """Take a notice in; the oldest gives way when too many wait."""
        with self._lock:
            self._queue = [it for it in self._queue if it.notice.key != notice.key]
            self._queue.append(_Waiting(notice))
            over = len(self._queue) - MOST_WAITING
            if over > 0:
                del self._queue[:over]
                self.info = replace(self.info, dropped=self.info.dropped + over)
            self._count()
        self._wake.set()

    def turn(self) -> float | None:
        """Send what is due; returns the seconds until something is, None when nothing waits."""
        with self._lock:
            queue = list(self._queue)
        for waiting in queue:
            if self._stop.is_set():
                return None
            if self._is_due(waiting):
                self._try(waiting)
        with self._lock:
            return min((self._wait_s(it) for it in self._queue), default=None)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            self._wake.wait(self.turn())

    def _wait_s(self, waiting: _Waiting) -> float:
        left_s = max(waiting.due_us - self._clock.boot_us(), 0) / 1e6
        return max(left_s, _QUIET_LOOK_S) if waiting.told_held else left_s

    def _is_due(self, waiting: _Waiting) -> bool:
        with self._lock:
            if waiting not in self._queue:  # a newer one took its place meanwhile
                return False
        return not self._is_held(waiting) and waiting.due_us <= self._clock.boot_us()

    def _is_held(self, waiting: _Waiting) -> bool:
        if waiting.notice.state == "test" or not self._quiet(waiting.notice, self._clock.wall_us()):
            waiting.told_held = False
            return False
        if not waiting.told_held:
            waiting.told_held = True
            self._say(waiting, "held", "quiet hours")
        return True

    def _try(self, waiting: _Waiting) -> None:
        outcome = self._send(waiting.notice)
        waiting.tries += 1
        over = outcome.ok or not outcome.again or waiting.tries > self._retries
        again_s = None
        if not over:
            again_s = min(FIRST_AGAIN_S * FACTOR ** (waiting.tries - 1), LONGEST_AGAIN_S)
            waiting.due_us = self._clock.boot_us() + round(again_s * 1e6)
        with self._lock:
            if over:
                self._queue = [it for it in self._queue if it is not waiting]
            self._count()
            if outcome.ok and waiting.notice.state == "test":
                self.info = replace(self.info, tested_us=self._clock.wall_us())
        self._say(waiting, "sent" if outcome.ok else "failed", outcome.detail, again_s)

    def _say(
        self, waiting: _Waiting, state: AttemptState, detail: str, again_s: float | None = None
    ) -> None:
        with self._lock:
            now_us = self._clock.wall_us()
            self.info = replace(self.info, state=state, at_us=now_us, detail=detail)
        attempt = Attempt(
            channel=self.info.name,
            key=waiting.notice.key,
            state=state,
            tries=waiting.tries,
            detail=detail,
            again_s=again_s,
        )
        self._log(attempt)

    def _count(self) -> None:
        self.info = replace(self.info, waiting=len(self._queue))
