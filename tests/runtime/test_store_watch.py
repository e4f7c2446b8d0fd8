"""The thread that looks at a store: what it tells, whom it follows, how often it looks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from memwatch.domain.checkpoints import Checkpoint, StoreLook
from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Record
from memwatch.host.process import Identity
from memwatch.ingest.foreign import Foreign
from memwatch.runtime.guard.history import History
from memwatch.runtime.guard.own_log import OwnLog
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.guard.store_watch import LATE_S, SOON_S, StoreWatch
from memwatch.runtime.views.ring import Ring
from tests.analytics.test_store_changes import T0, S, look, saved
from tests.builders import M0_US, T0_US, profile
from tests.waiting import until


class Bench:
    """A store that is what the test says, and the watch of it."""

    def __init__(self, folder: Path) -> None:
        self.seen = replace(look(saved(1)), t_us=T0 + 3_600_000_000)
        self.looks = 0
        self.told: list[Record] = []
        self.writers: list[Identity] = []
        clock = ManualClock(T0_US, M0_US)
        self.ring = Ring(profile(), clock, "boot")
        self.recorder = Recorder(folder / "wal", clock)
        self.history = History(folder / "history.duckdb", clock)
        kind = Foreign("directory", self._look, lambda path: path, "no")
        own = OwnLog(folder / "wal", self.history.historian)
        self.watch = StoreWatch(folder, kind, own, self.ring, self.recorder, lambda: None)
        self.watch.tell = self.told.append
        self.watch.on_writer = self.writers.append

    def _look(self, _: Path, before: StoreLook | None) -> StoreLook:
        assert (before is None) == (self.looks == 0)
        self.looks += 1
        return self.seen

    def show(self, *checkpoints: Checkpoint, writers: tuple[int, ...] = ()) -> None:
        self.seen = replace(look(*checkpoints), t_us=self.seen.t_us, writers=writers)
        self.watch.look()

    @property
    def watched(self) -> StoreLook:
        assert self.ring.store is not None
        return self.ring.store

    @property
    def events(self) -> list[str]:
        return [f"{one.text('event')} {one.text('id')}" for one in self.told]

    def close(self) -> None:
        self.recorder.close()
        self.history.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


def test_what_happens_is_written_down_and_told_once(bench: Bench) -> None:
    bench.watch.read_present()
    assert bench.told == [], "what lay there before is no news"
    bench.show(saved(1), saved(2, "begun"))
    bench.show(saved(1), saved(2))
    bench.show(saved(2))
    bench.show(saved(2))
    assert bench.events == ["committed checkpoint-2", "deleted checkpoint-1"]
    assert all(record.kind == "store" and record.lsn for record in bench.told)
    assert bench.ring.store == bench.seen


def test_what_a_killed_guard_told_last_is_not_told_again(bench: Bench, tmp_path: Path) -> None:
    """It is killed before `meta.json` says until when it saw."""
    bench.watch.read_present()
    bench.show(saved(1), saved(-2))
    (told,) = bench.told
    (tmp_path / "next").mkdir()
    later = Bench(tmp_path / "next")
    later.watch.known_until_us = T0 - 600 * S
    later.watch.restore([*bench.told, Record(9, told.t_us, 0, "store", {"event": 5})])
    newest = saved(3, committed_us=told.t_us + S)
    later.seen = replace(look(saved(-2), newest), t_us=told.t_us + 2 * S)
    later.watch.read_present()
    later.close()
    assert later.events == ["committed checkpoint-3"]


def test_what_a_guard_before_this_one_could_not_tell(bench: Bench) -> None:
    bench.watch.known_until_us = T0 + 90_000_000
    bench.show(saved(1), saved(2))
    assert bench.events == ["committed checkpoint-2"]


def test_it_follows_the_first_writer_until_it_is_gone(bench: Bench) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        bench.show(saved(1), writers=(child.pid, os.getpid()))
        assert [one.pid for one in bench.writers] == [os.getpid()], "it began before its child"
        bench.show(saved(1), writers=(child.pid,))
        assert len(bench.writers) == 1, "the first one lives"
    finally:
        child.kill()
        child.communicate()
    bench.show(saved(1), writers=(child.pid,))
    assert len(bench.writers) == 1, "nobody has that number now"


def test_a_writer_that_is_gone_gives_way_to_the_next(bench: Bench) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as first:
        bench.show(saved(1), writers=(first.pid,))
        first.communicate()
    bench.show(saved(1), writers=())
    bench.show(saved(1), writers=(os.getpid(),))
    assert [one.pid for one in bench.writers] == [first.pid, os.getpid()]


def test_a_store_that_is_gone_is_gone_since_the_first_look_without_it(
    bench: Bench, tmp_path: Path
) -> None:
    bench.watch.look()
    bench.seen = replace(bench.seen, why="it cannot be read: Permission denied")
    bench.watch.look()
    assert not bench.watched.gone
    bench.watch._path = tmp_path / "removed"
    for seconds in (10, 20):
        bench.seen = replace(bench.seen, t_us=T0 + seconds * S)
        bench.watch.look()
    assert (bench.watched.gone, bench.watched.t_us) == (True, T0 + 10 * S)
    assert bench.told == [], "what nobody can look at is not said to be deleted"


def test_it_looks_more_and_more_seldom_while_nothing_happens(bench: Bench) -> None:
    bench.watch.look()
    periods = []
    for _ in range(12):
        bench.watch.look()
        periods.append(bench.watch.period_s)
    assert periods == sorted(periods)
    assert (periods[0], periods[-1]) == (SOON_S * 1.5, LATE_S)
    bench.show(saved(1), saved(2, "begun"))
    bench.watch.look()
    assert bench.watch.period_s == SOON_S, "one is being written"


def test_a_hint_brings_the_next_look_forward(bench: Bench, tmp_path: Path) -> None:
    bench.watch.read_present()
    for _ in range(12):
        bench.watch.look()
    bench.history.start()
    bench.watch.start()
    try:
        until(lambda: bench.watch.watcher.mode == "events")
        before = bench.looks

        def looked() -> bool:
            (tmp_path / "new").touch()
            return bench.looks > before

        until(looked, LATE_S / 2)
    finally:
        bench.watch.stop()
