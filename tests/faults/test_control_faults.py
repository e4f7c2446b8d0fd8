"""Control under hostile spools, full disks, stepped clocks, rivals: faults F2 to F15.

F1, the kills, is `test_control_kills`.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memwatch.agent.control.mode import ExperimentAborted
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import FINAL_STATES
from memwatch.host.process import Identity, boot_id, is_alive
from tests.agent.control.acting import Agent
from tests.agent.control.parts import Parts
from tests.agent.control.sending import (
    a_command,
    a_hold,
    ack_of,
    publish,
    publish_bytes,
    put_hold,
    put_hold_bytes,
    state_of,
    told,
)
from tests.faults.obeying import prepared, serving
from tests.waiting import until


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.context.log.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Parts]:
    parts = Parts(tmp_path)
    yield parts
    parts.close()


def test_f2_a_duplicate_a_replay_and_another_run_have_no_effect(tmp_path: Path) -> None:
    first = Agent(tmp_path)
    command = a_command(first.clock, op="once")
    publish(tmp_path, command)
    first.turn()
    answer = ack_of(tmp_path)
    publish(tmp_path, command)
    first.turn()
    first.context.log.close()
    second = Agent(tmp_path, first.clock)
    publish(tmp_path, command)
    second.listener.start()
    second.turn()
    publish(tmp_path, a_command(first.clock, "c2", run_id="run-of-yesterday", op="once"))
    second.turn()
    second.listener.stop()
    second.context.log.close()
    assert (len(first.marks), len(second.marks), ack_of(tmp_path)) == (1, 0, answer)
    assert state_of(tmp_path, "c2") == "refused"


GOOD = json.dumps(
    {"proto": 1, "id": "c1", "run_id": "run-1", "op": "once", "issued_us": 1, "args": {}}
).encode()
GARBAGE = st.one_of(
    st.binary(max_size=400),
    st.integers(0, 16_000).map(lambda n: b"[" * n),
    st.integers(0, len(GOOD)).map(lambda at: GOOD[:at]),
    st.builds(
        lambda at, byte: GOOD[:at] + bytes([byte]) + GOOD[at + 1 :],
        st.integers(0, len(GOOD) - 1),
        st.integers(0, 255),
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=GARBAGE)
def test_f3_no_text_stops_the_listener_or_has_an_effect(agent: Agent, text: bytes) -> None:
    publish_bytes(agent.path, "3-c1.json", text)
    put_hold_bytes(agent.path, "ann-pause.json", text)
    agent.turn()
    assert agent.marks == [], "the good one is long over its time"
    assert agent.state == "running"
    assert not list((agent.path / "control/new").iterdir())
    (agent.path / "control/ack/c1.json").unlink(missing_ok=True)


def _link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def _fifo(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def _writable(path: Path, target: Path) -> None:
    path.write_bytes(target.read_bytes())
    path.chmod(0o622)


@pytest.mark.parametrize("plant", [_link, _fifo, _writable])
def test_f4_an_answer_that_others_planted_is_no_answer(agent: Agent, plant: Any) -> None:
    done = {"proto": 1, "id": "c1", "run_id": "run-1", "seq": 9, "state": "done"}
    target = agent.path / "elsewhere.json"
    target.write_text(json.dumps(done))
    plant(agent.path / "control/ack/c1.json", target)
    publish(agent.path, a_command(agent.clock))
    agent.turn()
    assert len(agent.marks) == 1, "it was not taken for done"
    assert json.loads(target.read_text()) == done


@pytest.mark.parametrize("folder", ["control", "control/new", "control/hold"])
def test_f5_a_folder_replaced_by_a_link_is_not_followed(
    agent: Agent, tmp_path: Path, folder: str
) -> None:
    victim = tmp_path / "victim"
    (tmp_path / folder).rename(victim)
    (tmp_path / folder).symlink_to(victim)
    put_hold_bytes(tmp_path, "ann-pause.json", json.dumps(a_hold()).encode())
    publish(tmp_path, a_command(agent.clock))
    with pytest.raises(OSError, match=r".+"):
        agent.listener.poll()
    agent.listener.safe_point()
    assert len(agent.marks) == (1 if folder == "control/hold" else 0)
    assert agent.state == "running"


def test_f5_a_spool_that_was_replaced_is_listened_to_again(agent: Agent) -> None:
    agent.listener.start()
    (agent.path / "control").rename(agent.path / "old")
    until(lambda: (agent.path / "control/hold").is_dir())
    publish(agent.path, a_command(SystemClock(), issued_us=agent.clock.wall_us()))
    until(lambda: agent.comes_by() and state_of(agent.path) == "done")
    agent.listener.stop()


def test_f6_a_change_that_no_folder_time_tells_is_found_by_listing(tmp_path: Path) -> None:
    prepared(tmp_path)
    new = tmp_path / "control/new"
    with serving(tmp_path):
        until(lambda: state_of(tmp_path, "destroy") == "done")
        before = new.stat()
        publish(tmp_path, a_command(SystemClock(), "repeat-2", op="repeat"))
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        until(lambda: state_of(tmp_path, "repeat-2") == "done")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("op", ["mark", "once"])
def test_f7_a_disk_that_refuses_the_answer_delays_it(agent: Agent, error: int, op: str) -> None:
    publish(agent.path, a_command(agent.clock, op=op))
    agent.listener.poll()
    agent.files.error = error
    agent.files.fail_all("write", "open", "rename")
    agent.listener.safe_point()
    assert len(agent.marks) == (1 if op == "mark" else 0)
    with suppress(OSError):  # the state cannot be written either
        agent.listener.poll()
    agent.files.heal()
    agent.clock.advance_s(1)
    agent.turn()
    assert (len(agent.marks), state_of(agent.path)) == (1, "done")


@pytest.mark.parametrize("step_s", [3600, -3600])
def test_f8_a_stepped_clock_prolongs_nothing(agent: Agent, step_s: float) -> None:
    put_hold(agent.path, a_hold(lease_us=10_000_000))
    publish(agent.path, a_command(agent.clock, ttl_us=10_000_000))
    agent.listener.poll()
    agent.clock.step_wall_s(step_s)
    agent.listener.poll()
    assert agent.state == "paused", "a lease knows no wall clock"
    agent.clock.advance_s(11)  # a suspended machine passes as well
    agent.turn()
    assert (agent.state, state_of(agent.path), agent.marks) == ("running", "expired", [])


def test_f9_one_dashboard_does_not_undo_the_pause_of_another(agent: Agent) -> None:
    put_hold(agent.path, a_hold(epoch=41))
    agent.listener.poll()
    put_hold(agent.path, a_hold("h2", epoch=41), "ben").unlink()
    put_hold(agent.path, a_hold("h3", epoch=40), "old")
    publish(agent.path, a_command(agent.clock, epoch=40))
    agent.listener.poll()
    assert [hold.owner for hold in told(agent.path).holds] == ["ann"]
    assert (state_of(agent.path), state_of(agent.path, "h3")) == ("refused", "refused")


def test_f9_of_two_aborts_one_counts_and_the_next_experiment_lives(run: Parts) -> None:
    run.begin_experiment(1)
    ids = [run.ask("abort_experiment", args={"save": "none"}) for _ in range(2)]
    with pytest.raises(ExperimentAborted):
        run.listener.safe_point()
    run.end_experiment()
    run.begin_experiment(2)
    run.listener.safe_point()
    run.listener.interruption_point()
    run.end_experiment()
    run.listener.safe_point()
    assert sorted(run.answer(command_id)[0] for command_id in ids) == ["done", "refused"]


def test_f10_an_agent_that_holds_the_gil_is_busy_and_not_deaf(tmp_path: Path) -> None:
    prepared(tmp_path)
    with serving(tmp_path) as process:
        publish(tmp_path, a_command(SystemClock(), "hog", op="hog", args={"seconds": 1.5}))
        until(lambda: state_of(tmp_path, "hog") == "running")
        publish(tmp_path, a_command(SystemClock(), "destroy-2", op="destroy"))
        assert process.poll() is None
        assert state_of(tmp_path, "destroy-2") in (None, "accepted")
        until(lambda: state_of(tmp_path, "destroy-2") == "done")
        assert state_of(tmp_path, "hog") == "done"


def test_f11_a_command_for_an_agent_that_is_gone_waits_for_the_next(agent: Agent) -> None:
    agent.listener.start()
    agent.listener.stop()
    before = told(agent.path)
    assert before.mode == "ended"
    stranger = Identity(boot_id(), os.getpid(), 1)  # has the number that the agent had
    assert not is_alive(stranger)
    publish(agent.path, a_command(agent.clock, "any"))
    publish(agent.path, a_command(agent.clock, "bound", expect={"start_id": "of the dead one"}))
    agent.context.log.close()
    again = Agent(agent.path, agent.clock)
    again.turn()
    again.context.log.close()
    assert (state_of(agent.path, "any"), state_of(agent.path, "bound")) == ("done", "refused")


def test_f12_a_forked_child_consumes_nothing_and_is_held_by_nothing(agent: Agent) -> None:
    agent.listener.start()
    path = put_hold(agent.path, a_hold(op="read_only"))
    until(lambda: agent.state == "read_only")
    publish(agent.path, a_command(agent.clock))
    until(lambda: state_of(agent.path) == "accepted")
    pid = os.fork()
    if pid == 0:
        agent.listener.safe_point()
        agent.mode.gate(agent.listener.safe_point)
        agent.mode.check_writable()
        os._exit(len(agent.marks))
    assert os.waitpid(pid, 0)[1] == 0
    assert state_of(agent.path) == "accepted"
    until(lambda: agent.comes_by() and state_of(agent.path) == "done")
    path.unlink()
    agent.listener.stop()


def test_f13_nothing_from_either_side_reaches_a_terminal_live(agent: Agent) -> None:
    evil = "\x1b[31mred\x07"
    publish(agent.path, a_command(agent.clock, args={"fail": True}))
    publish(agent.path, a_command(agent.clock, "c2", op=evil))
    put_hold(agent.path, a_hold(reason=evil))
    agent.turn()
    acks = [ack_of(agent.path, command_id) or {} for command_id in ("c1", "c2")]
    log = b"".join(path.read_bytes() for path in (agent.path / "wal").iterdir())
    assert not any("\x1b" in ack["detail"] for ack in acks)
    assert b"\\u001b" not in log
    assert b"\x1b" not in log


def test_f14_old_answers_cost_nothing_and_are_swept(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    acks = agent.path / "control/ack"
    old_s = agent.clock.wall_us() / 1e6 - 8 * 86_400
    for n in range(10_000):
        fd = os.open(acks / f"old-{n}.json", os.O_CREAT | os.O_WRONLY)
        os.utime(fd, (old_s, old_s))
        os.close(fd)
    listed: list[str] = []
    real = os.scandir

    def spy(where: Any) -> Any:
        listed.append(Path(f"/proc/self/fd/{where}").readlink().name)
        return real(where)

    monkeypatch.setattr(os, "scandir", spy)
    publish(agent.path, a_command(agent.clock))
    agent.turn()
    assert state_of(agent.path) == "done"
    assert set(listed) == {"new", "hold"}
    monkeypatch.undo()
    agent.listener.start()
    until(lambda: not list(acks.glob("old-*")))
    agent.listener.stop()


def test_f15_what_is_late_is_answered_and_has_no_effect(agent: Agent) -> None:
    publish(agent.path, a_command(agent.clock, "unread", ttl_us=1_000_000))
    agent.clock.advance_s(2)
    agent.turn()
    publish(agent.path, a_command(agent.clock, "begun", op="slow", deadline_us=1_000_000))
    agent.turn()
    agent.clock.advance_s(2)
    agent.listener.poll()
    states = {state_of(agent.path, name) for name in ("unread", "begun")}
    assert states == {"expired", "failed"} <= FINAL_STATES
    assert agent.later.cancelled
