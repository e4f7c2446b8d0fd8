"""The guard's books: requests followed, meta.json true, a new start noticed."""

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
        self.clerk = Clerk(ring, self.ledger, MetaFile(folder, "run-1", clock))
        self.starts = 0
        self.clerk.on_start = self._count_start

    def look(self, used_bytes: int | None = None, *, alive: bool = True) -> Snapshot:
        if used_bytes is not None:
            self.watched.look(used_bytes)
        self.clerk.newest = self.watched.snapshot(
            alive=alive, commands=tuple(self.ledger.commands().values())
        )
        self.clerk.look()
        return self.clerk.newest

    def _count_start(self) -> None:
        self.starts += 1


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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
    assert bench.ledger.command(name).state == "done"


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
    done: list[str] = []
    bench.clerk.upkeep = lambda: done.append("upkeep")
    bench.look(70 * MB)
    bench.look(70 * MB)
    assert done == ["upkeep", "upkeep"]
