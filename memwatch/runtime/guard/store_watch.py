"""The thread that looks at a checkpoint store of another program, in place of reading a log.

A look lists files, so it is made as often as something goes on there: each 2 s while a checkpoint
is being written, more and more seldom up to each 30 s while nothing changes. File events are a hint
that brings the next look forward. What became complete, incomplete or was deleted is written to
`guard.wal` and told. Nothing is written in the store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from memwatch.analytics.store_changes import store_changes
from memwatch.domain.checkpoints import StoreLook
from memwatch.domain.record import Batch, Record
from memwatch.host.deadline import ask
from memwatch.host.process import Identity, is_alive
from memwatch.ingest.foreign import Foreign
from memwatch.ingest.watcher import Watcher
from memwatch.runtime.guard.own_log import OwnLog
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.lasting import lasting
from memwatch.runtime.runs.writer import first_of
from memwatch.runtime.views.ring import Ring

SOON_S = 2.0
LATE_S = 30.0
_SLOWER = 1.5
_LOOKING_SHARE = 0.05
"""Looking takes no more of the time than this, however large the store."""
_OWN_LOG_S = 2.0
_DEADLINE_S = 2.0


class StoreWatch:
    """Takes in one store; has the same outside as `IngestLoop`, with no log to be behind with."""

    def __init__(
        self,
        path: Path,
        kind: Foreign,
        own: OwnLog,
        ring: Ring,
        recorder: Recorder,
        on_news: Callable[[], None],
    ) -> None:
        self._path = path
        self._kind = kind
        self._own = own
        self._ring = ring
        self._recorder = recorder
        self._on_news = on_news
        self._before: StoreLook | None = None
        self._told_us: dict[tuple[str, str], int] = {}
        """When a guard before this one told an event of a checkpoint last."""
        self._writer: Identity | None = None
        self.period_s = SOON_S
        """Seconds until the next look, when no hint brings it forward."""
        self._earliest = self._due = 0.0
        self._stop, self._wake = threading.Event(), threading.Event()
        self.watcher = Watcher([kind.folder(path)], self._wake)
        self._thread = threading.Thread(target=self._run, name="memwatch-store", daemon=True)
        self.known_until_us = 0
        """Wall clock until which a guard before this one told what happened; 0: there was none."""
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each record that was written."""
        self.on_writer: Callable[[Identity], None] = lambda _: None
        """Told of a process that writes there, when it is another one than before."""
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why this loop failed; it goes on."""
        self.on_caught_up: Callable[[], None] = lambda: None
        """Never told: there is no past to catch up with."""
        self.on_batch: Callable[[Batch], None] = lambda _: None
        """Never told: there is no log."""

    # -- as a log would be taken in ----------------------------------------------------------

    @property
    def position(self) -> str:
        """What was looked at last, in words."""
        look = self._before
        return f"{look.count} checkpoints" if look else "not looked at yet"

    @property
    def backfill_share(self) -> None:
        """There is nothing older to read."""
        return

    @property
    def error(self) -> str | None:
        """What could not be looked at."""
        return (self._before.why if self._before else "") or None

    @property
    def first_lsn(self) -> int:
        """No record was ever dropped."""
        return 1

    def open(self) -> None:
        """There is nothing to open: each look opens what it needs."""

    def read_present(self) -> None:
        """Look once: before the first snapshot."""
        self.look()

    def read_missed(self, _: int) -> None:
        """Do nothing: the first look has seen all that was missed."""

    def read_own_log(self) -> None:
        """Bring the guard's own log into the history."""
        self._own.read()

    def restore(self, records: Iterable[Record]) -> None:
        """Take `store` records of a guard before this one, in their order."""
        for record in records:
            if record.kind == "store":
                self._told_us[record.text("event"), record.text("id")] = record.t_us

    # -- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to follow."""
        self.watcher.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop following, and bring what was told into the history."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self.watcher.stop()
        self.read_own_log()

    def _run(self) -> None:
        lasting("looking at the store", self._follow, self._stop, self.on_failure)

    def _follow(self) -> None:
        while not self._stop.is_set():
            if time.monotonic() >= self._due:
                self.look()
            self._own.keep_up()
            self._sleep()

    def _sleep(self) -> None:
        wait_s = min(self._due - time.monotonic(), _OWN_LOG_S)
        if not self._wake.wait(max(wait_s, 0)):
            return
        self._due = min(self._due, self._earliest)
        self._stop.wait(max(min(self._due - time.monotonic(), _OWN_LOG_S), 0))
        self._wake.clear()

    # -- one look ----------------------------------------------------------------------------

    def look(self) -> None:
        """Look at the store, tell what happened in it, and say when to look again."""
        began = time.monotonic()
        look = self._kind.look(self._path, self._before)
        if look.why and self._is_gone():
            since = self._before if self._before is not None and self._before.gone else look
            look = replace(look, gone=True, t_us=since.t_us)
        took_s = time.monotonic() - began
        since_us = self.known_until_us or look.t_us
        changes = store_changes(self._before, look, since_us, self._told_us)
        moved = self._before is None or look.checkpoints != self._before.checkpoints
        self._before = look
        self._ring.take_store(look)
        for members in changes:
            self.tell(self._recorder.append("store", members))
        self._follow_writer(look)
        self._plan_next(took_s, busy=moved or any(c.state == "begun" for c in look.checkpoints))
        self._on_news()

    def _is_gone(self) -> bool:
        there = ask(f"path {self._path}", self._path.exists, _DEADLINE_S)
        return there is False  # None: the disk does not answer

    def _plan_next(self, took_s: float, *, busy: bool) -> None:
        now, least_s = time.monotonic(), max(SOON_S, took_s / _LOOKING_SHARE)
        self.period_s = SOON_S if busy else min(self.period_s * _SLOWER, LATE_S)
        self._earliest = now + least_s
        self._due = now + max(self.period_s, least_s)

    def _follow_writer(self, look: StoreLook) -> None:
        """Keep to the process that wrote first, while it lives: others may be its children."""
        if self._writer is not None and is_alive(self._writer):
            return
        found = first_of(look.writers)
        if found is not None:
            self._writer = found
            self.on_writer(found)
