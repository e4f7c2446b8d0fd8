"""A viewer's end of the session protocol: a guard over its Unix socket."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import msgspec

from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.errors import SessionError
from memwatch.domain.intervention import Intervention
from memwatch.domain.sample import Column
from memwatch.domain.snapshot import Event, Snapshot
from memwatch.runtime.protocol import wire
from memwatch.runtime.protocol.numbers import GuardSilentError, NoGuardError
from memwatch.runtime.session import RowKind

_CONNECT_TIMEOUT_S = 5.0
_ANSWER_TIMEOUT_S = 10.0
"""For questions to the history, whose own deadline is shorter."""
_LATE_S = 2.0
"""How much later than asked "no news" may come: then the guard is stopped or stuck."""

_Shape = TypeVar("_Shape")


class GuardSession:
    """A Session over at most two connections: one waits for snapshots, one asks all else.

    Each connection serves one call at a time; the calls themselves may come from any thread.
    """

    def __init__(
        self,
        path: Path,
        timeout_s: float = _CONNECT_TIMEOUT_S,
        *,
        viewer: str = "",
        view_only: bool = False,
    ) -> None:
        """Connect; raises NoGuardError or GuardSilentError when none answers there in time.

        `viewer` names who asks, and owns the holds that it asks for; with `view_only` the guard
        refuses whatever is asked for.
        """
        self._path, self._timeout_s = path, timeout_s
        self._hello = wire.viewer_hello(viewer, view_only=view_only)
        self._lock = threading.Lock()
        self._spare: _Line | None = self._connect()
        self._lines: dict[str, _Line] = {}

    def latest(self, after_seq: int, timeout_s: float) -> Snapshot | None:
        """Wait for a snapshot newer than `after_seq`; None in time is a sign of life as well."""
        arguments = {"after_seq": after_seq, "timeout_s": timeout_s}
        result = self._line("wait").ask("latest", arguments, timeout_s + _LATE_S)
        return None if result is None else _convert(result, Snapshot)

    def series(self, resource: str, t0_us: int, t1_us: int, columns: int) -> list[Column]:
        """Return a resource's course between two instants."""
        arguments = {"resource": resource, "t0_us": t0_us, "t1_us": t1_us, "columns": columns}
        return _convert(self._line("ask").ask("series", arguments), list[Column])

    def events(
        self,
        after: int,
        limit: int,
        t0_us: int | None = None,
        t1_us: int | None = None,
        kinds: tuple[str, ...] = (),
    ) -> list[Event]:
        """Return events; a guard of protocol 1.0 does not choose by kind."""
        span = {"t0_us": t0_us, "t1_us": t1_us}
        arguments = {"after": after, "limit": limit, **span, "kinds": kinds}
        return _convert(self._line("ask").ask("events", arguments), list[Event])

    @overload
    def rows(self, what: Literal["checkpoints"], limit: int) -> list[Checkpoint]: ...

    @overload
    def rows(self, what: Literal["interventions"], limit: int) -> list[Intervention]: ...

    def rows(self, what: RowKind, limit: int) -> list[Checkpoint] | list[Intervention]:
        """Return the newest rows of a list; a guard before protocol 1.3 does not know the call."""
        answer = self._line("ask").ask("rows", {"what": what, "limit": limit})
        if what == "checkpoints":
            return _convert(answer, list[Checkpoint])
        return _convert(answer, list[Intervention])

    def submit(self, command: Command) -> str:
        """Hand over a request; returns its id."""
        return _convert(self._line("ask").ask("submit", {"command": command}), str)

    def command(self, command_id: str) -> CommandInfo:
        """Return how far a request came; a guard before protocol 1.2 does not know the call."""
        return _convert(self._line("ask").ask("command", {"command_id": command_id}), CommandInfo)

    def close(self) -> None:
        """Close all connections; a call that waits ends with SessionError."""
        with self._lock:
            for line in (self._spare, *self._lines.values()):
                if line is not None:
                    line.close()

    def _line(self, use: str) -> _Line:
        with self._lock:
            line = self._lines.get(use)
            if line is None:
                line = self._lines[use] = self._spare or self._connect()
                self._spare = None
            return line

    def _connect(self) -> _Line:
        return _Line(self._path, self._timeout_s, self._hello)


class _Line:
    """One connection: greeting, then question and answer in turn."""

    def __init__(self, path: Path, timeout_s: float, hello: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
            self._socket.sendall(wire.pack(hello))
            wire.check_hello(self._receive())
        except (OSError, SessionError) as error:
            self._socket.close()
            if isinstance(error, SessionError):
                raise
            if isinstance(error, TimeoutError | BlockingIOError):
                raise GuardSilentError("the guard is there and does not answer") from None
            raise NoGuardError(f"no guard answers on {path}: {error.strerror or error}") from None

    def ask(self, call: str, arguments: Any, timeout_s: float = _ANSWER_TIMEOUT_S) -> Any:
        with self._lock:
            self._number += 1
            try:
                self._socket.settimeout(timeout_s)
                self._socket.sendall(wire.pack({"id": self._number, "call": call, **arguments}))
                answer = self._receive()
            except (OSError, SessionError) as error:
                self._socket.close()
                if isinstance(error, SessionError):
                    raise
                if isinstance(error, TimeoutError):
                    raise GuardSilentError("the guard is there and does not answer") from None
                raise NoGuardError(f"the guard has gone: {error}") from None
            if answer.get("id") != self._number:
                self._socket.close()
                raise SessionError("the guard answered another question")
        if not answer.get("ok"):
            raise SessionError(str(answer.get("error", "the guard refused")))
        return answer.get("result")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits for an answer
        self._socket.close()

    def _receive(self) -> dict[str, Any]:
        header = self._exactly(wire.HEADER_BYTES)
        return wire.unpack(self._exactly(wire.body_bytes(header)))

    def _exactly(self, count: int) -> bytes:
        pieces: list[bytes] = []
        while count:
            piece = self._socket.recv(min(count, 1 << 16))
            if not piece:
                raise NoGuardError("the guard has gone")
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)


def _convert(value: Any, shape: type[_Shape]) -> _Shape:
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise SessionError(f"the guard's answer has another shape: {error}") from None
