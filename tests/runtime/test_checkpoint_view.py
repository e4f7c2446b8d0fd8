"""Checkpoints are what lies on disk, due by the agent's own cadence; the rest is at risk."""

from __future__ import annotations

import msgspec
import pytest

from memwatch.domain.checkpoints import Checkpoints
from memwatch.domain.policy import Cadence
from memwatch.domain.sample import TreeSample
from memwatch.ingest.checkpoint_scan import FullOnDisk, OnDisk
from memwatch.runtime.views.checkpoint_view import cadence_of
from tests.builders import tiers
from tests.runtime.watched import BOOT, MANIFEST, MB, Watched

CADENCE = Cadence(
    incremental_s=20, full_s=90, full_experiments=12, chain_bytes=5000, incremental_experiments=3
)


def watched(**settings: object) -> Watched:
    found = Watched(**{"checkpoints": CADENCE, **settings})  # type: ignore[arg-type]  # settings
    found.begin()
    return found


def commit(run: Watched, kind: str, last_lsn: int | None = None, size: int = 10) -> None:
    last = run.lsn if last_lsn is None else last_lsn
    first = 1 if kind == "full" else last
    name = f"full-{last}" if kind == "full" else f"delta-{first}-{last}"
    about = {"first_lsn": first, "last_lsn": last, "bytes": size, "entries": 1}
    run.say("checkpoint.commit", id=name, kind=kind, **about)


def fulls(*lsns: int) -> dict[int, FullOnDisk]:
    return dict.fromkeys(lsns, FullOnDisk(bytes=10))


def shown(run: Watched) -> Checkpoints:
    return run.snapshot().checkpoints


def test_the_full_is_known_behind_a_hundred_increments() -> None:
    run = watched()
    commit(run, "full", size=1000)
    for number in range(100):
        run.say("experiment.end", x=number, status="kept")
        commit(run, "incremental")
    found = shown(run)
    assert found.last_recoverable_full is not None
    assert (found.chain.deltas, found.chain.bytes, found.chain.entries) == (100, 1000, 100)
    for number in range(200):
        run.say("experiment.end", x=number, status="kept")
    assert shown(run).experiments_since == 200


def test_the_tail_counts_from_the_last_record_that_the_checkpoint_holds() -> None:
    run = watched()
    for _ in range(10):
        run.say("step.end")
    commit(run, "full", last_lsn=5)
    assert run.snapshot().recovery.tail_records == run.lsn - 5


def test_a_full_that_is_gone_from_the_disk_is_not_recoverable() -> None:
    run = watched()
    commit(run, "full", last_lsn=1, size=1000)
    commit(run, "incremental")
    older = run.lsn
    commit(run, "full", size=2000)
    commit(run, "incremental")
    everything = fulls(1, older)
    deltas = {(2, 2): 10, (4, 4): 10}
    run.ring.take_checkpoints(OnDisk(run.lsn, everything, deltas))
    assert shown(run).missing == ()
    run.ring.take_checkpoints(OnDisk(run.lsn, fulls(1), deltas))
    found, recovery = shown(run), run.snapshot().recovery
    assert found.missing == ("full-3",)
    assert run.light("CKPT") == ("WARN", "full is missing on disk")
    assert found.last_recoverable_full is not None
    assert found.last_recoverable_full.bytes == 1000
    assert (found.chain.deltas, recovery.full_bytes) == (1, 10), "later ones build on the lost"
    assert recovery.tail_records == run.lsn - 2
    run.ring.take_checkpoints(OnDisk(run.lsn))
    assert shown(run).last_recoverable_full is None
    assert run.light("CKPT") == ("WARN", "full is missing on disk")


def test_what_is_damaged_is_told_from_what_is_gone() -> None:
    run = watched()
    commit(run, "full", last_lsn=1)
    run.ring.take_checkpoints(OnDisk(run.lsn, {1: FullOnDisk(wrong="recent.jsonl is gone")}))
    found = shown(run)
    assert (found.missing, found.damaged) == (("full-1",), ("full-1",))
    assert found.last is not None
    assert (found.last.state, found.last.reason) == ("damaged", "recent.jsonl is gone")
    assert found.stats.failed == 1
    assert run.light("CKPT") == ("WARN", "full is damaged on disk")


def test_one_that_nobody_writes_any_more_is_incomplete() -> None:
    run = watched()
    run.say("checkpoint.begin", id="full-1", kind="full")
    assert (shown(run).writing, shown(run).incomplete) == (("full-1",), ())
    run.say("run.begin", start_id="s2", boot=BOOT, pid=4343)
    assert (shown(run).writing, shown(run).incomplete) == ((), ("full-1",))
    assert [one.state for one in shown(run).newest] == ["incomplete"]


