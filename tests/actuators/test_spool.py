"""Commands reach the agent whole, and nothing put in the spool's way leads us elsewhere."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memwatch.actuators.folder import ControlFolder
from memwatch.actuators.spool import Spool
from memwatch.agent.control.spool import Spool as AgentSpool
from memwatch.agent.files import SYSTEM_FILES
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.wal.spool_format import DEADLINE_US, MAX_BYTES, TTL_US
from memwatch.wal.spool_format import Ack as AgentAck
from tests.builders import T0_US

RUN_ID = "run-1"
CHECKPOINT = Command(op="checkpoint", args={"kind": "full"})


@pytest.fixture
def agent(tmp_path: Path) -> AgentSpool:
    """The agent's side, which makes the folders."""
    return AgentSpool(tmp_path / "control", SYSTEM_FILES)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(ControlFolder(tmp_path, RUN_ID))


def ack(**members: Any) -> dict[str, Any]:
    return {"proto": 1, "id": "a1", "run_id": RUN_ID, "seq": 1, "state": "done", **members}


def write_ack(agent: AgentSpool, text: bytes, name: str = "a1") -> Path:
    path = agent.path / "ack" / f"{name}.json"
    path.write_bytes(text)
    path.chmod(0o600)
    return path


def publish(spool: Spool, name: str = "a1", command: Command = CHECKPOINT) -> None:
    spool.publish(name, command, T0_US)


def test_the_agent_reads_what_was_published(agent: AgentSpool, spool: Spool) -> None:
    publish(spool)
    (name,) = agent.names("new")
    command, _ = agent.read("new", name)
    assert (command.id, command.run_id, command.op) == ("a1", RUN_ID, "checkpoint")
    assert command.args == {"kind": "full"}
    assert command.issued_us == T0_US
    assert (command.ttl_us, command.deadline_us) == (TTL_US, DEADLINE_US)
    assert command.by.uid == os.getuid()
    assert not list((agent.path / "tmp").iterdir()), "no draft stays"


def test_names_say_the_priority(agent: AgentSpool, spool: Spool) -> None:
    for op in ("leak", "purge", "checkpoint", "abort_experiment"):
        publish(spool, f"id-{op}", Command(op=op))
    assert [name[0] for name in agent.names("new")] == ["0", "1", "2", "3"]


def test_an_existing_name_is_never_replaced(agent: AgentSpool, spool: Spool) -> None:
    publish(spool)
    before = (agent.path / "new" / "1-a1.json").read_bytes()
    with pytest.raises(MemwatchError, match="File exists"):
        publish(spool, command=Command(op="checkpoint", args={"kind": "incremental"}))
    assert (agent.path / "new" / "1-a1.json").read_bytes() == before
    assert not list((agent.path / "tmp").iterdir())


def test_a_command_that_is_too_long_is_not_handed_over(agent: AgentSpool, spool: Spool) -> None:
    with pytest.raises(MemwatchError, match="over the"):
        publish(spool, command=Command(op="note", args={"text": "x" * MAX_BYTES}))
    assert agent.names("new") == []


@pytest.mark.parametrize("value", [object(), msgspec.msgpack.Ext(1, b"x"), {1j: 2}])
def test_what_no_json_holds_is_not_handed_over(
    agent: AgentSpool, spool: Spool, value: object
) -> None:
    with pytest.raises(MemwatchError, match="cannot be written down"):
        publish(spool, command=Command(op="note", args={"it": value}))
    assert agent.names("new") == []


def test_a_run_without_a_spool_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MemwatchError, match="cannot be handed over: No such file"):
        publish(Spool(ControlFolder(tmp_path, RUN_ID)))
    assert list(tmp_path.iterdir()) == [], "nothing is made in a run that has none"


