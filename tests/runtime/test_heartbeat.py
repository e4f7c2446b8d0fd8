"""The sign of life: sent while snapshots are made, its failure and return written down once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.config.settings import Heartbeat as HeartbeatSettings
from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Record
from memwatch.domain.snapshot import GuardInfo, RunInfo, Snapshot
from memwatch.runtime.guard.heartbeat import STALLED_S, Heartbeat
from memwatch.runtime.guard.recorder import Recorder
from tests.actuators.notify.listening import Listener, listening, status
from tests.waiting import until

RUN = RunInfo(id="r", path="/r", agent="a", profile="p", host="h", pid=1, state="running")
SNAPSHOT = Snapshot(seq=1, t_us=1, run=RUN, guard=GuardInfo())


class Bench:
    def __init__(self, folder: Path, server: Listener, every_s: float = 60.0) -> None:
        self.clock = ManualClock()
        self.server = server
        self.told: list[Record] = []
        settings = HeartbeatSettings(url=f"{server.url}/s3cret", every_s=every_s)
        self.recorder = Recorder(folder / "wal", self.clock)
        self.heart = Heartbeat(settings, self.recorder, self.clock)
        self.heart.tell = self.told.append

    def beat(self) -> str:
        self.heart.beat()
        return self.heart.info.state

    def states(self) -> list[Any]:
        return [(record.kind, record.members["state"]) for record in self.told]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with listening() as server:
        found = Bench(tmp_path, server, every_s=0.01)
        yield found
        found.heart.stop()
        found.recorder.close()


def test_it_calls_while_snapshots_are_made(bench: Bench) -> None:
    assert bench.beat() == "sent"
    assert (bench.server.heard[0].method, bench.server.heard[0].path) == ("GET", "/s3cret")
    bench.clock.advance_s(STALLED_S + 1)
    assert bench.beat() == "failed"
    assert bench.heart.info.detail == "no sign is sent: the guard makes no snapshots"
    assert len(bench.server.heard) == 1
    bench.heart.take(SNAPSHOT)
    assert bench.beat() == "sent"
    assert len(bench.server.heard) == 2


def test_only_its_failure_and_its_return_are_written_down(bench: Bench) -> None:
    for code in (200, 200, 500, 500, 500, 200, 200):
        bench.server.reply = status(code)
        bench.beat()
    assert bench.states() == [("notify", "failed"), ("notify", "sent")]
    assert bench.heart.info.at_us == bench.clock.wall_us()
    assert all("s3cret" not in str(record.members) for record in bench.told)


def test_one_that_fails_from_the_start_is_told(bench: Bench) -> None:
    bench.server.reply = status(404)
    bench.beat()
    assert bench.states() == [("notify", "failed")]
    assert bench.heart.info.detail == "answered 404 Not Found"


def test_the_thread_goes_on_and_ends(bench: Bench) -> None:
    bench.heart.start()
    until(lambda: len(bench.server.heard) >= 3)
    bench.heart.stop()
    assert not any(t.name == "memwatch-heartbeat" for t in threading.enumerate())
