"""HTTP deliveries against a real server: it fails, hangs, drips, redirects, hangs up, lies."""

from __future__ import annotations

import socket
import time
from http.server import BaseHTTPRequestHandler

import pytest

from memwatch.actuators.notify.deliver import HttpRequest, Outcome, deliver
from tests.actuators.notify.listening import Listener, status

SECRET = "/T0K3N-s3cret"


def post(url: str, **headers: str) -> HttpRequest:
    return HttpRequest(url=url, body=b"hello", headers=headers)


def send(url: str, name: str = "test", deadline_s: float = 5.0) -> Outcome:
    return deliver(post(url), name, deadline_s=deadline_s)


def test_what_is_sent_arrives_whole(server: Listener) -> None:
    outcome = deliver(post(server.url + SECRET, authorization="Bearer x"), "whole")
    assert (outcome.ok, outcome.detail) == (True, "answered 200")
    (heard,) = server.heard
    assert (heard.method, heard.path, heard.body) == ("POST", SECRET, b"hello")
    assert heard.headers["authorization"] == "Bearer x"
    assert deliver(HttpRequest(url=server.url), "get").ok
    assert server.heard[1].method == "GET"


@pytest.mark.parametrize(
    ("code", "detail", "again"),
    [
        (204, "answered 204", True),
        (400, "answered 400 Bad Request", False),
        (403, "answered 403 Forbidden", False),
        (429, "answered 429 Too Many Requests", True),
        (500, "answered 500 Internal Server Error", True),
        (503, "answered 503 Service Unavailable", True),
        (799, "answered 799", True),
    ],
)
def test_the_status_decides_whether_it_is_tried_again(
    server: Listener, code: int, detail: str, again: bool
) -> None:
    server.reply = status(code)
    outcome = send(server.url + SECRET)
    assert (outcome.ok, outcome.detail, outcome.again) == (code == 204, detail, again)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["/elsewhere", "file:///etc/passwd", "ftp://127.0.0.1/"])
def test_no_redirect_is_followed(server: Listener, code: int, target: str) -> None:
    server.reply = status(code, Location=target)
    outcome = send(server.url)
    assert (outcome.ok, outcome.again) == (False, False)
    assert outcome.detail.startswith(f"redirected ({code}")
    assert len(server.heard) == 1, "neither the message nor its headers went on"


def test_a_server_that_does_not_answer_ends_at_the_deadline_and_costs_one_thread(
    server: Listener,
) -> None:
    def hang(_: BaseHTTPRequestHandler) -> None:
        server.release.wait(20)

    server.reply = hang
    began = time.monotonic()
    assert send(server.url, "hangs", 0.2) == Outcome(ok=False, detail="no answer within 0.2 s")
    assert time.monotonic() - began < 5, "not when the server is done"


def test_a_server_that_drips_ends_at_the_deadline(server: Listener) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not server.release.wait(0.05):
            handler.wfile.write(b"a")

    server.reply = drip
    assert send(server.url, "drips", 0.4).detail == "no answer within 0.4 s"
    server.reply = status(200)
    assert send(server.url, "another", 5.0).ok, "another channel does not wait for it"


def test_a_body_without_end_is_not_read(server: Listener) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000)
        server.release.wait(20)

    server.reply = endless
    assert send(server.url, "endless").ok


def test_a_server_that_hangs_up_or_speaks_something_else(server: Listener) -> None:
    server.reply = lambda handler: handler.connection.shutdown(socket.SHUT_RDWR)
    outcome = send(server.url + SECRET)
    assert (outcome.detail, outcome.again) == ("the connection was closed", True)

    def speak(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"SSH-2.0-OpenSSH\r\n")
        handler.close_connection = True

    server.reply = speak
    assert send(server.url).detail == "what answered does not speak HTTP"


def test_nobody_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}{SECRET}"
        assert send(url) == Outcome(ok=False, detail="connection refused")


def test_a_server_without_a_certificate_is_not_spoken_to(server: Listener) -> None:
    outcome = send(server.url.replace("http:", "https:") + SECRET)
    assert (outcome.ok, outcome.detail) == (False, "no secure connection came about")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "data:text/plain,x",
        "gopher://127.0.0.1/",
        "http://",
        "http://127.0.0.1:port/s3cret",
        "http://127.0.0.1/ s3cret",
        "http://127.0.0.1/\r\nX: s3cret",
        "s3cret",
    ],
)
def test_other_addresses_are_refused_and_never_repeated(url: str) -> None:
    outcome = send(url)
    words = "the address or a header is not valid"
    assert outcome == Outcome(ok=False, detail=words, again=False)


def test_a_header_of_two_lines_is_refused(server: Listener) -> None:
    outcome = deliver(post(server.url, a="b\r\nc: s3cret"), "header")
    assert (outcome.ok, "s3cret" in outcome.detail) == (False, False)
    assert server.heard == []


def test_a_proxy_is_used_for_others_and_never_for_this_machine(
    server: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, server.url)
    for name in ("no_proxy", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    assert send("http://ntfy.invalid/topic").ok
    assert server.heard[0].path == "http://ntfy.invalid/topic"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert not send(f"http://127.0.0.1:{taken.getsockname()[1]}/").ok
    assert len(server.heard) == 1

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setenv("no_proxy", "ntfy.invalid")
    assert send("http://ntfy.invalid/topic").detail == "the name of the host is not known"
