"""Agents and guards that die and come again: nothing is lost, and what is shown is true."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from itertools import pairwise

import pytest

from memwatch.domain.errors import SessionError
from memwatch.domain.snapshot import Snapshot
from memwatch.host.process import identity_of
from memwatch.runtime.protocol.client import GuardSession
from memwatch.runtime.runs.attach import Attachment
from tests.e2e.stage import PERIOD_S, Puppet, Stage, light, memory, still
from tests.waiting import wait_for

pytestmark = pytest.mark.e2e

MB = 1_000_000
S = 1_000_000


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def caught_up(stage: Stage, puppet: Puppet) -> Snapshot:
    """Return a snapshot that holds all that the agent said."""
    lsn = puppet.ask("note", "here we are")
    session = stage.session(puppet.run_dir)
    found = newest_with(session, lsn)
    session.close()
    return found


def newest_with(session: GuardSession, lsn: int) -> Snapshot:
    """Wait for a snapshot that has read up to `lsn`."""
    seq = 0

    def look() -> Snapshot | None:
        nonlocal seq
        newest = session.latest(seq, 5.0)
        if newest is None:
            return None
        seq = newest.seq
        return newest if newest.source.last_lsn >= lsn else None

    return wait_for(look, f"lsn {lsn}")


def test_a_record_appears_and_two_viewers_see_the_same(stage: Stage) -> None:
    puppet = stage.puppet("two")
    stage.guard(puppet.run_dir)
    first, second = stage.session(puppet.run_dir), stage.session(puppet.run_dir)
    lsn = puppet.ask("note", "look at this")
    seen = newest_with(first, lsn)
    assert seen.events[-1].text == "look at this"
    twin = second.latest(seen.seq - 1, 5.0)
    for _ in range(50):  # the next snapshot may have come in between
        if twin is None or twin.seq == seen.seq:
            break
        newer = first.latest(seen.seq, 5.0)
        assert newer is not None
        seen, twin = newer, second.latest(newer.seq - 1, 5.0)
    assert twin == seen
    now_us = seen.t_us
    asked = ("memory", now_us - 60 * S, now_us - S, 30)
    assert first.series(*asked) == second.series(*asked)
    assert first.events(0, 100) == second.events(0, 100)
    first.close()
    assert second.latest(seen.seq + 5, 5.0) is not None, "one leaves, the other stays"
    second.close()


def test_a_killed_guard_comes_again_and_nothing_is_lost(stage: Stage) -> None:
    puppet = stage.puppet("again")
    guard = stage.guard(puppet.run_dir)
    puppet.ask("experiments", 7)
    puppet.ask("checkpoint", "full")
    puppet.ask("experiments", 3, "failed")
    session = stage.session(puppet.run_dir)
    before = caught_up(stage, puppet)
    with still(5.5):  # until the historian has written
        assert session.latest(0, 5.0) is not None
    killed_us = stage.status(puppet.run_dir)["t_us"]
    guard.kill()
    guard.wait()
    wait_for(lambda: _is_gone(session), "the session to say that the guard is gone")
    session.close()
    with still(4.0):
        puppet.ask("experiments", 5)
        puppet.ask("roll")
        puppet.ask("experiments", 1, "aborted")
    stage.guard(puppet.run_dir)
    back_us = stage.status(puppet.run_dir)["t_us"]
    after = caught_up(stage, puppet)
    assert after.progress.experiments == {"kept": 12, "failed": 3, "aborted": 1}
    assert after.source.records > before.source.records
    assert after.source.gaps == after.source.damaged == 0
    assert after.checkpoints.count == 1
    session = stage.session(puppet.run_dir)
    told = session.events(0, 1000, 0, back_us + 10 * S)
    ends = [e.text for e in told if e.kind == "experiment"]
    numbers = sorted(int(text.split()[1]) for text in ends)
    assert numbers == list(range(1, 17)), "each end is told, and told once"
    _no_gap_but_the_dead_time(session, killed_us, back_us)
    session.close()


def _is_gone(session: GuardSession) -> bool:
    try:
        session.latest(0, 1.0)
    except SessionError:
        return True
    return False


def _no_gap_but_the_dead_time(session: GuardSession, killed_us: int, back_us: int) -> None:
    """Columns of two sample periods: only those in the dead time may be empty."""
    width_us = round(2 * PERIOD_S * S)
    start_us, end_us = killed_us - 5 * S, back_us + S
    count = (end_us - start_us) // width_us
    columns = session.series("memory", start_us, start_us + count * width_us, count)
    edges = [start_us + n * width_us for n in range(count + 1)]
    dead = (killed_us - 2 * width_us, back_us + width_us)
    empty = [
        (low, high)
        for column, (low, high) in zip(columns, pairwise(edges), strict=True)
        if column.gap and not (dead[0] <= low and high <= dead[1])
    ]
    assert empty == []
    assert any(column.gap for column in columns), "the dead time is drawn as a gap"
    tiers = session.series("tier:history", start_us, start_us + count * width_us, count)
    assert not any(column.gap for column in tiers), "the agent's log knows the dead time, too"


def test_experiments_of_dropped_segments_survive_a_restart(stage: Stage) -> None:
    puppet = stage.puppet("pruned")
    guard = stage.guard(puppet.run_dir)
    puppet.ask("experiments", 6)
    for _ in range(3):
        assert puppet.ask("checkpoint", "full")["committed"]
        puppet.ask("experiments", 2)
        assert caught_up(stage, puppet).source.gaps == 0
    assert caught_up(stage, puppet).progress.experiments == {"kept": 12}
    wal = puppet.run_dir / "wal"
    first = min(path.name for path in wal.iterdir())
    assert first > "0" * 19 + "1.wal", "older segments are gone"
    stage.cli("guard", "--stop", str(puppet.run_dir))
    guard.wait()
    stage.guard(puppet.run_dir)
    assert caught_up(stage, puppet).progress.experiments == {"kept": 12}


def test_an_agent_killed_in_the_middle_of_a_line(stage: Stage) -> None:
    puppet = stage.puppet("torn")
    guard = stage.guard(puppet.run_dir)
    puppet.ask("hold", 30 * MB)
    puppet.ask("experiments", 2)
    used = memory(stage.status(puppet.run_dir))["used"]
    lsn = puppet.ask("note", "the last whole line")
    puppet.tell("tear")
    assert puppet.wait() == -signal.SIGKILL
    status = stage.wait_status(
        puppet.run_dir, lambda s: s["run"]["state"] == "crashed", "the crash"
    )
    assert light(status, "STEP")["word"] == "CRIT"
    assert status["source"]["last_lsn"] == lsn
    assert status["source"]["damaged"] == 0, "a torn end is no damage"
    assert memory(status)["used"] == pytest.approx(used, rel=0.3), "as it was at the end"
    asked = stage.cli("status", str(puppet.run_dir))
    assert asked.returncode == 1
    assert "CRASHED" in asked.stdout
    stage.cli("guard", "--stop", str(puppet.run_dir))
    guard.wait()
    _opens_as_past_run(stage, puppet, lsn)


def _opens_as_past_run(stage: Stage, puppet: Puppet, lsn: int) -> None:
    looked = stage.cli("status", str(puppet.run_dir))
    assert looked.returncode == 1
    assert "CRASHED" in looked.stdout
    assert "no guard: the run is over" in looked.stdout
    inspected = stage.cli("inspect", str(puppet.run_dir))
    assert inspected.returncode == 0
    assert "the last line is not complete" in inspected.stdout
    stage.guard(puppet.run_dir)
    status = stage.status(puppet.run_dir)
    assert status["run"]["state"] == "crashed"
    assert status["source"]["last_lsn"] == lsn
    assert status["progress"]["experiments"] == {"kept": 2}
    assert memory(status)["used"] > 0, "the history knows how much it used"
    assert status["t_us"] == status["run"]["ended_us"]
    texts = [event["text"] for event in status["events"]]
    assert "the last whole line" in texts


def test_an_agent_that_begins_again_in_the_same_directory(stage: Stage) -> None:
    puppet = stage.puppet("reborn")
    stage.guard(puppet.run_dir)
    puppet.ask("experiments", 2)
    puppet.kill()
    puppet.wait()
    stage.wait_status(puppet.run_dir, lambda s: s["run"]["state"] == "crashed", "the crash")
    again = stage.puppet("reborn")
    assert again.run_id == puppet.run_id
    status = stage.wait_status(
        puppet.run_dir,
        lambda s: s["run"]["state"] == "running" and s["processes"]["count"] == 1,
        "the new process",
    )
    assert status["run"]["pid"] == again.pid
    assert status["processes"]["members"][0]["pid"] == again.pid
    assert light(status, "STEP")["word"] != "CRIT"
    again.ask("experiments", 1)
    assert caught_up(stage, again).progress.experiments == {"kept": 3}
    session = stage.session(puppet.run_dir)
    texts = [event.text for event in session.events(0, 1000)]
    assert "the agent's process has ended" in texts
    session.close()


def test_a_copy_of_a_living_run_is_a_past_run(stage: Stage) -> None:
    import shutil

    puppet = stage.puppet("original")
    stage.guard(puppet.run_dir)
    puppet.ask("experiments", 2)
    copy = stage.folder / "copy"
    shutil.copytree(puppet.run_dir, copy)
    stage.guard(copy)
    assert identity_of(puppet.pid) is not None
    copied, original = stage.status(copy), stage.status(puppet.run_dir)
    assert original["run"]["state"] == "running"
    assert copied["run"]["state"] == "crashed", "nobody writes there"
    assert copied["processes"]["count"] == 0
    assert Attachment(copy).key != Attachment(puppet.run_dir).key
