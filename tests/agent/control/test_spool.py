"""The spool refuses before it parses: bad bytes, planted files, links."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.control.listener import ControlListener
from memwatch.wal.spool_format import MAX_BYTES
from tests.agent.control.acting import Agent
from tests.agent.control.sending import a_command, ack_of, publish, publish_bytes, state_of
from tests.agent.reading import context_at


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.context.log.close()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b'{"proto":1,"id":"c1"',
        b"[]",
        b"\xff\xfe",
        b"[" * 10_000,
        b"x" * (MAX_BYTES + 1),
        b'{"proto":1,"id":"c1","run_id":"run-1","op":"mark","issued_us":NaN}',
        b'{"proto":1,"id":"c1","run_id":"run-1","op":"mark","issued_us":"now"}',
        b'{"proto":2,"id":"c1","run_id":"run-1","op":"mark","issued_us":1}',
        b'{"proto":1,"id":"c2","run_id":"run-1","op":"mark","issued_us":1}',
        b'{"proto":1,"id":"c1","run_id":"run-1","op":"mark","issued_us":1,"sudo":true}',
    ],
)
def test_what_is_no_command_is_set_aside_and_refused(agent: Agent, text: bytes) -> None:
    publish_bytes(agent.path, "3-c1.json", text)
    agent.turn()
    assert state_of(agent.path) == "refused"
    assert [path.name for path in (agent.path / "control/bad").iterdir()] == ["3-c1.json"]
    assert agent.marks == []


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"dry_run": True, "op": "slow"}, "has no dry run"),
        ({"confirm": "run-1"}, "can check none"),
        ({"expect": {"gen": 17}}, "precondition: gen is 0, not 17"),
        ({"expect": {"moon": "full"}}, "does not state moon"),
        ({"epoch": 40}, "epoch 40 is over, 41 was seen"),
    ],
)
def test_a_condition_that_cannot_be_kept_is_an_answer(
    agent: Agent, members: dict[str, Any], words: str
) -> None:
    publish(agent.path, a_command(agent.clock, "first", epoch=41))
    publish(agent.path, a_command(agent.clock, "second", **members))
    agent.turn()
    assert state_of(agent.path, "first") == "done"
    ack = ack_of(agent.path, "second")
    assert ack is not None
    assert (ack["state"], words in ack["detail"]) == ("refused", True)
    assert agent.marks == [{}]


def test_conditions_that_are_kept_and_members_of_others_are_no_trouble(agent: Agent) -> None:
    about: dict[str, Any] = {
        "epoch": 3,
        "expect": {},
        "dry_run": False,
        "confirm": None,
        "x_trace": [1],
    }
    by = {"uid": 1, "rule": "rss-slope@6", "evidence": {"value": 38.5}}
    publish(agent.path, a_command(agent.clock, **about, by=by))
    agent.turn()
    assert state_of(agent.path) == "done"


def _symlink(path: Path, target: Path) -> None:
    path.symlink_to(target)


def _group_writable(path: Path, target: Path) -> None:
    path.write_bytes(target.read_bytes())
    path.chmod(0o620)


def _hard_link(path: Path, target: Path) -> None:
    os.link(target, path)
    os.link(target, target.with_name("third"))


def _fifo(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path, _target: Path) -> None:
    path.mkdir()


def _socket(path: Path, _target: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket may not be long
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize("plant", [_symlink, _group_writable, _hard_link, _fifo, _folder, _socket])
def test_what_others_could_have_planted_is_never_followed(
    agent: Agent, plant: Callable[[Path, Path], None]
) -> None:
    target = agent.path / "elsewhere.json"
    target.write_text(json.dumps(a_command(agent.clock)))
    plant(agent.path / "control/new/3-c1.json", target)
    publish(agent.path, a_command(agent.clock, "good", args={"n": 1}))
    agent.turn()
    assert agent.marks == [{"n": 1}]
    assert state_of(agent.path) == "refused"
    assert not (agent.path / "control/new/3-c1.json").exists()


def test_other_names_and_drafts_are_no_commands(agent: Agent) -> None:
    publish_bytes(agent.path, ".3-c1.json", b"draft")
    publish_bytes(agent.path, "readme.txt", b"hello")
    agent.turn()
    assert [p.name for p in (agent.path / "control/bad").iterdir()] == ["readme.txt"]
    assert not list((agent.path / "control/ack").iterdir())


def test_an_ack_that_is_a_link_is_replaced_not_followed(agent: Agent) -> None:
    victim = agent.path / "victim"
    victim.write_text("precious")
    (agent.path / "control/ack/c1.json").symlink_to(victim)
    publish(agent.path, a_command(agent.clock))
    agent.turn()
    assert (state_of(agent.path), victim.read_text()) == ("done", "precious")


def test_a_spool_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "control").symlink_to(tmp_path / "real")
    context = context_at(run_dir)
    with pytest.raises(PermissionError):
        ControlListener(context, {})
    context.log.close()
