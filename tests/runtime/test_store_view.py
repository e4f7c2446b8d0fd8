"""Checkpoints of another program's store: by its habit, its sizes, its threads."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from memwatch.domain.checkpoints import Checkpoint, Checkpoints, StoreLook
from memwatch.domain.sample import DiskSample
from memwatch.runtime.views.checkpoint_view import CheckpointView
from memwatch.runtime.views.facts import RunFacts
from tests.builders import T0_US
from tests.runtime.watched import MANIFEST, MB, S, Watched

EVERY_S = 60


def saved(number: int, size: int = 10 * MB, **members: Any) -> Checkpoint:
    committed_us = T0_US + number * EVERY_S * S
    told = {"kind": "full", "state": "committed", "committed_us": committed_us, **members}
    return Checkpoint(**{"id": f"checkpoint-{number}", "bytes": size, "step": number, **told})


def looked(
    *known: Checkpoint, source: Literal["directory", "langgraph"] = "directory", **members: Any
) -> StoreLook:
    total = sum(one.bytes or 0 for one in known)
    told = {"count": len(known), "total_bytes": total, "t_us": 2 * T0_US, **members}
    return StoreLook(source=source, checkpoints=known, **told)


def watched(look: StoreLook, after_s: float) -> Watched:
    run = Watched()
    run.ring.take_store(look)
    run.clock.advance_s(after_s)
    return run


def shown(look: StoreLook, after_s: float = 5 * EVERY_S, *, over: bool = False) -> Checkpoints:
    run = watched(look, after_s)
    info = msgspec.structs.replace(run.snapshot().run, state="ended" if over else "running")
    return view_of(run).checkpoints(info, run.clock.boot_us())


def view_of(run: Watched) -> CheckpointView:
    return CheckpointView(run.ring, run.profile.checkpoints, run.profile.lights)


def test_the_room_it_takes_is_that_of_its_newest_look() -> None:
    run = watched(looked(saved(1)), after_s=1)
    run.ring.take_disk(
        DiskSample(t_us=T0_US, total_bytes=900 * MB, free_bytes=500 * MB, run_bytes=10 * MB)
    )
    run.ring.take_store(looked(saved(1), saved(2)))
    assert run.snapshot().disk.run_bytes == 20 * MB


def test_a_run_is_as_old_as_its_writer_however_few_checkpoints_are_kept() -> None:
    run = watched(looked(saved(8), saved(9)), after_s=0)
    age_s = run.clock.boot_us() / 1e6 - 5
    known = msgspec.structs.replace(MANIFEST, pid=7, start_ticks=500)
    run.builder.run = RunFacts(path="/store", manifest=known, source="directory")
    assert run.snapshot().run.uptime_s == age_s


FIVE = [saved(number) for number in range(1, 6)]


def test_figures_and_advice_are_those_of_the_store() -> None:
    found = shown(looked(*FIVE, best="checkpoint-1"), 5 * EVERY_S + 20)
    assert found.source == "directory"
    assert (found.count, found.stats.complete, found.stats.total_bytes) == (5, 5, 50 * MB)
    assert found.last_recoverable_full == found.last == FIVE[-1]
    assert [one.id for one in found.newest] == [one.id for one in reversed(FIVE[1:])]
    assert (found.age_s, found.stats.every_s, found.due_in_s) == (20, 60, 40)
    assert not found.overdue
    assert found.prune.ids == ("checkpoint-2", "checkpoint-3")
    assert found.prune.bytes == 20 * MB
    assert found.next_bytes == 10 * MB


def test_late_by_habit_is_overdue_unless_the_run_is_over() -> None:
    late = 5 * EVERY_S + 95
    assert shown(looked(*FIVE), late).overdue
    ended = shown(looked(*FIVE), late, over=True)
    assert (ended.overdue, ended.due_in_s) == (False, None)


def test_nothing_is_overdue_that_nobody_has_looked_for() -> None:
    seen_us = T0_US + round(5 * EVERY_S * 1e6)
    found = shown(looked(*FIVE, t_us=seen_us), 5 * EVERY_S + 95)
    assert (found.overdue, found.due_in_s) == (False, 60 - 95)


def test_what_is_being_written_and_what_is_incomplete_are_told_apart() -> None:
    begun = saved(6, 3 * MB, state="begun", committed_us=None)
    torn = saved(3, 1 * MB, state="incomplete", committed_us=None, reason="2 of 4 shards")
    found = shown(looked(*FIVE[:2], torn, *FIVE[3:], begun))
    assert (found.writing, found.incomplete) == (("checkpoint-6",), ("checkpoint-3",))
    assert found.last_recoverable_full == FIVE[-1]
    assert (found.stats.complete, found.stats.failed) == (4, 1)
    assert found.prune.ids == ()
    assert found.prune.why == "none while the newest is being written"


def test_the_next_one_must_fit_beside_the_reserve() -> None:
    run = watched(looked(*(saved(n, (10 + n) * MB) for n in range(1, 6))), 5 * EVERY_S)
    reserve = run.profile.lights.disk_critical_bytes
    for spare, fits in ((32 * MB, True), (32 * MB - 1, False)):
        free = reserve + spare
        run.ring.take_disk(DiskSample(t_us=T0_US, total_bytes=10**12, free_bytes=free))
        found = run.snapshot().checkpoints
        assert (found.next_bytes, found.next_fits) == (16 * MB, fits)


def test_the_work_of_a_recovery_is_the_newest_full_one_and_its_own_increments() -> None:
    known = [
        saved(1, 900, thread="a"),
        saved(2, 500, thread="b"),
        saved(3, 10, kind="incremental", base="checkpoint-2", thread="b"),
        saved(4, 70, kind="incremental", base="checkpoint-1", thread="a"),
        saved(5, 20, kind="incremental", base="checkpoint-3", thread="b"),
    ]
    run = watched(looked(*known, source="langgraph"), 0)
    view = view_of(run)
    work = view.work()
    assert (work.full_bytes, work.delta_count, work.delta_bytes) == (500, 2, 30)
    assert work.tail_bytes == 0
    chain = shown(looked(*known, source="langgraph")).chain
    assert (chain.deltas, chain.bytes, chain.limit_bytes) == (2, 30, 0)
    assert [one.step for one in view.rows(2)] == [5, 4]


def test_the_time_of_a_graphs_step_is_no_time_of_a_checkpoint() -> None:
    known = [saved(n, duration_s=59.0) for n in range(1, 9)]
    graph = shown(looked(*known, source="langgraph"), 8 * EVERY_S)
    assert (graph.stats.duration_p50_s, graph.stats.time_share) == (None, None)
    assert graph.bloat.verdict == "stable"
    trainer = shown(looked(*known), 8 * EVERY_S)
    assert trainer.stats.duration_p50_s == 59.0
    assert trainer.bloat.verdict == "bloat"


def test_an_empty_store_says_nothing() -> None:
    found = shown(looked())
    assert (found.last, found.age_s, found.next_bytes, found.next_fits) == (None, None, None, None)
    assert found.bloat.verdict == "not enough data"
    assert watched(looked(), 1).light("CKPT")[0] == "no data"


def test_the_light_says_when_the_next_is_due_by_habit() -> None:
    run = watched(looked(*FIVE), 5 * EVERY_S + 20)
    assert run.light("CKPT", alive=True) == ("ok", "next in 40s")