def test_a_chain_ends_before_an_increment_that_is_gone() -> None:
    run = watched()
    commit(run, "full", last_lsn=1)
    for _ in range(3):
        commit(run, "incremental")
    run.ring.take_checkpoints(OnDisk(run.lsn, fulls(1), {(2, 2): 10, (4, 4): 10}))
    found = shown(run)
    assert (found.missing, found.chain.deltas) == (("delta-3-3",), 1)
    assert run.light("CKPT") == ("WARN", "1 increment missing on disk")


def test_a_look_at_the_disk_says_nothing_of_later_checkpoints() -> None:
    run = watched()
    run.ring.take_checkpoints(OnDisk(run.lsn))
    commit(run, "full")
    assert shown(run).missing == ()


def test_what_is_due_is_said_by_experiments_and_by_time() -> None:
    run = watched()
    commit(run, "full")
    run.say("experiment.end", x=1, status="kept")
    run.clock.advance_s(2)
    assert run.light("CKPT") == ("ok", "next in 2 exp or 18s")
    run.clock.advance_s(23)
    assert run.light("CKPT") == ("ok", "late 5.0s"), "within the grace"
    run.clock.advance_s(6)
    assert run.light("CKPT") == ("WARN", "overdue")


@pytest.mark.parametrize("why", ["time", "experiments", "chain"])
def test_a_full_that_does_not_come_is_overdue(why: str) -> None:
    run = watched()
    commit(run, "full")
    if why == "time":
        run.clock.advance_s(136)
        commit(run, "incremental")
    elif why == "experiments":
        for number in range(19):
            run.say("experiment.end", x=number, status="kept")
        commit(run, "incremental")
    else:
        commit(run, "incremental", size=7501)
    assert run.light("CKPT") == ("WARN", "full overdue")
    assert shown(run).overdue_kind == "full"


def test_five_of_three_experiments_are_overdue_without_another_one_granted() -> None:
    run = watched()
    commit(run, "full")
    for number in range(4):
        run.say("experiment.end", x=number, status="kept")
    assert not shown(run).overdue
    run.say("experiment.end", x=5, status="kept")
    assert shown(run).overdue


def test_a_new_start_counts_anew_and_needs_a_full_first() -> None:
    run = watched()
    commit(run, "full")
    run.clock.advance_s(500)
    run.say("run.begin", start_id="s2", boot=BOOT, pid=4343)
    run.clock.advance_s(5)
    found = shown(run)
    assert (found.overdue, found.next_kind, found.due_in_s) == (False, "full", 15)


def test_at_risk_is_the_work_since_the_newest_checkpoint() -> None:
    run = watched()
    run.clock.advance_s(4)
    assert run.snapshot().recovery.at_risk_s == 4
    commit(run, "full")
    for number in range(3):
        run.clock.advance_s(5)
        run.say("experiment.end", x=number, status="kept")
    recovery = run.snapshot().recovery
    assert (recovery.at_risk_s, recovery.at_risk_experiments) == (15, 3)


def test_a_guard_judges_by_the_cadence_that_the_agent_states() -> None:
    stated = {"incremental_s": 100, "full_s": True, "chain_bytes": "x", "full_experiments": -1}
    manifest = msgspec.structs.replace(MANIFEST, cadence=stated)
    assert cadence_of(manifest, CADENCE) == msgspec.structs.replace(CADENCE, incremental_s=100.0)
    run = Watched(manifest, checkpoints=CADENCE)
    run.begin()
    run.clock.advance_s(60)
    assert not shown(run).overdue
    assert shown(run).due_in_s == 40


def test_unaccounted_is_unknown_until_the_new_start_told_its_tiers() -> None:
    run = watched()
    run.say("sample", tiers=tiers(recent=80 * MB))
    run.look(100 * MB)
    assert unaccounted(run) == 20 * MB
    run.say("run.begin", start_id="s2", boot=BOOT, pid=4343)
    run.clock.advance_s(1)
    assert run.ring.take_tree(run_tree(run, 25 * MB)) is None, "not 55 MB below zero"
    run.say("sample", tiers={"recent": {"bytes": 5 * MB}, "verified": {"entries": 3}})
    assert run.ring.take_tree(run_tree(run, 25 * MB)) is None, "a tier of unknown size"
    run.say("sample", tiers=tiers(recent=5 * MB))
    assert run.ring.take_tree(run_tree(run, 25 * MB)) == 20 * MB
    run.clock.advance_s(80)
    assert run.ring.take_tree(run_tree(run, 25 * MB)) is None, "the tiers are of long ago"
    assert unaccounted(run) is None


def unaccounted(run: Watched) -> float | None:
    found = run.snapshot().resource("unaccounted")
    return found.used if found else None


def run_tree(run: Watched, used_bytes: int) -> TreeSample:
    return TreeSample(
        t_us=run.clock.wall_us(),
        m_us=run.clock.boot_us(),
        alive=True,
        rss_bytes=used_bytes,
        processes=1,
    )
