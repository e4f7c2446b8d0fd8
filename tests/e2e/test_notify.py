"""People who do not look are told by a real guard: a crash, its all-clear, what they missed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.actuators.notify.listening import Listener, listening
from tests.e2e.stage import Stage
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e
SECRET = "T0K3N-s3cret"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as one:
        yield one


@pytest.fixture
def server() -> Iterator[Listener]:
    with listening() as one:
        yield one


def settings(stage: Stage, server: Listener) -> None:
    """Let the guards of a stage tell the server; a heartbeat goes to another address of it."""
    url = f"{server.url}/{SECRET}"
    beat = {"url": f"{server.url}/beat-{SECRET}", "every_s": 1}
    channel = {"kind": "json", "url": url, "headers": {"x-token": SECRET}}
    told = {"notify": {"channels": [channel], "heartbeat": beat}}
    folder = stage.folder / "config" / "memwatch"
    (folder / "config.yaml").write_text(json.dumps(told))  # JSON is YAML


def told(server: Listener) -> list[tuple[str, str]]:
    """Return key and state of what was sent so far."""
    bodies = (json.loads(heard.body) for heard in server.heard if heard.method == "POST")
    return [(body["key"], body["state"]) for body in bodies]


def notified(status: dict[str, Any]) -> bool:
    """Whether all that was to be sent was, and is written down."""
    return bool(all(not one["waiting"] for one in status["notify"]["channels"]))


def test_a_crash_is_told_once_over_a_killed_guard_and_cleared_by_a_new_start(
    stage: Stage, server: Listener
) -> None:
    settings(stage, server)
    puppet = stage.puppet()
    guard = stage.guard(puppet.run_dir)
    wait_for(lambda: any("/beat-" in heard.path for heard in server.heard), "a sign of life")
    assert told(server) == []
    puppet.kill()
    puppet.wait()
    wait_for(lambda: told(server), "the alert")
    assert told(server) == [("crashed", "raised")]
    status = stage.wait_status(puppet.run_dir, notified, "sent")
    assert [alert["key"] for alert in status["alerts"]] == ["crashed"]

    guard.kill()
    guard.wait()
    stage.guard(puppet.run_dir)
    stage.puppet()
    stage.wait_status(puppet.run_dir, lambda s: s["run"]["state"] == "running", "running")
    wait_for(lambda: len(told(server)) > 1, "the all-clear")
    assert told(server) == [("crashed", "raised"), ("crashed", "cleared")]
    status = stage.wait_status(puppet.run_dir, lambda s: not s["alerts"], "no alert")
    assert status["since"]["alerts"] == 1
    assert status["since"]["starts"] == 1
    assert SECRET not in json.dumps(status)
    held = [path.read_bytes() for path in stage.home.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in text for text in held), "in no log, history or status"


def test_a_test_is_sent_on_request(stage: Stage, server: Listener) -> None:
    from memwatch.domain.command import Command

    settings(stage, server)
    puppet = stage.puppet()
    stage.guard(puppet.run_dir)
    session = stage.session(puppet.run_dir)
    session.submit(Command(op="notify.test"))
    wait_for(lambda: told(server), "the test")
    assert told(server) == [("test", "test")]
    tested = "tested_us"
    stage.wait_status(puppet.run_dir, lambda s: s["notify"]["channels"][0][tested], "tested")
