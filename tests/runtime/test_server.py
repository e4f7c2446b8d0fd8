"""The guard's socket: any number of viewers, whatever they do."""

from __future__ import annotations

import math
import os
import socket
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memwatch.domain.command import Command
from memwatch.domain.errors import SessionError
from memwatch.domain.sample import Column
from memwatch.domain.snapshot import Snapshot
from memwatch.runtime.protocol.client import GuardSession
from memwatch.runtime.protocol.numbers import GuardSilentError
from memwatch.runtime.protocol.server import SessionServer
from tests.runtime.fakes import FakeHub, RawLine, serving, snapshot
from tests.waiting import wait_for


def test_every_call_of_the_protocol() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        session = GuardSession(server.path)
        first = session.latest(0, 5.0)
        assert first is not None
        assert first.seq == 1
        assert session.series("memory", 10, 20, 3) == [Column(1.0, 3.0, 2.0)] * 3
        assert session.events(4, 10)[0].seq == 5
        assert session.events(0, 9, 1, 2, ("purge", "run"))[0].seq == 1
        assert session.submit(Command(op="checkpoint", args={"kind": "full"})) == "id-1"
        session.close()
    assert hub.asked == [
        ("memory", 10, 20, 3),
        (4, 10, None, None, ()),
        (0, 9, 1, 2, ("purge", "run")),
    ]
    assert hub.commands == [Command(op="checkpoint", args={"kind": "full"})]


def test_a_viewer_of_protocol_1_0_names_no_kinds_and_gets_all() -> None:
    hub = FakeHub()
    with serving(hub) as server, RawLine(server.path) as line:
        line.send({"hello": {"proto": [1, 0], "app": "memwatch 0", "future": 1}})
        assert line.receive() is not None
        answer = line.ask("events", after=2, limit=3, t0_us=None, t1_us=None)
        assert answer is not None
        assert answer["ok"]
    assert hub.asked == [(2, 3, None, None, ())]


def test_latest_waits_for_news_and_wakes_the_guard() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        session = GuardSession(server.path)
        got: list[Any] = []
        waiter = threading.Thread(target=lambda: got.append(session.latest(1, 20.0)), daemon=True)
        waiter.start()
        assert hub.wanted.wait(10), "the guard must learn that somebody waits"
        hub.put(snapshot(2))
        server.publish()
        waiter.join(timeout=10)
        assert [one.seq for one in got] == [2]
        assert session.latest(2, 0.05) is None, "no news in time"
        session.close()


def test_a_viewer_of_the_guard_before_is_served_at_once() -> None:
    """It asks for numbers above those that the new guard has counted to."""
    with serving(FakeHub()) as server:
        session = GuardSession(server.path)
        newest = session.latest(5_000, 5.0)
        assert newest is not None
        assert newest.seq == 1
        session.close()


def test_a_guard_that_says_nothing_is_told_soon_after_the_time_asked_for() -> None:
    """A thread of the screen waits in it: what it shows is as old as this wait."""

    class Stuck(FakeHub):
        def newest(self) -> tuple[int, bytes]:
            go_on.wait(8)  # less than the time in which other questions may be answered
            return super().newest()

    go_on = threading.Event()
    with serving(Stuck()) as server:
        session = GuardSession(server.path)
        with pytest.raises(GuardSilentError, match="does not answer"):
            session.latest(1, 0.1)
        go_on.set()
        session.close()


def test_viewers_are_counted_while_they_are_there() -> None:
    with serving(FakeHub()) as server:
        asks_only = GuardSession(server.path)
        asks_only.series("memory", 0, 1, 1)
        assert server.viewers == 0, "a question is no viewer"
        sessions = [GuardSession(server.path) for _ in range(8)]
        for session in sessions:
            assert session.latest(0, 5.0) is not None
        assert server.viewers == 8
        for session in sessions:
            session.close()
        wait_for(lambda: server.viewers == 0, "all viewers gone")
        asks_only.close()


