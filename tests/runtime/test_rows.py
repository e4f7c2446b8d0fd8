"""Lists that are too long for a snapshot come by a call of their own (protocol 1.3)."""

from __future__ import annotations

import pytest

from memwatch.runtime.protocol.client import GuardSession
from tests.runtime.fakes import FakeHub, RawLine, serving


def test_rows_come_as_what_they_are() -> None:
    hub = FakeHub()
    with serving(hub) as server:
        session = GuardSession(server.path)
        assert [one.bytes for one in session.rows("checkpoints", 20)] == [9]
        assert [one.verdict for one in session.rows("interventions", 30)] == ["effective"]
        session.close()
    assert hub.asked == [("checkpoints", 20), ("interventions", 30)]


def test_their_number_is_bounded() -> None:
    hub = FakeHub()
    with serving(hub) as server, RawLine(server.path) as line:
        line.greet()
        line.ask("rows", what="checkpoints", limit=10**9)
        line.ask("rows", what="interventions", limit=-1)
    assert hub.asked == [("checkpoints", 500), ("interventions", 1)]


@pytest.mark.parametrize("asked", [{"what": "secrets", "limit": 9}, {"what": "checkpoints"}])
def test_rows_of_something_else_are_refused_and_the_line_lives(asked: dict[str, object]) -> None:
    hub = FakeHub()
    with serving(hub) as server, RawLine(server.path) as line:
        line.greet()
        answer = line.ask("rows", **asked)
        assert answer is not None
        assert not answer["ok"]
        assert "makes no sense" in answer["error"]
        after = line.ask("status")
        assert after is not None
        assert after["ok"]
    assert hub.asked == []
