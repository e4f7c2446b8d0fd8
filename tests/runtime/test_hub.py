"""The seam between ring and history cannot be seen: each sample and event once, no gap."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memwatch.agent.log import LogWriter
from memwatch.config.schema import Probe
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.record import Record
from memwatch.domain.sample import GAP, TreeSample
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.guard.history import History
from memwatch.runtime.guard.hub import GuardHub
from memwatch.runtime.views.ring import Ring
from tests.builders import M0_US, T0_US, batch, profile
from tests.runtime.fakes import snapshot

S = 1_000_000
STORED_S = 3 * 3600
HELD_S = 3600
PERIOD_S = 10
END_US = T0_US + STORED_S * S


def asked(command_id: str) -> CommandInfo:
    return CommandInfo(id=command_id, op="purge", state="done", asked_us=1, changed_us=2)


class Bench:
    """Three hours of samples and events in the history, the last hour in the ring as well."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(T0_US, M0_US)
        plan = profile(probe=Probe(period_s=float(PERIOD_S)))
        self.ring = Ring(plan, self.clock, "boot")
        self.history = History(folder / "history.duckdb", self.clock)
        self.history.start()
        self.log = LogWriter(folder / "wal", clock=self.clock, durability="os")
        for second in range(0, STORED_S, PERIOD_S):
            self._look(second)
            self.clock.advance_s(PERIOD_S)
        tailer = LogTailer(folder / "wal", "guard")
        while batches := tailer.poll():
            for one in batches:
                assert self.history.historian.submit(one)
        tailer.close()
        self.history.historian.flush()
        self.hub = GuardHub(self.ring, self.history, lambda: snapshot(5), lambda _: "id", asked)

    def _look(self, second: int) -> None:
        rss = {"rss_bytes": second, "processes": 1, "alive": True}
        self.log.append("probe", rss)
        wall_us, boot_us = self.clock.wall_us(), self.clock.boot_us()
        note = {"text": f"at {second}"} if second % 60 == 0 else None
        if note:
            self.log.append("note", note)
        if second % 1800 == 0:
            self.log.append("level", level := {"level": "warn", "why": f"at {second}"})
            if second >= STORED_S - HELD_S:
                self.ring.take_guard(Record(1, wall_us, boot_us, "level", level))
        if second >= STORED_S - HELD_S:
            self.ring.take_tree(
                TreeSample(t_us=wall_us, m_us=boot_us, alive=True, rss_bytes=second, processes=1)
            )
            if note:
                self.ring.take_guard(Record(1, wall_us, boot_us, "note", note))

    def close(self) -> None:
        self.history.close()
        self.log.close()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench(tmp_path_factory.mktemp("hub"))
    yield made
    made.close()


SECONDS = st.integers(0, STORED_S)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SECONDS, SECONDS, st.integers(1, 400))
def test_a_course_shows_each_sample_in_its_column(bench: Bench, a: int, b: int, count: int) -> None:
    start, end = min(a, b), max(a, b) + 1
    t0_us, t1_us = T0_US + start * S, T0_US + end * S
    columns = bench.hub.series("memory", t0_us, t1_us, count)
    assert len(columns) == count
    edges = [t0_us + (t1_us - t0_us) * n // count for n in range(count + 1)]
    for column, (low, high) in zip(columns, pairwise(edges), strict=True):
        first = -(-(low - T0_US) // (PERIOD_S * S)) * PERIOD_S
        held = [s for s in range(first, STORED_S, PERIOD_S) if T0_US + s * S < high]
        if held:
            assert (column.min, column.max, column.last) == (held[0], held[-1], held[-1])
        else:
            assert column.last == min(first, STORED_S) - PERIOD_S, "what was held before"


def test_before_and_behind_there_are_gaps(bench: Bench) -> None:
    assert bench.hub.series("memory", T0_US - 600 * S, T0_US - 100 * S, 5) == [GAP] * 5
    assert bench.hub.series("memory", END_US + 100 * S, END_US + 600 * S, 5) == [GAP] * 5
    assert bench.hub.series("nothing", T0_US, END_US, 5) == [GAP] * 5
    assert bench.hub.series("memory", END_US, T0_US, 3) == [GAP] * 3


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SECONDS, SECONDS)
def test_events_of_a_span_come_once_and_in_order(bench: Bench, a: int, b: int) -> None:
    start, end = min(a, b), max(a, b)
    found = bench.hub.events(0, 1000, T0_US + start * S, T0_US + end * S, ("note",))
    first = -(-start // 60) * 60
    assert [event.text for event in found] == [f"at {s}" for s in range(first, end, 60)]


@pytest.mark.parametrize(("start_s", "end_s"), [(0, STORED_S), (0, 7000), (8000, STORED_S)])
def test_many_notes_do_not_crowd_rare_marks_out(bench: Bench, start_s: int, end_s: int) -> None:
    """Whether they come from the history, from the ring or from both."""
    found = bench.hub.events(0, 6, T0_US + start_s * S, T0_US + end_s * S, ("level", "gap"))
    wanted = [s for s in range(0, STORED_S, 1800) if start_s <= s < end_s]
    assert [event.text for event in found] == [f"memory warn: at {s}" for s in wanted]
    newest = bench.hub.events(0, 1, None, None, ("level",))
    assert [event.text for event in newest] == ["memory warn: at 9000"]


def test_the_newest_of_a_span_are_kept(bench: Bench) -> None:
    found = bench.hub.events(0, 3, T0_US, T0_US + 7200 * S)
    assert [event.text for event in found] == ["at 7020", "at 7080", "at 7140"]
    found = bench.hub.events(0, 3, END_US - 1800 * S, END_US - 900 * S)
    assert [e.text for e in found] == ["at 9720", "at 9780", "at 9840"], "newer ones do not crowd"


def test_events_above_a_number(bench: Bench) -> None:
    newest = bench.hub.events(bench.ring.event_seq - 2, 10, None, None)
    assert [event.text for event in newest] == ["at 10680", "at 10740"]


def test_news_and_requests(bench: Bench) -> None:
    assert bench.hub.newest() == (0, b"\xc0")
    bench.hub.want()
    assert bench.hub.wanted
    assert bench.hub.wake.is_set()
    bench.hub.put(snapshot(3))
    assert bench.hub.newest()[0] == 3
    assert not bench.hub.wanted
    assert b'"seq":5' in bench.hub.status()
    assert bench.hub.submit(Command(op="note")) == "id"


def test_a_history_out_of_reach_costs_only_what_it_held(tmp_path: Path) -> None:
    lost = History(tmp_path / "missing" / "history.duckdb", ManualClock())
    ring = Ring(profile(), ManualClock(T0_US, M0_US), "boot")
    hub = GuardHub(ring, lost, lambda: snapshot(1), lambda _: "id", asked)
    ring.take(batch(Record(1, T0_US, M0_US, "note", {"text": "here"})))
    assert hub.series("memory", T0_US - S, T0_US, 2) == [GAP] * 2
    assert [e.text for e in hub.events(0, 10, T0_US - S, T0_US + S)] == ["here"]
    lost.prefill(ring)
    lost.count_older(50)
    assert lost.older_experiments == {}


def test_each_list_is_asked_of_who_knows_it(bench: Bench) -> None:
    known = [Checkpoint(id=f"c{number}", kind="full", state="committed") for number in range(3)]
    bench.hub.lists = {"checkpoints": lambda limit: known[:limit], "interventions": lambda _: []}
    assert bench.hub.rows("checkpoints", 2) == known[:2]
    assert bench.hub.rows("interventions", 9) == []
