"""The recovery of a run as its guard shows it, and as the engine is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.agent.recovery.recover import recover
from memwatch.analytics.recovery.costs import learn, shared
from memwatch.config.policy import CrashBudget, Policy
from memwatch.config.schema import Lights
from memwatch.domain.checkpoints import Checkpoint, StoreLook
from memwatch.domain.policy import Cadence
from memwatch.domain.recovery import DiskRate, PastRecovery, Recovery, Span
from memwatch.domain.snapshot import Limit
from memwatch.ingest.blob_scan import Blobs
from memwatch.ingest.checkpoint_scan import FullOnDisk, OnDisk
from memwatch.runtime.runs.one_look import Look
from memwatch.runtime.views.checkpoint_view import CheckpointView
from memwatch.runtime.views.recovery_view import Known, RecoveryView
from tests.agent.checkpoints.bench import Bench
from tests.analytics.recovery.builders import machine, recovered, work
from tests.builders import T0_US, tiers
from tests.runtime.watched import MB, Watched

DISK = DiskRate(read_bytes_per_s=500e6, write_bytes_per_s=400e6, t_us=T0_US)


@pytest.fixture
def run() -> Watched:
    found = Watched(checkpoints=Cadence(incremental_s=20))
    found.begin(up_us=400_000)
    return found


def saved(run: Watched, kind: str, size: int, own: int) -> None:
    name = f"full-{run.lsn}" if kind == "full" else f"delta-{run.lsn}-{run.lsn}"
    about = {"first_lsn": 1 if kind == "full" else run.lsn, "last_lsn": run.lsn}
    figures = {"bytes": size, "file_bytes": own, "entries": 600}
    run.say("checkpoint.commit", id=name, kind=kind, **about, **figures)


def night(run: Watched, full_mb: int = 100) -> None:
    """Let it take a full checkpoint and an increment, and go on for ten seconds."""
    run.live(3)
    saved(run, "full", (full_mb + 8) * MB, full_mb * MB)
    full = FullOnDisk(bytes=full_mb * MB, entries=full_mb * 650)
    saved(run, "incremental", 2 * MB, 1 * MB)
    run.live(10)
    fulls = {run.ring.state.saved.fulls[-1].checkpoint.last_lsn or 0: full}
    last = run.ring.state.saved.newest
    assert last is not None
    span = (last.checkpoint.first_lsn or 0, last.checkpoint.last_lsn or 0)
    blobs = Blobs(count=40, bytes=18 * MB)
    run.ring.take_checkpoints(OnDisk(run.lsn, fulls, {span: 1 * MB}, blobs))


def seconds(found: Recovery) -> dict[str, float]:
    return {term.name: term.seconds for term in found.terms}


def test_the_estimate_is_made_of_what_lies_there(run: Watched) -> None:
    night(run)
    found = run.snapshot(disk_rate=DISK).recovery
    terms = {term.name: term for term in found.terms}
    assert found.disk == DISK, "its age is known"
    assert found.rto_s is not None
    assert found.rto_s.low < found.rto_s.likely < found.rto_s.high
    assert terms["start"].seconds == pytest.approx(0.4)
    assert terms["start"].basis == "measured"
    assert terms["load"].bytes == 100 * MB
    assert (terms["blobs"].bytes, terms["blobs"].records) == (9 * MB, 20), "half are needed"
    assert terms["replay"].records == 600 + found.tail_records
    assert found.grade == "good"
    assert not found.fix
    assert found.plain_s == pytest.approx((100 + 9) / 400 + 1 / 500)
    assert found.plain == "109M / 400M/s + 1.0M / 500M/s"
    assert (found.full_bytes, found.delta_bytes, found.blob_bytes) == (100 * MB, MB, 9 * MB)


def test_a_run_of_which_nothing_is_known_has_no_estimate() -> None:
    found = Watched().snapshot(alive=None).recovery
    assert (found.rto_s, found.grade, found.terms, found.plain_s) == (None, None, (), None)
    assert found.budget.over == ()


def test_drills_of_the_run_go_before_those_of_others(run: Watched) -> None:
    night(run)
    size = work(100, 2)
    host = shared(learn([recovered(size, machine(3))]), None)
    others = run.snapshot(disk_rate=DISK, costs=host).recovery
    drill = recovered(size, machine(0.5), t_us=T0_US + 5)
    own = run.snapshot(disk_rate=DISK, costs=host, past=(drill,)).recovery
    assert seconds(others)["load"] > 4 * seconds(own)["load"]
    assert (own.drill, own.past) == (drill, (drill,))


def test_what_was_learnt_is_learnt_anew_when_something_came(run: Watched) -> None:
    night(run)
    first = run.snapshot(disk_rate=DISK).recovery
    run.say("run.begin", start_id="s2", up_us=1_500_000)
    run.say("recovery", duration_us=500_000, terms={}, lost=[])
    again = run.snapshot(disk_rate=DISK).recovery
    assert seconds(first)["start"] == pytest.approx(0.4)
    assert seconds(again)["start"] > 0.8


def test_a_slow_recovery_says_which_term_to_mend(run: Watched) -> None:
    night(run)
    past = (recovered(work(100, 2), machine(1, load=300)),)
    found = run.snapshot(disk_rate=DISK, past=past).recovery
    assert found.grade == "poor"
    assert found.fix.startswith("load ")


def test_over_its_budget_the_kind_that_helps_is_named(run: Watched) -> None:
    night(run)
    past = (recovered(work(100, 2), machine(1, replay=400)),)
    policy = Policy(budget=CrashBudget(recover_s=10, work_s=5))
    found = run.snapshot(disk_rate=DISK, past=past, policy=policy).recovery
    assert len(found.budget.over) == 2
    assert found.budget.checkpoint is not None
    quick = run.snapshot(
        disk_rate=DISK, policy=Policy(budget=CrashBudget(recover_s=0.001))
    ).recovery
    assert (bool(quick.budget.over), quick.grade) == (True, "watch"), "it is not called good"
    ended = run.snapshot(disk_rate=DISK, past=past, policy=policy, alive=False).recovery
    assert ended.budget.over == (), "what is over is not looked after any more"


def test_memory_is_held_against_the_limit_that_binds(run: Watched) -> None:
    night(run)
    run.say("sample", tiers=tiers(workspace=60 * MB))
    limit = Limit(name="cgroup", bytes=140 * MB)
    found = run.snapshot(limits=(limit,)).recovery
    assert found.memory_bytes == 145 * MB
    assert found.memory_fits is False
    assert "cgroup" in found.memory_how


def test_only_the_open_experiment_is_done_again_where_the_log_is_whole(run: Watched) -> None:
    night(run)
    run.say("experiment.begin", x=1)
    run.live(7)
    found = run.snapshot().recovery
    assert found.redo_s == 7
    assert found.at_risk_s == 17
    run.say("experiment.end", x=1, status="kept", duration_us=7_000_000)
    done = run.snapshot().recovery
    assert (done.redo_s, done.mean_experiment_s) == (0, 7)
    assert done.plain.endswith("7.0s an experiment")


def test_the_engine_is_told_the_same(run: Watched) -> None:
    night(run)
    past = (recovered(work(100, 2), machine(1, replay=40)),)
    shown = run.snapshot(disk_rate=DISK, past=past).recovery
    view = RecoveryView(run.ring, CheckpointView(run.ring, Cadence(), Lights()), run.clock)
    known = Known(past=past, disk=DISK, agent="searcher")
    told = view.facts(known, run.clock.boot_us())
    assert shown.rto_s is not None
    assert told.rto_s == pytest.approx(shown.rto_s.likely)
    assert told.work_s == shown.at_risk_s
    assert set(told.rto_after_s) == {"incremental", "full"}
    assert told.rto_after_s["full"] < shown.rto_s.likely


def test_of_a_foreign_store_only_reading_is_estimated() -> None:
    run = Watched()
    whole = Checkpoint(
        id="checkpoint-7", kind="full", state="committed", bytes=50 * MB, committed_us=T0_US
    )
    run.ring.take_store(StoreLook(source="directory", t_us=T0_US, checkpoints=(whole,), count=1))
    run.clock.advance_s(90)
    found = run.snapshot(alive=None, disk_rate=DISK).recovery
    (load,) = found.terms
    assert (load.name, load.basis) == ("load", "measured")
    assert load.seconds == pytest.approx(0.1)
    assert (found.rto_s, found.grade) == (None, None)
    assert "not known" in found.fix
    assert found.redo_s == found.at_risk_s == pytest.approx(90)
    view = RecoveryView(run.ring, CheckpointView(run.ring, Cadence(), Lights()), run.clock)
    assert view.facts(Known(), run.clock.boot_us()).rto_s is None


def test_past_errors_are_shown(run: Watched) -> None:
    night(run)
    span = Span(low=1, likely=2, high=3)
    past = tuple(PastRecovery(t_us=n, total_s=s, estimate=span) for n, s in ((3, 2.2), (2, 1.9)))
    assert run.snapshot(past=past).recovery.error == "last 2: −5 … +10 %"


def test_a_look_without_a_guard_estimates_a_real_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    for number in range(200):
        bench.tiers["recent"].put(f"k{number}", f"{number} " + "v" * 2000)
    bench.checkpoints.take("full")
    bench.tiers["recent"].put("late", "one")
    bench.close()
    _, report = recover(bench.path)
    found = Look(bench.path).snapshot().recovery
    terms = {term.name: term for term in found.terms}
    done = {term.name: term for term in report.terms}
    assert terms["load"].bytes == done["load"].bytes
    assert terms["read"].bytes == pytest.approx(done["read"].bytes, rel=0.05)
    assert found.rto_s is not None