def test_many_viewers_get_the_same_news() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        sessions = [GuardSession(server.path) for _ in range(12)]
        seen: list[int] = []

        def follow(session: GuardSession) -> None:
            newest = session.latest(1, 20.0)
            seen.append(newest.seq if newest else 0)

        threads = [threading.Thread(target=follow, args=(s,), daemon=True) for s in sessions]
        for thread in threads:
            thread.start()
        wait_for(lambda: server.viewers == 12, "all waiting")
        hub.put(snapshot(2))
        server.publish()
        for thread in threads:
            thread.join(timeout=10)
        assert seen == [2] * 12
        for session in sessions:
            session.close()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"call": "fly"}, "does not know the call 'fly'"),
        ({}, "does not know the call 'None'"),
        ({"call": "series", "resource": "memory"}, "makes no sense.*t0_us"),
        ({"call": "series", "resource": 1, "t0_us": 0, "t1_us": 1, "columns": 1}, "makes no sense"),
        ({"call": "series", "resource": "m", "t0_us": 0, "t1_us": 1, "columns": math.inf}, "sense"),
        ({"call": "events", "after": "first", "limit": 1}, "makes no sense"),
        ({"call": "events", "after": 0, "limit": 1, "t0_us": "now"}, "makes no sense"),
        ({"call": "latest", "after_seq": 1.5}, "makes no sense"),
        ({"call": "submit", "command": "checkpoint"}, "makes no sense"),
        ({"call": "submit", "command": {"op": "forbidden"}}, "does not offer"),
        ({"call": "series", "resource": "broken", "t0_us": 0, "t1_us": 1, "columns": 1}, "Runtime"),
    ],
)
def test_a_request_that_makes_no_sense_is_answered_and_the_line_lives(
    request_: dict[str, Any], words: str
) -> None:
    with serving(FakeHub()) as server, RawLine(server.path) as line:
        line.greet()
        line.send({"id": 3, **request_})
        answer = line.receive()
        assert answer is not None
        assert answer["id"] == 3
        assert answer["ok"] is False
        with pytest.raises(AssertionError, match=words):
            raise AssertionError(answer["error"])
        after = line.ask("status")
        assert after is not None
        assert after["ok"] is True


@pytest.mark.parametrize("timeout_s", [math.nan, math.inf, -math.inf, -5.0])
def test_a_strange_patience_is_bounded(timeout_s: float) -> None:
    hub = FakeHub()
    with serving(hub) as server, RawLine(server.path) as line:
        line.greet()
        line.send({"id": 1, "call": "latest", "after_seq": 1, "timeout_s": timeout_s})
        if not timeout_s < 0:
            assert hub.wanted.wait(10)
            hub.put(snapshot(2))
            server.publish()
        answer = line.receive()
        assert answer is not None
        assert answer["ok"] is True
        assert (answer["result"] is None) == (timeout_s < 0)


def test_columns_and_limits_are_bounded() -> None:
    hub = FakeHub()
    with serving(hub) as server, RawLine(server.path) as line:
        line.greet()
        line.ask("series", resource="memory", t0_us=0, t1_us=1, columns=10**9)
        line.ask("events", after=0, limit=-3)
    assert hub.asked[0][3] == 2000
    assert hub.asked[1][1] == 1


def test_another_major_is_refused_with_a_sentence() -> None:
    with serving(FakeHub()) as server, RawLine(server.path) as line:
        line.send({"hello": {"proto": [2, 0]}})
        assert line.receive() is not None, "the server's own greeting"
        refusal = line.receive()
        assert refusal is not None
        assert "protocol 2" in refusal["error"]
        assert line.receive() is None, "closed"


