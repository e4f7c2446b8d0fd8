"""The thread that keeps the guard's books: requests, levels, `meta.json`, a new start of the agent.

All of it reads or writes a disk, so none of it may hold up the tick.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import get_args

from memwatch.analytics.told import Start
from memwatch.domain.clock import Clock
from memwatch.domain.level import Level
from memwatch.domain.snapshot import PAST, Limits, Snapshot
from memwatch.domain.units import share_text
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.lasting import lasting
from memwatch.runtime.runs.meta_file import MetaFile
from memwatch.runtime.views.ring import Ring

_PERIOD_S = 1.0
_BUSY_S = 0.1
_SWING = 0.02
"""A share this far below a threshold has left it."""
_DWELL_US = 60_000_000
"""So has one that stayed below for so long."""
_LEVELS: tuple[Level, ...] = get_args(Level)
"""From low to high."""


class Clerk:
    """Looks once a second, and at once when news come in while a request is in flight."""

    def __init__(
        self, ring: Ring, recorder: Recorder, ledger: Ledger, meta: MetaFile, clock: Clock
    ) -> None:
        self._clock = clock
        self._ring = ring
        self._recorder = recorder
        self._ledger = ledger
        self._meta = meta
        self.level: Level = "normal"
        """The level that was told last, by this guard or the one before."""
        self._lower_since_us: int | None = None
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
        snapshot = self.newest
        if snapshot is not None:
            self._follow_level(snapshot)
            self._meta.keep(snapshot)

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

    def _follow_level(self, snapshot: Snapshot) -> None:
        if snapshot.run.state in PAST or not self._has_changed(snapshot):
            return
        memory = snapshot.resource("memory")
        share = memory.share if memory else None
        limit = snapshot.limits.binding
        of = f"of the limit ({limit.name})" if limit else "with no limit"
        why = f"{share_text(share)} {of}, was {self.level}"
        self.level = snapshot.level
        members = {"level": snapshot.level, "why": why, "share": share}
        self._ring.take_guard(self._recorder.append("level", members))

    def _has_changed(self, snapshot: Snapshot) -> bool:
        """Say whether a level is worth a record: usage that swings about a threshold tells once.

        A higher level is told at once, a lower one when usage is well below the threshold that
        is left, or stayed below it for a while. The level that is shown is not held back.
        """
        now_us = self._clock.boot_us()
        memory = snapshot.resource("memory")
        if snapshot.level == self.level or memory is None:
            self._lower_since_us = None
            return False
        if _LEVELS.index(snapshot.level) < _LEVELS.index(self.level):
            if self._lower_since_us is None:
                self._lower_since_us = now_us
            threshold = _threshold(snapshot.limits, self.level)
            close = memory.share is not None and memory.share > threshold - _SWING
            if close and now_us - self._lower_since_us < _DWELL_US:
                return False
        self._lower_since_us = None
        return True


def _threshold(limits: Limits, level: Level) -> float:
    shares = {
        "warn": limits.warn,
        "intervene": limits.intervene,
        "emergency": limits.emergency,
        "hard": limits.hard_share,
    }
    return shares.get(level, 0.0)


def _start_id(start: Start | None) -> str:
    return start.start_id if start else ""
