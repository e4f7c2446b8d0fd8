"""A real HTTP server of this machine that answers as a test wants it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Heard(NamedTuple):
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Reply = Callable[[BaseHTTPRequestHandler], None]


def status(code: int, **headers: str) -> Reply:
    """Answer with a status whose words repeat the address, as hostile servers do."""

    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code, f"no {handler.path}")
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return reply


class Listener:
    """What the server heard; `reply` may be changed at any time."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.heard: list[Heard] = []
        self.reply: Reply = status(200)
        self.release = threading.Event()
        """Set when the test is over: an answer that hangs should end."""


@contextmanager
def listening() -> Iterator[Listener]:
    """Serve on a free port until the test is over."""

    class Handler(BaseHTTPRequestHandler):
        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            listener.heard.append(Heard(self.command, self.path, headers, body))
            listener.reply(self)

        do_GET = do_POST = _take

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that hung up
    listener = Listener(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        listener.release.set()
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
