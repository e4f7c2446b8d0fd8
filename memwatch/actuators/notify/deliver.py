"""Deliver one message: an HTTP request or a command, each with a deadline. Nothing is kept of it.

HTTP: only http and https, certificates are checked, no redirect is followed (a message, its headers
and the secret of an address stay where they were meant to go), the answer's body is not read.
Proxies of the environment (`https_proxy`, `no_proxy`, …) are used as every tool does, but never for
this machine itself. Commands: a list of arguments and no shell, a session of their own, no input,
output dropped; what is not done at the deadline is ended by its id, with its children.

What went wrong is told in our own words: an error's text may hold the address. Source: D7.
"""

from __future__ import annotations

import http.client
import os
import signal
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from msgspec import Struct

from memwatch.host.deadline import ask

DEADLINE_S = 10.0
_LOOK_S = 0.05
_AGAIN = frozenset({408, 425, 429})
"""Refusals that may pass by themselves, as may all from 500."""


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request to make; without a body it is a GET."""

    url: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}


class CommandLine(Struct, frozen=True, kw_only=True):
    """A command to run; each argument reaches it as it stands."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    """Besides the guard's own environment."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of it, in words without any secret."""

    ok: bool
    detail: str = ""
    again: bool = True
    """It may work later."""


def deliver(
    what: HttpRequest | CommandLine,
    name: str,
    *,
    stop: threading.Event | None = None,
    deadline_s: float = DEADLINE_S,
) -> Outcome:
    """Deliver, within the deadline; never raises. `name` tells channels apart.

    An HTTP request that is late may still arrive: who tries again may be heard twice.
    """
    if isinstance(what, CommandLine):
        return _run(what, stop or threading.Event(), deadline_s)
    # A helper thread: neither looking up a name nor a server that drips has an end of its own.
    found = ask(f"notify-{name}", lambda: _request(what, deadline_s), deadline_s)
    return found or Outcome(ok=False, detail=f"no answer within {deadline_s:g} s")


# -- HTTP ----------------------------------------------------------------------------------------


def _request(what: HttpRequest, deadline_s: float) -> Outcome:
    try:
        request = urllib.request.Request(
            what.url, what.body, dict(what.headers), method="GET" if what.body is None else "POST"
        )
        with _opener(what.url).open(request, timeout=deadline_s) as answer:
            return Outcome(ok=True, detail=f"answered {answer.status}")
    except Exception as error:  # noqa: BLE001 - whatever it is, the next message is sent
        return _worded(error)


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Return what opens http and https and nothing else, and follows no redirect."""
    proxies: dict[str, str] | None = {} if _is_here(urlsplit(url).hostname or "") else None
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _worded(error: Exception) -> Outcome:
    if isinstance(error, urllib.error.HTTPError):
        with error:
            return _refused(error.code)
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, http.client.InvalidURL | ValueError | urllib.error.URLError):
        return Outcome(ok=False, detail="the address or a header is not valid", again=False)
    if isinstance(error, OSError):
        return Outcome(ok=False, detail=_os_words(error))
    return Outcome(ok=False, detail="what answered does not speak HTTP")


def _refused(code: int) -> Outcome:
    try:
        phrase = f" {HTTPStatus(code).phrase}"
    except ValueError:
        phrase = ""  # the server's own words may repeat the address
    if 300 <= code < 400:
        detail = f"redirected ({code}{phrase}), which is not followed: name the final address"
        return Outcome(ok=False, detail=detail, again=False)
    again = code >= 500 or code in _AGAIN
    return Outcome(ok=False, detail=f"answered {code}{phrase}", again=again)


def _os_words(error: OSError) -> str:
    import socket  # for errors only: urllib has loaded it

    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return "the name of the host is not known"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not accepted"
    if isinstance(error, ssl.SSLError):
        return "no secure connection came about"
    return os.strerror(error.errno).lower() if error.errno else "the connection was closed"


# -- commands ------------------------------------------------------------------------------------


def _run(what: CommandLine, stop: threading.Event, deadline_s: float) -> Outcome:
    try:
        process = subprocess.Popen(
            [part.encode("utf-8", "surrogateescape") for part in what.argv],  # in any locale
            env={**os.environ, **what.env},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        words = "not found" if missing else os.strerror(error.errno or 0).lower()
        return Outcome(ok=False, detail=f"the command cannot be run: {words}", again=not missing)
    except ValueError:
        return Outcome(ok=False, detail="an argument cannot be passed", again=False)
    end = time.monotonic() + deadline_s
    while process.poll() is None:
        if time.monotonic() >= end:
            _end(process)
            return Outcome(ok=False, detail=f"the command took over {deadline_s:g} s and was ended")
        if stop.wait(_LOOK_S):
            _end(process)
            return Outcome(ok=False, detail="the command was ended, as the guard ended")
    status = process.returncode
    if status == 0:
        return Outcome(ok=True, detail="the command is done")
    how = f"exit status {status}" if status > 0 else f"signal {-status}"
    return Outcome(ok=False, detail=f"the command failed: {how}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it began: their session is its own, and it is not reaped yet."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1.0)  # one that a dead disk holds is reaped when it comes back
