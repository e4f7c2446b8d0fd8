"""A guard that begins anew knows at once what the one before had seen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.record import Record
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.guard import history as history_module
from memwatch.runtime.guard.history import History
from memwatch.runtime.views.ring import Ring
from tests.builders import M0_US, T0_US, batch, profile, tiers

S = 1_000_000
MB = 1_000_000
BOOT = "boot"


class Bench:
    """A history that is fed from logs, on a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(T0_US, M0_US)
        self.history = History(folder / "history.duckdb", self.clock)
        self.history.start()

    def store(self, log: Any, records: list[tuple[float, str, dict[str, Any]]]) -> None:
        """Write records, (seconds to wait before, kind, members), into a log and the history."""
        wal = self.folder / f"{log}-wal"
        writer = LogWriter(wal, clock=self.clock, durability="os")
        for wait_s, kind, members in records:
            self.clock.advance_s(wait_s)
            writer.append(kind, members)
        writer.close()
        tailer = LogTailer(wal, log, self.history.historian.positions(log))
        more = True
        while more:
            batches = tailer.poll()
            for one in batches:
                assert self.history.historian.submit(one)
            self.history.historian.flush()
            more = bool(batches)
        tailer.close()

    def fresh_ring(self) -> Ring:
        ring = Ring(profile(), self.clock, BOOT)
        self.history.prefill(ring)
        return ring


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.history.close()


def probe(used: int, limit: int | None = None) -> tuple[str, dict[str, Any]]:
    members = {"alive": True, "rss_bytes": used, "processes": 1}
    return "probe", members if limit is None else members | {"limit_bytes": limit}


def test_a_day_fills_all_three_growth_columns(bench: Bench) -> None:
    day = [(60.0, *probe(minute * MB)) for minute in range(24 * 60)]
    hours = [(2.0, *probe(1440 * MB + second * MB // 60)) for second in range(0, 7200, 2)]
    bench.store("guard", day + hours)
    ring = bench.fresh_ring()
    for slope in ring.slopes("memory"):
        assert slope is not None
        assert slope.per_min == pytest.approx(MB, rel=0.1)
    now_us = bench.clock.wall_us()
    columns = ring.columns("memory", now_us - 7000 * S, now_us, 70)
    assert not any(column.gap for column in columns)


def test_a_run_that_ended_long_ago_is_filled_up_to_its_end(bench: Bench) -> None:
    bench.store("guard", [(2.0, *probe(s * MB, limit=900 * MB)) for s in range(600)])
    ended_us = bench.clock.wall_us()
    bench.clock.advance_s(50 * 3600)
    ring = bench.fresh_ring()
    series = ring.series_of("memory")
    assert series is not None
    assert series.last is not None
    assert abs(ring.to_wall(series.last[0]) - ended_us) < 5 * S
    assert series.last[1] == 599 * MB
    assert ring.slopes("memory")[0] is not None
    assert bench.history.limit_bytes == 900 * MB


def test_tiers_and_their_entries_are_filled_too(bench: Bench) -> None:
    bench.store("agent", [(5.0, "sample", {"tiers": tiers(recent=s * MB)}) for s in range(60)])
    ring = bench.fresh_ring()
    for resource in ("tier:recent", "entries:recent"):
        assert ring.slopes(resource)[0] is not None
        assert ring.series_of(resource) is not None


def test_events_of_both_logs_come_in_order_and_those_of_the_present_once(bench: Bench) -> None:
    old = [(60.0, "note", {"text": f"old {n}"}) for n in range(3)]
    bench.store("agent", old)
    bench.store("guard", [(1.0, "level", {"level": "warn", "why": "64%"})])
    present = [(60.0, "note", {"text": f"new {n}"}) for n in range(2)]
    bench.store("agent", present)
    ring = Ring(profile(), bench.clock, BOOT)
    start_us = bench.clock.wall_us()
    ring.take(
        batch(
            Record(4, start_us - 60 * S, 1, "note", {"text": "new 0"}),
            Record(5, start_us, 2, "note", {"text": "new 1"}),
        )
    )
    bench.history.prefill_events(ring)
    told = [event.text for event in ring.events(0, 100)]
    assert told == ["old 0", "old 1", "old 2", "memory warn: 64%", "new 0", "new 1"]


def test_experiments_of_segments_that_were_dropped_are_counted(bench: Bench) -> None:
    statuses = ["kept", "failed", "kept", "discarded", "kept"]
    ends = [
        (1.0, "experiment.end", {"x": number, "status": status})
        for number, status in enumerate(statuses, 1)
    ]
    bench.store("agent", ends)
    bench.history.count_older(5)
    assert bench.history.older_experiments == {"kept": 2, "failed": 1, "discarded": 1}
    bench.history.count_older(1)
    assert bench.history.older_experiments == {}


@pytest.mark.parametrize(
    ("total", "reserve"), [(10**12, 10**9), (10**9, 2 * 10**7), (3 * 10**6, 6 * 10**4)]
)
def test_the_reserve_is_no_large_part_of_a_small_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, total: int, reserve: int
) -> None:
    class Room:
        def __init__(self) -> None:
            self.total = total

    monkeypatch.setattr(history_module, "disk_usage", lambda _: Room())
    assert history_module._bounds(tmp_path).reserve_bytes == reserve


def test_without_a_disk_that_answers_the_usual_reserve_holds(tmp_path: Path) -> None:
    assert history_module._bounds(tmp_path / "missing").reserve_bytes == 10**9
