"""What a server of the session protocol asks of whoever it serves for: a guard, or a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.sample import Column
from memwatch.domain.snapshot import Event
from memwatch.runtime.session import RowKind


class Hub(Protocol):
    """What the server asks of the guard.

    Questions and `submit` may block for a moment; `want` and what is told of viewers may not.
    """

    def newest(self) -> tuple[int, bytes]:
        """Return sequence number and msgpack bytes of the newest snapshot."""
        ...

    def want(self) -> None:
        """Say that a viewer waits for a newer snapshot."""
        ...

    def status(self) -> bytes:
        """Return a fresh snapshot as JSON."""
        ...

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        """Return a resource's course."""
        ...

    def events(
        self,
        after: int,
        limit: int,
        t0_us: int | None,
        t1_us: int | None,
        kinds: tuple[str, ...],
    ) -> list[Event]:
        """Return events, of all kinds when none is named."""
        ...

    def rows(self, what: RowKind, limit: int) -> Sequence[Struct]:
        """Return the newest rows of a list, newest first."""
        ...

    def submit(self, command: Command) -> str:
        """Take a request; return its id."""
        ...

    def command(self, command_id: str) -> CommandInfo:
        """Return how far a request came: `unknown` for one that nobody knows."""
        ...

    def viewer_came(self, name: str) -> None:
        """Learn that a viewer looks: it asked for snapshots."""
        ...

    def viewer_left(self, name: str, last: bool) -> None:
        """Learn that a viewer is gone, and whether nobody else is left."""
        ...
