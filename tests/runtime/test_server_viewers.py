"""Who looks and who asks: protocol 1.2 of the guard's socket."""

from __future__ import annotations

from contextlib import closing

import pytest

from memwatch.domain.command import Command
from memwatch.domain.errors import SessionError
from memwatch.runtime.protocol.client import GuardSession
from tests.runtime.fakes import FakeHub, RawLine, serving
from tests.waiting import wait_for


def test_how_far_a_request_came_is_asked_by_its_id() -> None:
    with serving(FakeHub()) as server, closing(GuardSession(server.path)) as session:
        info = session.command("id-1")
        assert (info.id, info.op, info.state) == ("id-1", "purge", "running")
        assert session.command("never").state == "unknown"


def test_a_viewer_that_only_looks_on_asks_for_nothing() -> None:
    hub = FakeHub()
    with (
        serving(hub) as server,
        closing(GuardSession(server.path, viewer="tui", view_only=True)) as session,
    ):
        with pytest.raises(SessionError, match="only looks on"):
            session.submit(Command(op="note"))
        assert session.latest(0, 5.0) is not None
        assert session.command("id-1").state == "running"
    assert hub.commands == []


def test_a_request_says_whose_it_is_and_nobody_speaks_for_the_engine() -> None:
    hub = FakeHub()
    with (
        serving(hub) as server,
        closing(GuardSession(server.path, viewer="tui\x1b[31m")) as session,
    ):
        session.submit(Command(op="pause", origin="engine", plan="p1"))
        session.submit(Command(op="pause", by="ctl"))
    assert [(one.origin, one.plan, one.by) for one in hub.commands] == [
        ("operator", "", "tui\ufffd[31m"),
        ("operator", "", "ctl"),
    ]


def test_the_guard_learns_who_looks_and_when_the_last_one_left() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        one, two = GuardSession(server.path, viewer="one"), GuardSession(server.path, viewer="two")
        with closing(GuardSession(server.path, viewer="asks only")) as third:
            third.command("id-1")
        for session in (one, two, one):
            assert session.latest(0, 5.0) is not None
        one.close()
        wait_for(lambda: len(hub.viewers) == 3, "the first one gone")
        two.close()
        wait_for(lambda: len(hub.viewers) == 4, "the last one gone")
    assert hub.viewers == [
        ("came", "one", False),
        ("came", "two", False),
        ("left", "one", False),
        ("left", "two", True),
    ]


def test_a_viewer_that_is_there_at_the_end_has_left() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        session = GuardSession(server.path, viewer="one")
        assert session.latest(0, 5.0) is not None
    assert hub.viewers[-1] == ("left", "one", True)
    session.close()


def test_a_hub_that_fails_to_note_a_viewer_costs_it_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Broken(FakeHub):
        def viewer_came(self, name: str) -> None:
            raise RuntimeError("a defect")

    with serving(Broken()) as server, closing(GuardSession(server.path)) as session:
        assert session.latest(0, 5.0) is not None
    assert "a defect" in capfd.readouterr().err


def test_a_viewer_of_protocol_1_1_names_nobody() -> None:
    hub = FakeHub()
    with serving(hub) as server, RawLine(server.path) as line:
        line.send({"hello": {"proto": [1, 1], "app": "memwatch 0", "viewer": 7, "view": "yes"}})
        line.receive()
        assert (line.ask("submit", command={"op": "note"}) or {})["ok"]
        assert not (line.ask("command") or {"ok": True})["ok"], "which one?"
    assert [one.by for one in hub.commands] == ["7"]
