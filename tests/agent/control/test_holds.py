"""Leased holds: seen, renewed, kept, over; several holders; restarts; what is no hold."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.wal.spool_format import MAX_BYTES
from tests.agent.control.acting import Agent
from tests.agent.control.sending import (
    a_command,
    a_hold,
    ack_of,
    publish,
    put_hold,
    put_hold_bytes,
    state_of,
    told,
)
from tests.agent.reading import read_log


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.context.log.close()


def modes(agent: Agent) -> list[tuple[str, str]]:
    records = read_log(agent.path / "wal")[0]
    return [(r.text("mode"), r.text("cause")) for r in records if r.kind == "mode"]


def test_a_hold_is_honoured_answered_and_logged(agent: Agent) -> None:
    put_hold(agent.path, a_hold(reason="look at the growth", renewed=4))
    agent.listener.poll()
    assert agent.state == "paused"
    (hold,) = told(agent.path).holds
    assert (hold.id, hold.op, hold.owner, hold.seen) == ("h1", "pause", "ann", 4)
    assert (hold.effective, hold.drained) == (True, True)
    assert hold.ends_us == agent.clock.boot_us() + 120_000_000
    assert modes(agent) == [("paused", "pause by ann: look at the growth")]


def test_to_resume_is_to_delete_ones_own_hold(agent: Agent) -> None:
    mine = put_hold(agent.path, a_hold())
    other = put_hold(agent.path, a_hold("h2"), "ben")
    agent.listener.poll()
    gen = agent.mode.gen
    mine.unlink()
    agent.listener.poll()
    assert agent.state == "paused"
    assert agent.mode.gen == gen + 1, "the one who resumed sees that it was heard"
    other.unlink()
    agent.listener.poll()
    assert agent.state == "running"
    assert modes(agent)[-1] == ("running", "nothing holds it any more")


def test_a_lease_counts_from_the_renewal_that_was_seen(agent: Agent) -> None:
    put_hold(agent.path, a_hold(lease_us=10_000_000))
    agent.listener.poll()
    agent.clock.advance_s(8)
    agent.clock.step_wall_s(3600)
    put_hold(agent.path, a_hold(lease_us=10_000_000, renewed=1))
    agent.listener.poll()
    agent.clock.advance_s(9)
    agent.listener.poll()
    assert agent.state == "paused"
    agent.clock.advance_s(2)
    agent.listener.poll()
    assert (agent.state, told(agent.path).holds) == ("running", [])


def test_a_file_that_is_only_written_again_renews_nothing(agent: Agent) -> None:
    for _ in range(3):
        put_hold(agent.path, a_hold(lease_us=10_000_000, renewed=7))
        agent.listener.poll()
        agent.clock.advance_s(4)
    agent.listener.poll()
    assert agent.state == "running"


@pytest.mark.parametrize(
    ("op", "on_lease_end", "after"),
    [
        ("pause", None, "running"),
        ("pause", "keep", "paused"),
        ("read_only", None, "read_only"),
        ("read_only", "release", "running"),
    ],
)
def test_what_a_lease_that_ends_leaves(
    agent: Agent, op: str, on_lease_end: str | None, after: str
) -> None:
    path = put_hold(agent.path, a_hold(op=op, lease_us=1_000_000, on_lease_end=on_lease_end))
    agent.listener.poll()
    agent.clock.advance_s(86_400)
    agent.listener.poll()
    assert agent.state == after
    path.unlink(missing_ok=True)
    agent.listener.poll()
    assert agent.state == "running"


def test_the_file_of_a_dead_writer_goes_in_the_end(agent: Agent) -> None:
    path = put_hold(agent.path, a_hold(lease_us=1_000_000))
    agent.listener.poll()
    agent.clock.advance_s(1800)
    agent.listener.poll()
    assert path.exists(), "it may still be renewed"
    agent.clock.advance_s(1900)
    agent.listener.poll()
    assert not path.exists()


def test_a_restart_during_a_hold_starts_held(agent: Agent) -> None:
    put_hold(agent.path, a_hold(run_id="any"))
    agent.listener.poll()
    gen = agent.mode.gen
    agent.context.log.close()
    again = Agent(agent.path, agent.clock)
    again.listener.start()
    try:
        assert again.state == "paused"
        assert told(agent.path).gen > gen
        assert told(agent.path).seq == 2
    finally:
        again.listener.stop()
        again.context.log.close()
    assert told(agent.path).mode == "ended"


def test_of_two_kinds_the_stronger_is_the_mode(agent: Agent) -> None:
    put_hold(agent.path, a_hold())
    put_hold(agent.path, a_hold("h2", "read_only"), "ben")
    agent.listener.poll()
    assert agent.state == "read_only"


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"run_id": "run-of-yesterday"}, "wrong_run"),
        ({"epoch": 3}, "stale"),
        ({"sudo": True}, "unknown members: sudo"),
        ({"lease_us": 0}, "no time at all"),
        ({"lease_us": 1.5}, "not a hold"),
        ({"proto": 2}, "protocol 2"),
        ({"op": "freeze"}, "owner"),
        ({"on_lease_end": "explode"}, "not a hold"),
    ],
)
def test_what_may_not_hold_is_set_aside(agent: Agent, members: dict[str, Any], words: str) -> None:
    publish(agent.path, a_command(agent.clock, epoch=4))
    agent.listener.poll()
    path = put_hold(agent.path, a_hold(**members))
    agent.listener.poll()
    assert agent.state == "running"
    assert not path.exists()
    assert (agent.path / "control/bad" / path.name).exists()
    refused = [r for r in read_log(agent.path / "wal")[0] if r.text("state") == "refused"]
    assert len(refused) == 1
    assert words in refused[0].text("detail")


def test_a_refusal_is_answered_where_an_id_is_known(agent: Agent) -> None:
    put_hold(agent.path, a_hold(run_id="run-of-yesterday"))
    agent.listener.poll()
    assert state_of(agent.path, "h1") == "refused"
    assert "wrong_run" in (ack_of(agent.path, "h1") or {})["detail"]


def test_a_refused_renewal_renews_nothing_and_releases_nothing(agent: Agent) -> None:
    put_hold(agent.path, a_hold(op="read_only", lease_us=10_000_000))
    agent.listener.poll()
    put_hold_bytes(agent.path, "ann-read_only.json", b'{"proto":1,"id"')
    agent.listener.poll()
    agent.clock.advance_s(9)
    agent.listener.poll()
    assert agent.state == "read_only"
    agent.clock.advance_s(2)
    agent.listener.poll()
    assert agent.state == "running"


def _symlink(path: Path, target: Path) -> None:
    path.symlink_to(target)


def _hard_link(path: Path, target: Path) -> None:
    os.link(target, path)
    os.link(target, target.with_name("third"))


def _group_writable(path: Path, target: Path) -> None:
    path.write_bytes(target.read_bytes())
    path.chmod(0o620)


def _fifo(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path, _target: Path) -> None:
    path.mkdir()


def _too_long(path: Path, target: Path) -> None:
    path.write_bytes(target.read_bytes().ljust(MAX_BYTES + 1))


def _empty(path: Path, _target: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "plant", [_symlink, _hard_link, _group_writable, _fifo, _folder, _too_long, _empty]
)
def test_what_others_could_have_planted_holds_nobody(
    agent: Agent, plant: Callable[[Path, Path], None]
) -> None:
    target = agent.path / "elsewhere.json"
    target.write_text(json.dumps(a_hold()))
    target.chmod(0o600)
    plant(agent.path / "control/hold/ann-pause.json", target)
    agent.listener.poll()
    assert agent.state == "running"
    assert not list((agent.path / "control/hold").iterdir())
    assert target.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_hold_of_another_user_holds_nobody(agent: Agent) -> None:
    path = put_hold(agent.path, a_hold())
    os.chown(path, 12345, -1)
    agent.listener.poll()
    assert agent.state == "running"


def test_drafts_are_no_holds(agent: Agent) -> None:
    put_hold_bytes(agent.path, ".ann-pause.json", b"half")
    agent.listener.poll()
    assert (agent.path / "control/hold/.ann-pause.json").exists()
