"""The guard's socket: any number of viewers, none of which can hold the guard up.

An event loop on a thread of its own. A viewer that does not read is dropped after a while; a
peer of another user is refused. A request that makes no sense is answered with an error, and the
connection goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError, SessionError
from memwatch.domain.text import inert
from memwatch.runtime.lasting import lasting
from memwatch.runtime.protocol import wire
from memwatch.runtime.protocol.hub import Hub
from memwatch.runtime.session import RowKind

_SEND_TIMEOUT_S = 10.0
_FINISH_S = 1.0
_LONGEST_WAIT_S = 30.0
_MAX_COLUMNS = 2000
_MAX_EVENTS = 1000
_MAX_ROWS = 500

Message = dict[str, Any]


class _Latest(Struct, frozen=True):
    after_seq: int = 0
    timeout_s: float = 10.0


class _Series(Struct, frozen=True):
    resource: str
    t0_us: int
    t1_us: int
    columns: int


class _Events(Struct, frozen=True):
    after: int
    limit: int
    t0_us: int | None = None
    t1_us: int | None = None
    kinds: tuple[str, ...] = ()


class _Rows(Struct, frozen=True):
    what: RowKind
    limit: int


class _Submit(Struct, frozen=True):
    command: Command


class _Asked(Struct, frozen=True):
    command_id: str


class SessionServer:
    """Serves one run on one Unix socket, to processes of `owner_uid` (by default our user)."""

    def __init__(
        self,
        path: Path,
        run_key: str,
        start_id: str,
        hub: Hub,
        *,
        owner_uid: int | None = None,
        send_timeout_s: float = _SEND_TIMEOUT_S,
    ) -> None:
        self.path = path
        self._hello = wire.pack(wire.hello(start_id, [run_key]))
        self._hub = hub
        self._owner_uid = os.geteuid() if owner_uid is None else owner_uid
        self._send_timeout_s = send_timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fresh: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="memwatch-server", daemon=True)
        self._listening = threading.Event()
        self._failure: OSError | None = None
        self._stop: asyncio.Event | None = None
        self._stopped = threading.Event()
        self._workers = ThreadPoolExecutor(2, thread_name_prefix="memwatch-query")
        self._busy = 0
        self._idle = asyncio.Event()
        self.on_failure: Callable[[str], None] = lambda _: None
        """Told why the server failed; it begins anew."""
        self.viewers = 0
        """Connections that asked for snapshots and are still there."""

    def start(self) -> None:
        """Listen; raises SessionError when the socket cannot be made."""
        self._thread.start()
        self._listening.wait()
        if self._failure is not None:
            raise SessionError(f"cannot listen on {self.path}: {self._failure.strerror}")

    def publish(self) -> None:
        """Wake the viewers: there is a newer snapshot. From any thread."""
        self._call(lambda: self._fresh.set() if self._fresh else None)

    def stop(self) -> None:
        """Close all connections and remove the socket."""
        self._stopped.set()
        self._call(lambda: self._stop.set() if self._stop else None)
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _call(self, action: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(action)

    def _run(self) -> None:
        def serve() -> None:
            asyncio.run(self._serve())

        lasting("serving viewers", serve, self._stopped, lambda why: self.on_failure(why))

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._fresh, self._stop = asyncio.Event(), asyncio.Event()
        if self._stopped.is_set():
            return
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = self.viewers = 0
        try:
            self.path.unlink(missing_ok=True)  # we hold the run's lock: it can only be a dead one
            server = await asyncio.start_unix_server(self._connected, self.path)
            self.path.chmod(0o600)
        except OSError as error:
            if self._listening.is_set():
                raise  # it did listen before: not for the caller of `start`, to be tried again
            self._failure = error
            return
        finally:
            self._listening.set()
        try:
            await self._stop.wait()
            await self._finish()
        finally:
            server.close()  # not awaited: from Python 3.12 on that would wait for every viewer
            self.path.unlink(missing_ok=True)

    async def _finish(self) -> None:
        """Let answers that are under way go out: the one to "end yourself" is among them."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), _FINISH_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer, self._send_timeout_s)
        try:
            if _peer_uid(writer.get_extra_info("socket")) != self._owner_uid:
                return
            await connection.send(self._hello)
            await self._greet(connection)
            while True:
                request = await connection.receive()
                with self._answering(request):
                    await self._answer(connection, request)
        except TimeoutError:
            writer.transport.abort()  # closing would wait until it reads what is buffered
        except (SessionError, OSError, EOFError, asyncio.CancelledError):
            pass  # the viewer is gone, or is none, or we end: nothing to tell it
        finally:
            self._forget(connection)
            writer.close()

    def _forget(self, connection: _Connection) -> None:
        if connection.watches:
            self.viewers -= 1
            _told(self._hub.viewer_left, connection.viewer, self.viewers == 0)

    async def _greet(self, connection: _Connection) -> None:
        message = await asyncio.wait_for(connection.receive(), self._send_timeout_s)
        try:
            greeting = wire.check_hello(message)
            connection.viewer = inert(str(greeting.get("viewer", "")), 40)
            connection.view_only = greeting.get("view") is True
        except SessionError as error:
            await connection.send(wire.pack({"id": None, "ok": False, "error": str(error)}))
            raise

    @contextlib.contextmanager
    def _answering(self, request: Message) -> Iterator[None]:
        """Count answers under way, but for those that wait for news."""
        counts = request.get("call") != "latest"
        self._busy += counts
        if self._busy:
            self._idle.clear()
        try:
            yield
        finally:
            self._busy -= counts
            if not self._busy:
                self._idle.set()

    async def _answer(self, connection: _Connection, request: Message) -> None:
        number = request.get("id")
        try:
            result = await self._result(connection, request)
            frame = wire.pack({"id": number, "ok": True, "result": result})
        except Exception as error:  # noqa: BLE001 - a defect must not look like a dead guard
            frame = wire.pack({"id": number, "ok": False, "error": _words(error)})
        await connection.send(frame)

    async def _result(self, connection: _Connection, request: Message) -> Any:
        hub = self._hub
        match request.get("call"):
            case "latest":
                return await self._latest(connection, msgspec.convert(request, _Latest))
            case "status":
                return {"json": await self._work(hub.status)}
            case "series":
                asked = msgspec.convert(request, _Series)
                columns = min(max(asked.columns, 1), _MAX_COLUMNS)
                wide = asked.t0_us, asked.t1_us
                return await self._work(hub.series, asked.resource, *wide, columns)
            case "events":
                told = msgspec.convert(request, _Events)
                limit = min(max(told.limit, 1), _MAX_EVENTS)
                span = told.t0_us, told.t1_us
                return await self._work(hub.events, told.after, limit, *span, told.kinds)
            case "rows":
                listed = msgspec.convert(request, _Rows)
                most = min(max(listed.limit, 1), _MAX_ROWS)
                return await self._work(hub.rows, listed.what, most)
            case "submit":
                command = _from_a_person(connection, msgspec.convert(request, _Submit).command)
                return await self._work(hub.submit, command)
            case "command":
                return await self._work(hub.command, msgspec.convert(request, _Asked).command_id)
            case other:
                raise SessionError(f"this guard does not know the call {str(other)[:40]!r}")

    async def _latest(self, connection: _Connection, asked: _Latest) -> Any:
        if not connection.watches:
            connection.watches = True
            self.viewers += 1
            _told(self._hub.viewer_came, connection.viewer)
        loop = asyncio.get_running_loop()
        until = loop.time() + max(0.0, min(_LONGEST_WAIT_S, asked.timeout_s))  # nan: the longest
        while True:
            seq, snapshot = self._hub.newest()
            if seq != asked.after_seq:  # a greater one was counted by the guard before us
                return msgspec.Raw(snapshot)
            left = until - loop.time()
            if left <= 0 or self._fresh is None:
                return None
            self._fresh.clear()
            self._hub.want()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._fresh.wait(), left)

    async def _work(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._workers, call, *arguments)


