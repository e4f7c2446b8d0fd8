"""Viewers that come and go, and what happened since the last one left.

Who comes back sees what happened until it leaves itself. What was counted is written down every
few minutes: a guard that begins anew goes on from there, even where the agent dropped its old log
meanwhile. Source: D7.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from memwatch.analytics.since import SinceFold
from memwatch.domain.clock import Clock
from memwatch.domain.control import SinceLeft
from memwatch.domain.record import Batch, Record
from memwatch.domain.snapshot import Snapshot
from memwatch.domain.text import inert
from memwatch.runtime.guard.recorder import Recorder

KEPT_S = 600.0
"""How often what was counted is written down."""
_FULL_S = 10.0
"""Behind a full checkpoint the agent drops old log: what was counted of it is written down at
once, but no more often than this."""
_AT_ONCE_US = 60 * 1_000_000
"""Who begins a guard and looks at once has missed nothing."""


class Leaving:
    """Keeps the fold since the last viewer left. Thread-safe; nothing of it waits but for a disk.

    `since` is for the snapshot.
    """

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._lock = threading.Lock()
        self._fold = SinceFold(clock.wall_us(), first=True)
        self._began_at_once = False
        self._kept_us = clock.boot_us()
        self._full_seen = False
        self.tell: Callable[[Record], None] = lambda _: None
        """Told each record that was written."""
        self.whole: Callable[[], bool] = lambda: True
        """Whether the agent's log is read without a hole: who writes down how far it counted while
        older segments are unread has the next guard leave them out."""

    def restore(self, records: Iterable[Record]) -> None:
        """Go on where the guard before this one ended: records of its log, in their order.

        Called before any other record is taken in.
        """
        for record in records:
            if record.kind == "viewer":
                known = record.members.get("known")
                fold = SinceFold.resume(known) if known is not None else None
                if fold is not None:
                    self._fold, self._began_at_once = fold, False
            else:
                self._fold.take_guard(record)

    def start(self) -> None:
        """Write down where counting begins, so that the next guard finds it.

        Called before any of the agent's log is read.
        """
        self._keep()

    def stop(self) -> None:
        """Write down what was counted."""
        self._keep()

    def take(self, snapshot: Snapshot) -> None:
        """Write down what was counted when it is time (`snapshot` tells that time went on)."""
        del snapshot
        due_s = _FULL_S if self._full_seen else KEPT_S
        if self._clock.boot_us() - self._kept_us >= due_s * 1e6:
            self._keep()

    def take_batch(self, batch: Batch) -> None:
        """Count what the agent's log tells, old segments as well; each batch once."""
        with self._lock:
            self._fold.take(batch.records)
            if batch.live:
                self._fold.take_faults(batch.faults)
                self._full_seen |= any(map(_is_full, batch.records))

    def take_guard(self, record: Record) -> None:
        """Count a record that the guard wrote itself."""
        with self._lock:
            self._fold.take_guard(record)

    def viewer_came(self, name: str) -> None:
        """Note that a viewer came; what happened before stays in sight."""
        with self._lock:
            tally = self._fold.tally
            if tally.first and self._clock.wall_us() - tally.from_us < _AT_ONCE_US:
                self._began_at_once = True
        self._write("came", name)

    def viewer_left(self, name: str, last: bool) -> None:
        """Note that a viewer left; with the last one, counting begins anew."""
        known = None
        if last:
            with self._lock:
                self._fold = SinceFold(self._clock.wall_us())
                self._began_at_once = False
                known = self._fold.known()
            self._kept_us = self._clock.boot_us()
        self._write("left", name, known)

    def since(self) -> SinceLeft | None:
        """Return what happened since the last viewer left; None while nobody ever was away."""
        with self._lock:
            return None if self._began_at_once else self._fold.since()

    def _keep(self) -> None:
        if not self.whole():
            return
        self._kept_us, self._full_seen = self._clock.boot_us(), False
        with self._lock:
            known = self._fold.known()
        self._write("kept", "", known)

    def _write(self, state: str, name: str, known: dict[str, Any] | None = None) -> None:
        members: dict[str, Any] = {"state": state, "by": inert(name, 40)}
        if known is not None:
            members["known"] = known
        self.tell(self._recorder.append("viewer", members))


def _is_full(record: Record) -> bool:
    return record.kind == "checkpoint.commit" and record.text("kind") == "full"
