"""When a checkpoint is due (R5)."""

from __future__ import annotations

from pathlib import Path

from memwatch.agent.checkpoints.cadence import Schedule
from memwatch.domain.policy import Cadence
from tests.agent.checkpoints.bench import Bench
from tests.waiting import until

CADENCE = Cadence(
    incremental_experiments=3,
    incremental_s=900,
    full_experiments=20,
    full_s=7200,
    chain_bytes=50_000,
)


def test_by_experiments_time_and_chain(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CADENCE)
    due, taker = bench.checkpoints.due, bench.checkpoints
    taker.experiment_finished()
    taker.experiment_finished()
    assert due() is None
    taker.experiment_finished()
    assert due() == "full"
    taker.take("full")
    assert due() is None
    bench.clock.advance_s(901)
    assert due() == "incremental"
    taker.take("incremental")
    bench.clock.advance_s(7200)
    assert due() == "full"
    taker.take("full")
    for _ in range(20):
        taker.experiment_finished()
    assert due() == "full"
    taker.take("full")
    bench.tiers["recent"].put("big", "".join(map(str, range(40_000))))
    taker.take("incremental")
    assert due() == "full"
    bench.clock.step_wall_s(-86_400)
    taker.take("full")
    assert due() is None
    bench.close()


def test_what_is_finished_while_one_is_written_counts_for_the_next() -> None:
    schedule = Schedule(CADENCE, 0)
    for _ in range(3):
        schedule.experiment_finished()
    mark = schedule.mark(1_000_000)
    schedule.experiment_finished()
    schedule.experiment_finished()
    schedule.committed("full", mark, 10)
    assert schedule.due(1_000_000) is None
    schedule.experiment_finished()
    assert schedule.due(1_000_000) == "incremental"
    assert schedule.due(901_000_000) == "incremental"
    assert schedule.due(7_201_000_000) == "full"


def test_the_next_attempt_is_put_off_twice_as_long_each_time() -> None:
    schedule = Schedule(CADENCE, 0)
    schedule.owe_full()
    now_us = 0
    for waits_s in (10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600):
        assert schedule.due(now_us) == "full"
        schedule.failed(now_us)
        assert schedule.due(now_us + waits_s * 1_000_000 - 1) is None
        now_us += waits_s * 1_000_000
    schedule.committed("full", schedule.mark(now_us), 0)
    schedule.owe_full()
    schedule.failed(now_us)
    assert schedule.due(now_us + 10_000_000) == "full"


def test_the_thread_notices_what_time_makes_due(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CADENCE)
    bench.checkpoints.look()
    assert not bench.checkpoints.pressing
    bench.clock.advance_s(901)
    until(lambda: bench.checkpoints.pressing)
    bench.checkpoints.take("full")
    assert not bench.checkpoints.pressing
    bench.close()