def test_a_newer_minor_and_unknown_members_are_welcome() -> None:
    with serving(FakeHub()) as server, RawLine(server.path) as line:
        line.send({"hello": {"proto": [1, 99], "colour": "blue"}, "more": 1})
        line.receive()
        answer = line.ask("events", after=1, limit=1, colour="blue")
        assert answer is not None
        assert answer["ok"] is True


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x00\x00\x00\x01\xc1",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02[]",
    ],
)
def test_noise_ends_its_own_line_only(noise: bytes) -> None:
    with serving(FakeHub()) as server, RawLine(server.path) as good, RawLine(server.path) as bad:
        good.greet()
        bad.socket.sendall(noise)
        bad.socket.shutdown(socket.SHUT_WR)
        while bad.receive() is not None:
            pass
        answer = good.ask("status")
        assert answer is not None
        assert answer["ok"] is True


def test_a_peer_of_another_user_is_refused_without_a_word() -> None:
    with serving(FakeHub(), owner_uid=os.geteuid() + 1) as server, RawLine(server.path) as line:
        assert line.receive() is None
        with pytest.raises(SessionError):
            GuardSession(server.path)


def test_a_viewer_that_does_not_read_is_dropped_and_others_are_served() -> None:
    hub = FakeHub()
    hub.put(snapshot(1, note="x" * 4_000_000))
    with serving(hub, send_timeout_s=0.3) as server, RawLine(server.path) as lazy:
        lazy.greet()
        lazy.send({"id": 1, "call": "latest"})
        lazy.send({"id": 2, "call": "latest"})
        wait_for(lambda: server.viewers == 1, "the lazy viewer")
        other = GuardSession(server.path)
        answer = other.latest(0, 5.0)
        assert answer is not None
        assert answer.seq == 1
        wait_for(lambda: server.viewers == 1, "the lazy one dropped, the other there")
        assert other.latest(1, 0.05) is None
        other.close()


def test_the_socket_is_ours_alone_and_gone_afterwards() -> None:
    with serving(FakeHub()) as server:
        path = server.path
        assert path.stat().st_mode & 0o777 == 0o600
    assert not path.exists()


def test_a_dead_socket_in_the_way_is_replaced(tmp_path: Path) -> None:
    with serving(FakeHub()) as server:
        path = server.path
        again = SessionServer(path, "run-1", "start-2", FakeHub())
        again.start()
        session = GuardSession(path)
        assert session.latest(0, 5.0) is not None
        session.close()
        again.stop()


def test_a_place_where_no_socket_can_be_is_one_sentence(tmp_path: Path) -> None:
    server = SessionServer(tmp_path / "missing" / "s.sock", "run-1", "start-1", FakeHub())
    with pytest.raises(SessionError, match="cannot listen"):
        server.start()
    server.stop()


def test_stopping_ends_those_who_wait() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        session = GuardSession(server.path)
        failures: list[str] = []

        def wait() -> None:
            try:
                session.latest(1, 20.0)
            except SessionError as error:
                failures.append(str(error))

        waiter = threading.Thread(target=wait, daemon=True)
        waiter.start()
        assert hub.wanted.wait(10)
        server.stop()
        waiter.join(timeout=10)
        assert len(failures) == 1


def test_stopping_leaves_no_traceback_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with serving(FakeHub()) as server:
        session = GuardSession(server.path)
        assert session.latest(0, 5.0) is not None
        server.stop()
        session.close()
    assert caplog.records == []


def test_a_server_that_fails_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub()
    told: list[str] = []
    with serving(hub) as server:
        server.on_failure = told.append
        session = GuardSession(server.path)
        assert session.latest(0, 5.0) is not None

        def fail() -> None:
            monkeypatch.setattr(server, "_finish", original)
            raise ArithmeticError("a defect of ours")

        async def failing() -> None:
            fail()

        original = server._finish
        monkeypatch.setattr(server, "_finish", failing)
        server._call(lambda: server._stop.set() if server._stop else None)
        wait_for(lambda: told, "the failure told")
        assert "ArithmeticError: a defect of ours" in told[0]
        newest = wait_for(lambda: _latest(server.path), "a server again")
        assert newest.seq == 1
        session.close()
    assert not server.path.exists()


def _latest(path: Path) -> Snapshot | None:
    try:
        with closing(GuardSession(path)) as session:
            return session.latest(0, 5.0)
    except SessionError:
        return None
