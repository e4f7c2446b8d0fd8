"""Who comes back sees what happened since the last viewer left, also over a guard's restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.control import SinceLeft
from memwatch.domain.record import Record
from memwatch.domain.snapshot import GuardInfo, RunInfo, Snapshot
from memwatch.runtime.guard.leaving import KEPT_S, Leaving
from memwatch.runtime.guard.recollection import recollect
from memwatch.runtime.guard.recorder import Recorder
from tests.builders import batch

RUN = RunInfo(id="r", path="/r", agent="a", profile="p", host="h", pid=1, state="running")
SNAPSHOT = Snapshot(seq=1, t_us=1, run=RUN, guard=GuardInfo())


class Bench:
    """Guards that come and go; the agent's log is read whole by each."""

    def __init__(self, folder: Path) -> None:
        self.wal = folder / "wal"
        self.clock = ManualClock()
        self.agent: list[Record] = []
        self.begin()

    def begin(self) -> None:
        self.recorder = Recorder(
            self.wal, self.clock, lambda: LogWriter(self.wal, clock=self.clock)
        )
        self.leaving = Leaving(self.recorder, self.clock)
        self.leaving.restore(recollect(self.wal, self.clock.wall_us()).told)
        self.leaving.start()
        if self.agent:
            self.leaving.take_batch(batch(*self.agent))

    def restart(self, away_s: float = 10.0) -> None:
        """A guard that is killed, and the next one."""
        self.recorder.close()
        self.clock.advance_s(away_s)
        self.begin()

    def experiment(self) -> None:
        """The agent ends an experiment."""
        self.clock.advance_s(1)
        now = (self.clock.wall_us(), self.clock.boot_us())
        members = {"x": len(self.agent) + 1, "status": "kept"}
        self.agent.append(Record(len(self.agent) + 1, *now, "experiment.end", members))
        self.leaving.take_batch(batch(self.agent[-1]))

    def level(self, level: str) -> None:
        """The guard enters a level."""
        self.clock.advance_s(1)
        self.leaving.take_guard(self.recorder.append("level", {"level": level}, sync=True))

    @property
    def since(self) -> SinceLeft:
        found = self.leaving.since()
        assert found is not None
        return found

    def counts(self) -> tuple[int, int]:
        return self.since.experiments.get("kept", 0), self.since.levels.get("warn", 0)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    found.recorder.close()


def test_nobody_ever_looked(bench: Bench) -> None:
    began_us = bench.clock.wall_us()
    bench.clock.advance_s(3600)
    bench.experiment()
    assert (bench.since.first, bench.since.from_us, bench.counts()) == (True, began_us, (1, 0))
    bench.leaving.viewer_came("dash-1")
    assert bench.counts() == (1, 0), "it sees what happened before it came"


def test_who_begins_a_guard_and_looks_has_missed_nothing(bench: Bench) -> None:
    bench.clock.advance_s(2)
    bench.leaving.viewer_came("dash-1")
    bench.experiment()
    assert bench.leaving.since() is None
    bench.leaving.viewer_left("dash-1", True)
    assert bench.counts() == (0, 0)


def test_it_counts_anew_when_the_last_one_leaves_and_not_before(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.leaving.viewer_came(name)
    bench.leaving.viewer_left("a", False)
    bench.leaving.viewer_left("b", True)
    left_us = bench.clock.wall_us()
    bench.experiment()
    bench.level("warn")
    bench.leaving.viewer_came("b")
    bench.experiment()
    assert (bench.since.first, bench.since.from_us, bench.counts()) == (False, left_us, (2, 1))
    bench.leaving.viewer_left("b", True)
    assert bench.counts() == (0, 0)


@pytest.mark.parametrize("kept", [True, False])
def test_a_new_guard_goes_on_counting(bench: Bench, kept: bool) -> None:
    bench.leaving.viewer_came("a")
    bench.leaving.viewer_left("a", True)
    left_us = bench.clock.wall_us()
    bench.experiment()
    bench.level("warn")
    if kept:
        bench.clock.advance_s(KEPT_S)
        bench.leaving.take(SNAPSHOT)
    bench.experiment()
    bench.level("warn")
    for _ in range(3):
        bench.restart()
    assert (bench.since.from_us, bench.counts()) == (left_us, (2, 2))
    bench.level("warn")
    bench.experiment()
    assert bench.counts() == (3, 3)


def test_what_the_agent_dropped_meanwhile_is_not_forgotten(bench: Bench) -> None:
    bench.leaving.viewer_left("a", True)
    bench.experiment()
    bench.experiment()
    bench.leaving.stop()
    bench.agent = [Record(9, bench.clock.wall_us(), 1, "note", {})]
    bench.restart()
    assert bench.counts() == (2, 0)


def test_how_often_the_guard_began_again_is_told(bench: Bench) -> None:
    def begins() -> None:
        bench.leaving.take_guard(bench.recorder.append("guard.begin", {"epoch": 1}, sync=True))

    begins()
    assert bench.since.lines == ("nothing of note happened",), "the first one is no news"
    for _ in range(2):
        bench.restart()
        begins()
    assert bench.since.lines == ("the guard began again 2 times",)
    bench.leaving.viewer_left("a", True)
    bench.restart()
    begins()
    assert bench.since.lines == ("the guard began again 1 time",)


def test_a_guard_that_is_killed_before_it_read_all_leaves_out_nothing(bench: Bench) -> None:
    bench.leaving.viewer_left("a", True)
    for _ in range(5):
        bench.experiment()
    whole, bench.agent = bench.agent, bench.agent[-1:]
    bench.restart()
    bench.leaving.whole = lambda: False
    bench.clock.advance_s(KEPT_S)
    bench.leaving.take(SNAPSHOT)
    bench.leaving.stop()
    bench.agent = whole
    bench.restart()
    assert bench.counts() == (5, 0)


def test_what_a_full_checkpoint_makes_dispensable_was_counted_for_good(bench: Bench) -> None:
    bench.leaving.viewer_left("a", True)
    for _ in range(5):
        bench.experiment()
    now = (bench.clock.wall_us(), bench.clock.boot_us())
    bench.leaving.take_batch(batch(Record(6, *now, "checkpoint.commit", {"kind": "full"})))
    bench.clock.advance_s(10)
    bench.leaving.take(SNAPSHOT)
    bench.agent = []
    bench.restart()
    assert bench.counts() == (5, 0)


def test_the_first_time_is_remembered_as_that(bench: Bench) -> None:
    began_us = bench.since.from_us
    bench.restart(away_s=500)
    assert (bench.since.first, bench.since.from_us) == (True, began_us)


def test_it_is_written_down_every_few_minutes_only(bench: Bench) -> None:
    told: list[Record] = []
    bench.leaving.tell = told.append
    for _ in range(20):
        bench.clock.advance_s(KEPT_S / 10)
        bench.leaving.take(SNAPSHOT)
    assert [record.text("state") for record in told] == ["kept", "kept"]
