"""What a frame shows of purges, checkpoints, processes and the disk."""

from __future__ import annotations

import pytest

from memwatch.domain.intervention import Intervention
from memwatch.domain.sample import DiskSample
from memwatch.domain.snapshot import GuardInfo
from tests.builders import T0_US, tiers
from tests.runtime.watched import BOOT, MB, S, Watched


def test_a_purge_is_measured_before_and_after() -> None:
    watched = Watched()
    watched.begin()
    for second in range(40):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=(60 + second % 2) * MB))
    watched.say(
        "purge.end",
        tier="recent",
        cause="retention",
        freed_bytes=20 * MB,
        entries=3,
        duration_us=500_000,
    )
    purge = _only(watched)
    assert purge.before == pytest.approx(60.5 * MB, abs=0.6 * MB)
    assert purge.after_10s is None, "nothing is said before it was measured"
    for _ in range(13):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=45 * MB))
    purge = _only(watched)
    assert purge.after_10s == 45 * MB
    assert purge.freed_bytes == pytest.approx(15.5 * MB, abs=0.6 * MB)
    assert purge.claimed == 20 * MB, "what the agent claims stands beside it"
    assert purge.after_10min is None
    for _ in range(640):
        watched.clock.advance_s(1)
        watched.say("sample", tiers=tiers(recent=61 * MB))
    purge = _only(watched)
    assert purge.after_10min == 61 * MB
    assert purge == _only(watched), "and it does not change any more"
    assert (purge.origin, purge.why, purge.duration_s) == ("agent", "retention", 0.5)


def test_interventions_come_newest_first_and_failed_ones_say_so() -> None:
    watched = Watched()
    watched.begin()
    watched.say("checkpoint.begin", id="a", kind="full")
    watched.clock.advance_s(1)
    watched.say("checkpoint.commit", id="a", kind="full", bytes=9, duration_us=1 * S)
    watched.clock.advance_s(1)
    watched.say("checkpoint.begin", id="b", kind="incremental")
    watched.say("checkpoint.abort", id="b", reason="no space")
    shown = watched.snapshot().interventions
    assert [(one.action, one.state, one.why) for one in shown] == [
        ("checkpoint incremental", "failed", "no space"),
        ("checkpoint full", "done", "cadence"),
    ]
    assert watched.light("CKPT") == ("WARN", "the newest one failed")


def test_a_checkpoint_that_was_asked_for_names_who_asked() -> None:
    watched = Watched()
    watched.begin()
    watched.say("checkpoint.commit", id="full-1", kind="full", bytes=1)
    done = {"state": "done", "origin": "operator"}
    watched.say("command", id="c1", op="checkpoint", result={"id": "full-1"}, **done)
    watched.say("command", id="c2", op="leak", result={"id": "full-2"}, **done)
    watched.clock.advance_s(1)
    watched.say("checkpoint.commit", id="full-2", kind="full", bytes=1)
    due, asked = watched.snapshot().interventions
    assert (asked.origin, asked.why) == ("operator", "asked")
    assert (due.origin, due.why) == ("agent", "cadence")


def test_checkpoints_and_what_a_recovery_would_load() -> None:
    watched = Watched()
    watched.begin()
    watched.say("checkpoint.commit", id="full-1", kind="full", bytes=1000, entries=5)
    watched.say("checkpoint.commit", id="delta-1", kind="incremental", base="full-1", bytes=10)
    watched.say("checkpoint.commit", id="delta-2", kind="incremental", base="full-1", bytes=20)
    watched.say("experiment.end", x=1, status="kept", duration_us=2 * S)
    watched.say("experiment.begin", x=2)
    watched.clock.advance_s(7)
    snapshot = watched.snapshot()
    checkpoints, recovery = snapshot.checkpoints, snapshot.recovery
    assert checkpoints.count == 3
    assert (checkpoints.chain.deltas, checkpoints.chain.bytes) == (2, 30)
    assert checkpoints.last_recoverable_full is not None
    assert checkpoints.last_recoverable_full.id == "full-1"
    assert checkpoints.experiments_since == 1
    assert checkpoints.due_in_s == 13
    assert (recovery.full_bytes, recovery.delta_bytes, recovery.tail_records) == (1000, 30, 2)
    assert recovery.at_risk_s == 7
    assert recovery.at_risk_experiments == 2, "one ended, one in progress"
    assert recovery.mean_experiment_s == 2
    assert recovery.tail_bytes > 0


def test_overdue_by_time_and_by_experiments() -> None:
    watched = Watched()
    watched.begin()
    watched.clock.advance_s(29)
    assert not watched.snapshot().checkpoints.overdue
    watched.clock.advance_s(2)
    assert watched.light("CKPT") == ("WARN", "none yet, overdue")
    watched.say("checkpoint.commit", id="full-1", kind="full", bytes=1)
    assert watched.light("CKPT")[0] == "ok"
    for number in range(8):
        watched.say("experiment.end", x=number, status="aborted")
    assert not watched.snapshot().checkpoints.overdue, "aborted ones do not count (R5)"
    for number in range(8):
        watched.say("experiment.end", x=number, status="failed")
    assert watched.snapshot().checkpoints.overdue


def test_incomplete_checkpoints() -> None:
    watched = Watched()
    watched.begin()
    watched.say("checkpoint.begin", id="a", kind="full")
    assert watched.snapshot().checkpoints.incomplete == (), "it is being written"
    assert watched.snapshot(alive=False).checkpoints.incomplete == ("a",)
    watched.say("run.begin", start_id="s2", boot=BOOT, pid=4343)
    assert watched.snapshot().checkpoints.incomplete == ("a",), "its writer is gone"
    watched.say("checkpoint.commit", id="b", kind="full", bytes=1)
    assert watched.snapshot().checkpoints.incomplete == ("a",)
    assert watched.light("CKPT") == ("watch", "one is incomplete")


def test_processes_and_their_light() -> None:
    watched = Watched()
    watched.begin()
    watched.look(5 * MB, processes=2, orphans=1)
    assert watched.light("PROCS") == ("watch", "1 left behind by a parent")
    watched.look(5 * MB, processes=64)
    assert watched.light("PROCS")[0] == "WARN"
    watched.look(5 * MB, alive=False, processes=1)
    assert watched.light("PROCS", alive=False) == ("WARN", "left behind by searcher")


def test_the_disk_and_its_light() -> None:
    watched = Watched()
    watched.begin()
    for free, word in ((50_000, "ok"), (9_000, "WARN"), (2_000, "ACT"), (500, "CRIT")):
        disk = DiskSample(t_us=T0_US, total_bytes=100_000 * MB, free_bytes=free * MB)
        watched.ring.take_disk(disk)
        assert watched.light("DISK")[0] == word
        asked = watched.light("DISK", levels={"disk": "intervene"})[0]
        assert asked == ("CRIT" if word == "CRIT" else "ACT"), "the policy's level, or a graver one"
    lost = GuardInfo(pid=9, recording=False, not_recording_why="no space left on device")
    assert watched.light("DISK", guard=lost) == ("CRIT", "not recording: no space left on device")
    nobody = GuardInfo(engine="off", recording=False, not_recording_why="no guard watches this run")
    disk = DiskSample(t_us=T0_US, total_bytes=100_000 * MB, free_bytes=50_000 * MB)
    watched.ring.take_disk(disk)
    assert watched.light("DISK", guard=nobody)[0] == "ok", "no guard is no fault of the disk"


def _only(watched: Watched) -> Intervention:
    (one,) = watched.snapshot().interventions
    return one
