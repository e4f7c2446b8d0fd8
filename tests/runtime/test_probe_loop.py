"""What a look at the process tree records, and what the guard says that it costs itself."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Record
from memwatch.domain.sample import ProcessInfo, TreeSample
from memwatch.domain.snapshot import Limit
from memwatch.runtime.guard.probe_loop import ProbeLoop
from memwatch.runtime.guard.recorder import Recorder
from memwatch.runtime.views.ring import Ring
from tests.builders import M0_US, T0_US, profile
from tests.waiting import until

MB = 1_000_000


class Bench:
    """A probe loop whose looks are given by the test."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(T0_US, M0_US)
        plan = profile()
        self.written: list[Record] = []
        log = LogWriter(folder / "wal", clock=self.clock, durability="os")
        recorder = Recorder(folder / "wal", self.clock, lambda: log)
        append = recorder.append

        def note(
            kind: str, members: dict[str, Any], *, sync: bool = False, acting: bool = False
        ) -> Record:
            self.written.append(append(kind, members, sync=sync, acting=acting))
            return self.written[-1]

        recorder.append = note  # type: ignore[method-assign]  # looked at on its way
        ring = Ring(plan, self.clock, "boot")
        self.loop = ProbeLoop(folder, folder, plan, ring, recorder, self.clock)
        self.members: list[ProcessInfo] = []
        self.loop._probe = self  # type: ignore[assignment]  # gives samples as a probe does

    def sample(self) -> TreeSample:
        self.clock.advance_s(1)
        return TreeSample(
            t_us=self.clock.wall_us(),
            m_us=self.clock.boot_us(),
            alive=True,
            rss_bytes=sum(one.rss_bytes for one in self.members),
            processes=len(self.members),
            members=tuple(self.members),
        )

    def look(self) -> dict[str, Any]:
        self.loop.look()
        return self.written[-1].members


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.members = [process(pid, (pid % 12) * MB) for pid in range(1, 13)]
    return made


def process(pid: int, rss_bytes: int, ticks: int = 7) -> ProcessInfo:
    return ProcessInfo(pid=pid, ppid=1, start_ticks=ticks, name=f"p{pid}", rss_bytes=rss_bytes)


def test_the_largest_members_are_recorded_when_they_are_others(bench: Bench) -> None:
    first = bench.look()["members"]
    assert [one["pid"] for one in first] == [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert first[0] == {
        "pid": 11,
        "ticks": 7,
        "name": "p11",
        "rss_bytes": 11 * MB,
        "swap_bytes": 0,
    }
    bench.members[4] = process(5, 50 * MB)
    assert "members" not in bench.look(), "the same ones"
    bench.members[4] = process(5, 50 * MB, ticks=99)
    assert bench.look()["members"][0]["ticks"] == 99, "another process under an old number"
    bench.clock.advance_s(60)
    assert "members" in bench.look(), "and each minute"


def test_the_limit_is_recorded_with_its_name(bench: Bench) -> None:
    assert "limit_name" not in bench.look()
    bench.loop.limit = Limit(name="cgroup /a", bytes=5)
    told = bench.look()
    assert (told["limit_bytes"], told["limit_name"]) == (5, "cgroup /a")


def test_the_first_moments_are_not_what_a_guard_costs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.monotonic()]
    cpu = [0.0]
    monkeypatch.setattr("memwatch.runtime.guard.probe_loop.time.monotonic", lambda: now[0])
    monkeypatch.setattr("memwatch.runtime.guard.probe_loop._cpu_s", lambda: cpu[0])
    bench.loop._cpu = (now[0], 0.0)
    began = now[0]
    for at_s, used_s, percent in ((0.2, 0.6, None), (5.0, 0.9, None), (10.0, 1.0, 10.0)):
        now[0], cpu[0] = began + at_s, used_s
        bench.loop._slow_due = 0.0
        bench.look()
        assert bench.loop.own.cpu_percent == (None if percent is None else pytest.approx(percent))
    assert bench.loop.own.rss_bytes


def test_each_slow_look_ends_with_the_disks_rate_and_shows_a_new_one(bench: Bench) -> None:
    news = [True, False]
    bench.loop.on_slow_look = news.pop
    changed = []
    for _ in range(2):
        bench.loop._slow_due = 0.0
        before = bench.loop._ring.changed
        bench.look()
        changed.append(bench.loop._ring.changed - before)
    assert news == []
    assert changed[1] == changed[0] + 1


def test_a_disk_that_takes_its_time_holds_up_no_look_at_memory(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, asked = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> None:
        asked.set()
        goes_on.wait(60)

    monkeypatch.setattr("memwatch.runtime.guard.probe_loop.disk_sample", slow)
    bench.loop._usual_s = 0.01
    bench.loop.alive = True
    bench.loop.start()
    try:
        until(asked.is_set)
        seen = len(bench.written)
        until(lambda: len(bench.written) > seen + 3)
    finally:
        goes_on.set()
        bench.loop.stop()
