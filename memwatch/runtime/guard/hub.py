"""What the guard offers to its viewers: the newest snapshot, courses, events, requests.

Built on the ring; what is older comes from the history. Called from the server's threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.sample import GAP, Column
from memwatch.domain.snapshot import Event, Snapshot
from memwatch.runtime.guard.history import History
from memwatch.runtime.session import RowKind
from memwatch.runtime.views.ring import Ring


class GuardHub:
    """Implements what `memwatch.runtime.protocol.server` asks for."""

    def __init__(
        self,
        ring: Ring,
        history: History,
        build: Callable[[], Snapshot],
        submit: Callable[[Command], str],
        command: Callable[[str], CommandInfo],
    ) -> None:
        self._ring = ring
        self._history = history
        self._build = build
        self._submit = submit
        self._command = command
        self._newest = (0, b"\xc0")
        self.lists: Mapping[RowKind, Callable[[int], Sequence[Struct]]] = {}
        """Who knows the newest rows of each list, newest first; asked under the ring's lock."""
        self.wanted = False
        """A viewer waits for a newer snapshot than there is."""
        self.wake = threading.Event()
        """Set when the tick should look at once."""
        self.on_came: Callable[[str], None] = lambda _: None
        self.on_left: Callable[[str, bool], None] = lambda _, __: None
        """Told that a viewer came, or left and was the last one; they return at once."""

    def put(self, snapshot: Snapshot) -> None:
        """Make a snapshot the newest one."""
        self.wanted = False
        self._newest = (snapshot.seq, msgspec.msgpack.encode(snapshot))

    def newest(self) -> tuple[int, bytes]:
        """Return sequence number and msgpack bytes of the newest snapshot."""
        return self._newest

    def want(self) -> None:
        """Note that a viewer waits, and wake the tick."""
        self.wanted = True
        self.wake.set()

    def status(self) -> bytes:
        """Return a fresh snapshot as JSON."""
        return msgspec.json.encode(self._build())

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        """Return a resource's course: the older part from the history, the rest from the ring."""
        if t1_us <= t0_us:
            return [GAP] * columns
        first_us = self._ring.first_us(resource)
        if first_us is None or first_us >= t1_us:
            return self._stored(resource, t0_us, t1_us, columns)
        edges = [t0_us + (t1_us - t0_us) * n // columns for n in range(columns + 1)]
        older = next((n for n, edge in enumerate(edges) if edge >= first_us), columns)
        if older == columns:
            return self._stored(resource, t0_us, t1_us, columns)
        found = self._stored(resource, t0_us, edges[older], older) if older else []
        return found + self._ring.columns(resource, edges[older], t1_us, columns - older)

    def events(
        self,
        after: int,
        limit: int,
        t0_us: int | None,
        t1_us: int | None,
        kinds: tuple[str, ...] = (),
    ) -> list[Event]:
        """Return events above a number, or the newest of a span of time, oldest first.

        Of all kinds when none is named.
        """
        if t0_us is None or t1_us is None:
            return self._ring.events(after, limit, kinds)
        since_us = self._ring.events_since()
        seam_us = t1_us if since_us is None else max(min(since_us, t1_us), t0_us)
        older = self._history.events(t0_us, seam_us, limit, kinds) if t0_us < seam_us else []
        return (older + self._ring.events_between(seam_us, t1_us, kinds))[-limit:]

    def rows(self, what: RowKind, limit: int) -> Sequence[Struct]:
        """Return the newest rows of a list, newest first."""
        with self._ring.lock:
            return self.lists[what](limit)

    def submit(self, command: Command) -> str:
        """Take a request; return its id."""
        return self._submit(command)

    def command(self, command_id: str) -> CommandInfo:
        """Return how far a request came."""
        return self._command(command_id)

    def viewer_came(self, name: str) -> None:
        """Pass on that a viewer looks."""
        self.on_came(name)

    def viewer_left(self, name: str, last: bool) -> None:
        """Pass on that a viewer is gone."""
        self.on_left(name, last)

    def _stored(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        gap_us = self._ring.max_gap_us(resource)
        return self._history.series(resource, t0_us, t1_us, columns, gap_us)
