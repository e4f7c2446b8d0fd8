"""The guard's books: levels told once, requests followed, meta.json true, a new start noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.agent.log import LogWriter
from memwatch.domain.command import Command
from memwatch.domain.snapshot import Snapshot
from memwatch.runtime.guard.clerk import Clerk
from memwatch.runtime.guard.ledger import Ledger
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.runs.meta import read_meta
from memwatch.runtime.runs.meta_file import MetaFile
from tests.actuators.native_run import a_native_run
from tests.runtime.watched import MB, Watched


class Bench:
    """A clerk over a run that the test rules; `look` is called by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.watched = Watched()
        clock, ring = self.watched.clock, self.watched.ring
        log = LogWriter(folder / "wal", clock=clock, durability="os")
        recorder = Recorder(folder / "wal", clock, lambda: log)
        self.ledger = Ledger(a_native_run(folder, clock), recorder, clock, ring.take_guard)
        self.ledger.serve("note", lambda _: "")
        self.clerk = Clerk(ring, recorder, self.ledger, MetaFile(folder, "run-1", clock), clock)
        self.starts = 0
        self.clerk.on_start = self._count_start

    def look(self, used_bytes: int | None = None, *, alive: bool = True) -> Snapshot:
        if used_bytes is not None:
            self.watched.look(used_bytes)
        self.clerk.newest = self.watched.snapshot(alive=alive, commands=self.ledger.newest())
        self.clerk.look()
        return self.clerk.newest

    def told(self, kind: str) -> list[str]:
        return [e.text for e in self.watched.ring.events(0, 100) if e.kind == kind]

    def _count_start(self) -> None:
        self.starts += 1


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_level_is_told_when_it_changes_with_its_share(bench: Bench) -> None:
    bench.watched.begin(limits={"memory_bytes": 100 * MB})
    for used in (50, 65, 66, 80, 50):
        bench.look(used * MB)
    limit = "of the limit (stated by the agent)"
    assert bench.told("level") == [
        f"memory warn: 65% {limit}, was normal",
        f"memory intervene: 80% {limit}, was warn",
        f"memory normal: 50% {limit}, was intervene",
    ]


def test_usage_that_swings_about_a_threshold_is_told_once(bench: Bench) -> None:
    bench.watched.begin(limits={"memory_bytes": 1000 * MB})
    for used in (605, 595, 602, 590, 610, 585, 601):
        newest = bench.look(used * MB)
        assert newest.level == ("warn" if used >= 600 else "normal"), "what is shown is literal"
    assert len(bench.told("level")) == 1
    bench.look(579 * MB)
    assert bench.told("level")[1:] == [
        "memory normal: 58% of the limit (stated by the agent), was warn"
    ]


def test_usage_that_stays_just_below_a_threshold_has_left_it(bench: Bench) -> None:
    bench.watched.begin(limits={"memory_bytes": 1000 * MB})
    bench.look(605 * MB)
    for _ in range(61):
        assert len(bench.told("level")) == 1
        bench.look(595 * MB)
        bench.watched.clock.advance_s(1)
    bench.look(595 * MB)
    assert len(bench.told("level")) == 2


def test_a_guard_that_begins_invents_no_change_of_level(bench: Bench) -> None:
    bench.watched.begin(limits={"memory_bytes": 1000 * MB})
    bench.clerk.level = "intervene"
    bench.look(800 * MB)
    assert bench.told("level") == []
    bench.look(950 * MB)
    assert bench.told("level") == [
        "memory hard: 95% of the limit (stated by the agent), was intervene"
    ]


def test_a_run_that_is_over_changes_no_level(bench: Bench) -> None:
    bench.watched.begin(limits={"memory_bytes": 100 * MB})
    bench.watched.say("run.end", status="done")
    bench.look(90 * MB, alive=False)
    assert bench.told("level") == []


def test_a_new_start_is_noticed_once(bench: Bench) -> None:
    bench.watched.begin()
    bench.look()
    assert bench.starts == 1
    bench.look()
    assert bench.starts == 1
    bench.watched.say("run.begin", start_id="s2", pid=5)
    bench.look()
    assert bench.starts == 2


def test_the_start_that_was_known_is_no_news(bench: Bench) -> None:
    bench.watched.begin()
    bench.clerk.start()
    bench.clerk.stop()
    bench.clerk.look()
    assert bench.starts == 0


def test_a_request_that_moved_makes_news(bench: Bench) -> None:
    bench.watched.begin()
    news: list[str] = []
    bench.clerk.on_news = lambda: news.append("news")
    name = bench.ledger.submit(Command(op="checkpoint"))
    bench.look()
    assert news == []
    bench.watched.say("command", id=name, state="done", op="checkpoint")
    before = bench.watched.ring.changed
    bench.look()
    assert news == ["news"]
    assert bench.watched.ring.changed > before
    assert bench.ledger.newest()[0].state == "done"


def test_meta_tells_what_ls_shows(bench: Bench) -> None:
    bench.watched.begin(limits={"memory_bytes": 100 * MB})
    bench.watched.say("experiment.end", x=1, status="kept")
    bench.look(70 * MB)
    meta = read_meta(bench.folder)
    assert meta is not None
    assert (meta.run_key, meta.state, meta.level) == ("run-1", "running", "warn")
    assert (meta.peak_bytes, meta.limit_bytes, meta.experiments) == (70 * MB, 100 * MB, 1)
    assert (meta.guard_pid, meta.ended_us, meta.end) == (99, None, "")
    bench.look(50 * MB)
    bench.look(51 * MB)
    meta = read_meta(bench.folder)
    assert meta is not None
    assert meta.last_bytes == 50 * MB, "written when the level changed, then not each second"
    bench.watched.clock.advance_s(61)
    bench.look(62 * MB)
    end = bench.watched.say("run.end", status="crashed", reason="no memory")
    bench.look(alive=False)
    meta = read_meta(bench.folder)
    assert meta is not None
    assert (meta.end, meta.state, meta.ended_us) == ("crashed", "crashed", end.t_us)
    assert meta.peak_bytes == 70 * MB


def test_a_folder_that_refuses_meta_stops_nothing(bench: Bench) -> None:
    bench.watched.begin(limits={"memory_bytes": 100 * MB})
    (bench.folder / "meta.json").mkdir()
    bench.look(70 * MB)
    assert len(bench.told("level")) == 1
