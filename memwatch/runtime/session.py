"""The session protocol: what every viewer talks to, live guard and replay alike.

Frames on the wire: u32 big-endian length + msgpack, at most 8 MiB. The first frame of each side
is `hello {proto: [major, minor], app, start_id, run_keys}`; another major ends the session. A
viewer says who it is (`viewer`) and whether it only looks on (`view`): then it can ask for nothing.
Requests are maps `{id, call, ...arguments}`, answers `{id, ok: true, result}` or
`{id, ok: false, error}`. Unknown members are ignored.
"""

from __future__ import annotations

from typing import Literal, Protocol, overload

from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.intervention import Intervention
from memwatch.domain.sample import Column
from memwatch.domain.snapshot import Event, Snapshot

RowKind = Literal["checkpoints", "interventions"]
"""Lists that are too long for a snapshot, which holds the newest few of them."""


class Session(Protocol):
    """One run, seen live or replayed. Calls may raise SessionError when the other end is gone."""

    def latest(self, after_seq: int, timeout_s: float) -> Snapshot | None:
        """Wait for a snapshot newer than `after_seq`; None when none came in time."""
        ...

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        """Return a resource's course between two instants, one Column per column.

        Resources: `memory`, `unaccounted`, `tier:<name>`, `entries:<name>`.
        """
        ...

    def events(
        self,
        after: int,
        limit: int,
        t0_us: int | None = None,
        t1_us: int | None = None,
        kinds: tuple[str, ...] = (),
    ) -> list[Event]:
        """Return events with a sequence number above `after`, or those between two instants.

        The newest `limit` of them, oldest first; with `kinds` only events of these kinds (as
        `memwatch.analytics.narrate` names them), so that others cannot crowd them out.
        """
        ...

    @overload
    def rows(self, what: Literal["checkpoints"], limit: int) -> list[Checkpoint]: ...

    @overload
    def rows(self, what: Literal["interventions"], limit: int) -> list[Intervention]: ...

    def rows(self, what: RowKind, limit: int) -> list[Checkpoint] | list[Intervention]:
        """Return the newest rows of a list, newest first, 500 at most (protocol 1.3)."""
        ...

    def submit(self, command: Command) -> str:
        """Hand over a request; returns its id at once. Its state comes with the snapshots.

        Raises SessionError with the reason when it is not taken.
        """
        ...

    def command(self, command_id: str) -> CommandInfo:
        """Return how far a request came: `unknown` for one that nobody knows (protocol 1.2)."""
        ...

    def close(self) -> None:
        """End the session."""
        ...
