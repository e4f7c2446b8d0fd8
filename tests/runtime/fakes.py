"""A hub without a guard behind it, and a raw line to a server."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.command import Command, CommandInfo, CommandState
from memwatch.domain.errors import SessionError
from memwatch.domain.intervention import Intervention
from memwatch.domain.sample import Column
from memwatch.domain.snapshot import Event, GuardInfo, RunInfo, Snapshot
from memwatch.runtime.protocol import wire
from memwatch.runtime.protocol.server import SessionServer
from memwatch.runtime.session import RowKind

RUN = RunInfo(
    id="run-1",
    path="/runs/1",
    agent="searcher",
    profile="native",
    host="box",
    pid=4242,
    state="running",
)


def snapshot(seq: int, note: str = "") -> Snapshot:
    """Return a snapshot with little in it; `note` makes it larger."""
    return Snapshot(seq=seq, t_us=seq, run=RUN, guard=GuardInfo(pid=7), profile_note=note)


class FakeHub:
    """Answers what the test put in."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.asked: list[tuple[Any, ...]] = []
        self.viewers: list[tuple[str, str, bool]] = []
        self.wanted = threading.Event()
        self._newest = (0, b"\xc0")
        self.put(snapshot(1))

    def put(self, newest: Snapshot) -> None:
        self._newest = (newest.seq, msgspec.msgpack.encode(newest))

    def newest(self) -> tuple[int, bytes]:
        return self._newest

    def want(self) -> None:
        self.wanted.set()

    def status(self) -> bytes:
        return msgspec.json.encode(snapshot(self._newest[0]))

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        self.asked.append((resource, t0_us, t1_us, columns))
        if resource == "broken":
            raise RuntimeError("a defect")
        return [Column(1.0, 3.0, 2.0)] * columns

    def events(
        self,
        after: int,
        limit: int,
        t0_us: int | None,
        t1_us: int | None,
        kinds: tuple[str, ...],
    ) -> list[Event]:
        self.asked.append((after, limit, t0_us, t1_us, kinds))
        return [Event(seq=after + 1, t_us=5, kind="note", text="hello")]

    def rows(self, what: RowKind, limit: int) -> Sequence[Struct]:
        self.asked.append((what, limit))
        if what == "checkpoints":
            return [Checkpoint(id="full-9", kind="full", state="committed", bytes=9)]
        return [Intervention(id="purge-7", action="purge", verdict="effective")]

    def submit(self, command: Command) -> str:
        if command.op == "forbidden":
            raise SessionError("this agent does not offer 'forbidden'")
        self.commands.append(command)
        return f"id-{len(self.commands)}"

    def command(self, command_id: str) -> CommandInfo:
        state: CommandState = "running" if command_id == "id-1" else "unknown"
        return CommandInfo(id=command_id, op="purge", state=state, asked_us=1, changed_us=2)

    def viewer_came(self, name: str) -> None:
        self.viewers.append(("came", name, False))

    def viewer_left(self, name: str, last: bool) -> None:
        self.viewers.append(("left", name, last))


@contextmanager
def serving(hub: FakeHub, **options: Any) -> Iterator[SessionServer]:
    """Serve `hub` on a socket of its own; where is in `server.path`."""
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        server = SessionServer(Path(folder) / "s.sock", "run-1", "start-1", hub, **options)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class RawLine:
    """A connection that can say anything."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(10)
        self.socket.connect(str(path))

    def __enter__(self) -> RawLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, message: dict[str, Any]) -> None:
        self.socket.sendall(wire.pack(message))

    def receive(self) -> dict[str, Any] | None:
        """Return the next message, None when the other end has closed."""
        header = self._exactly(4)
        if header is None:
            return None
        body = self._exactly(int.from_bytes(header, "big"))
        return None if body is None else wire.unpack(body)

    def greet(self) -> dict[str, Any] | None:
        """Say hello, return the server's."""
        self.send(wire.hello("", []))
        return self.receive()

    def ask(self, call: str, **arguments: Any) -> dict[str, Any] | None:
        """Ask, and return the whole answer."""
        self.send({"id": 9, "call": call, **arguments})
        return self.receive()

    def _exactly(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                piece = self.socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return data