@pytest.mark.parametrize("name", ["control", "control/tmp", "control/new"])
def test_a_linked_folder_is_refused(
    agent: AgentSpool, spool: Spool, tmp_path: Path, name: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / name).rename(elsewhere)
    (tmp_path / name).symlink_to(elsewhere)
    with pytest.raises(MemwatchError, match="cannot be handed over"):
        publish(spool)
    assert not [path for path in elsewhere.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["control", "control/tmp", "control/new"])
def test_a_folder_that_others_may_write_is_refused(
    agent: AgentSpool, spool: Spool, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).chmod(0o777)
    with pytest.raises(MemwatchError, match="only we may write"):
        publish(spool)


def test_a_folder_of_somebody_else_is_refused(
    agent: AgentSpool, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_ack(agent, msgspec.json.encode(ack()))
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    with pytest.raises(MemwatchError, match="not ours"):
        publish(spool)
    assert spool.ack("a1") is None


def test_a_disk_that_takes_half_a_command_publishes_none(
    agent: AgentSpool, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.write, 0

    def filling(fd: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", filling)
    with pytest.raises(MemwatchError, match="No space left"):
        publish(spool)
    assert calls == 2, "a short write is gone on with"
    assert agent.names("new") == []
    assert not list((agent.path / "tmp").iterdir())


def test_drafts_of_killed_writers_are_swept(agent: AgentSpool, spool: Spool) -> None:
    left, fresh = agent.path / "tmp" / "left", agent.path / "tmp" / "fresh"
    for path, age_s in ((left, 7200), (fresh, 60)):
        path.write_bytes(b"{")
        os.utime(path, (T0_US / 1e6 - age_s, T0_US / 1e6 - age_s))
    publish(spool)
    assert not left.exists()
    assert fresh.exists()


def test_an_answer_is_read(agent: AgentSpool, spool: Spool) -> None:
    assert spool.ack("a1") is None
    answer = AgentAck(
        id="a1", run_id=RUN_ID, seq=3, state="failed", wall_us=1, boot_us=1, pid=9, detail="no room"
    )
    agent.write_ack(answer)
    read = spool.ack("a1")
    assert read is not None
    assert (read.state, read.detail, read.seq) == ("failed", "no room", 3)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[1]",
        b"\xff\xfe",
        b"[" * 5000,
        msgspec.json.encode(ack(seq="one")),
        msgspec.json.encode(ack(run_id="another")),
        msgspec.json.encode(ack(id="a2")),
        msgspec.json.encode(ack(detail="x" * MAX_BYTES)),
    ],
    ids=["empty", "cut", "list", "no utf-8", "nested", "shape", "run", "id", "too long"],
)
def test_what_is_no_answer_is_none(agent: AgentSpool, spool: Spool, text: bytes) -> None:
    write_ack(agent, text)
    assert spool.ack("a1") is None


def test_an_answer_is_never_read_through_a_link_or_from_a_pipe(
    agent: AgentSpool, spool: Spool, tmp_path: Path
) -> None:
    real = tmp_path / "real.json"
    real.write_bytes(msgspec.json.encode(ack()))
    link = agent.path / "ack" / "a1.json"
    link.symlink_to(real)
    assert spool.ack("a1") is None
    link.unlink()
    os.mkfifo(link, 0o600)
    assert spool.ack("a1") is None, "and it did not wait for a writer"


def test_an_answer_that_others_may_have_written_is_none(agent: AgentSpool, spool: Spool) -> None:
    path = write_ack(agent, msgspec.json.encode(ack()))
    assert spool.ack("a1") is not None
    path.chmod(0o666)
    assert spool.ack("a1") is None


def test_a_result_too_long_for_an_answer_does_not_cost_the_answer(
    agent: AgentSpool, spool: Spool
) -> None:
    result = {"text": "x" * MAX_BYTES}
    agent.write_ack(AgentAck(id="a1", run_id=RUN_ID, seq=3, state="done", result=result))
    answer = spool.ack("a1")
    assert answer is not None
    assert (answer.state, list(answer.result)) == ("done", ["left_out"])