class _Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, send_timeout_s: float
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._send_timeout_s = send_timeout_s
        self.watches = False
        self.viewer = ""
        self.view_only = False

    async def receive(self) -> Message:
        header = await self._reader.readexactly(wire.HEADER_BYTES)
        return wire.unpack(await self._reader.readexactly(wire.body_bytes(header)))

    async def send(self, frame: bytes) -> None:
        self._writer.write(frame)
        await asyncio.wait_for(self._writer.drain(), self._send_timeout_s)


def _from_a_person(connection: _Connection, command: Command) -> Command:
    """Return a request as one of this viewer; raises SessionError where it only looks on.

    Nobody speaks for the engine over a socket.
    """
    if connection.view_only:
        raise SessionError("this viewer only looks on (--view): nothing was asked")
    by = command.by or connection.viewer
    return replace(command, origin="operator", plan="", by=by)


def _told(tell: Callable[..., None], *what: object) -> None:
    """Tell the hub of a viewer; a defect there costs no viewer its connection."""
    try:
        tell(*what)
    except Exception as error:  # noqa: BLE001 - said in the guard's log
        traceback.print_exception(error)


def _words(error: Exception) -> str:
    if isinstance(error, MemwatchError):
        return str(error)
    if isinstance(error, msgspec.ValidationError):
        return f"a request that makes no sense: {error}"
    traceback.print_exception(error)  # into the guard's log
    return f"the guard could not answer ({type(error).__name__}); its guard.log says more"


def _peer_uid(connection: socket.socket) -> int:
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", peer)[1])
