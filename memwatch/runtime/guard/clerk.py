"""The thread that keeps the guard's books: requests, `meta.json`, a new start of the agent.

All of it reads or writes a disk, so none of it may hold up the tick.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from memwatch.analytics.told import Start
from memwatch.domain.snapshot import Snapshot
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.lasting import lasting
from memwatch.runtime.runs.meta_file import MetaFile
from memwatch.runtime.views.ring import Ring

_PERIOD_S = 1.0
_BUSY_S = 0.1


class Clerk:
    """Looks once a second, and at once when news come in while a request is in flight."""

    def __init__(self, ring: Ring, ledger: Ledger, meta: MetaFile) -> None:
        self._ring = ring
        self._ledger = ledger
        self._meta = meta
        self._start_id = ""
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memwatch-clerk", daemon=True)
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why this loop failed; it goes on."""
        self.newest: Snapshot | None = None
        """The newest snapshot, as the tick made it."""
        self.alive: Callable[[], bool] = lambda: True
        """Whether the agent's process may still be there."""
        self.on_start: Callable[[], None] = lambda: None
        """Told that the agent began anew."""
        self.on_news: Callable[[], None] = lambda: None
        """Told that a request moved."""
        self.upkeep: Callable[[], None] = lambda: None
        """What else is due about once a second and may wait for a disk."""

    def start(self) -> None:
        """Begin; the start that the ring knows is not told."""
        self._start_id = _start_id(self._ring.state.start)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def hear(self) -> None:
        """Say that something came in."""
        if self._ledger.waiting:
            self._wake.set()

    def look(self) -> None:
        """Do what is due."""
        if self._ledger.follow(self._ring.state.commands, self.alive()):
            self._ring.touch()
            self.on_news()
        self._notice_start()
        self.upkeep()
        if self.newest is not None:
            self._meta.keep(self.newest)

    def _run(self) -> None:
        lasting("bookkeeping", self._keep, self._stop, self.on_failure)

    def _keep(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._wake.wait(_PERIOD_S)
            self._wake.clear()
            self._stop.wait(_BUSY_S)

    def _notice_start(self) -> None:
        start_id = _start_id(self._ring.state.start)
        if start_id != self._start_id:
            self._start_id = start_id
            self.on_start()


def _start_id(start: Start | None) -> str:
    return start.start_id if start else ""
