"""The historian loses and repeats nothing, whatever fails, and says since when it fails."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memwatch.domain.clock import ManualClock
from memwatch.domain.errors import StoreError
from memwatch.domain.record import Batch, Fault
from memwatch.store.database import Database
from memwatch.store.historian import Bounds, Historian
from tests.builders import T0_US, record
from tests.store.model import (
    ROOMY,
    Segment,
    mixed_records,
    open_historian,
    select,
    stored_flows,
    stored_lsns,
    true_flows,
    true_lsns,
)

PAGES = Segment(mixed_records(90))
GUARD = Segment([record(lsn, "probe", lsn, rss_bytes=lsn) for lsn in range(1, 20)], log="guard")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(T0_US)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r1" / "history.duckdb"


@pytest.fixture
def historian(path: Path, clock: ManualClock) -> Iterator[Historian]:
    historian = open_historian(path, clock=clock)
    yield historian
    historian.close()


def read_on(historian: Historian, pages: Segment, stop: int | None = None) -> None:
    """Do what a reader does: ask where to go on, and go on."""
    at = pages.index(historian.positions(pages.log).get(pages.first))
    assert historian.submit(pages.read(at, len(pages) if stop is None else stop))


def failing_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Database, *_: object) -> None:
        self.close()
        raise StoreError("IO Error: No space left on device")

    monkeypatch.setattr(Database, "write", refuse)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def test_what_was_taken_is_there_after_a_restart(historian: Historian, path: Path) -> None:
    read_on(historian, PAGES, 40)
    read_on(historian, GUARD, 10)
    historian.close()
    assert not historian.recording
    assert not historian.submit(PAGES.read(40, 50))
    again = open_historian(path)
    assert again.positions("agent") == {1: PAGES.place(40)}
    assert again.positions("guard") == {1: GUARD.place(10)}
    read_on(again, PAGES)
    again.flush()
    assert stored_lsns(again) == true_lsns(PAGES.records)
    assert stored_flows(again) == true_flows(PAGES.records)
    again.close()


def test_while_it_is_paused_the_file_is_closed_and_nothing_is_lost(historian: Historian) -> None:
    read_on(historian, PAGES, 40)
    historian.pause("over its memory")
    assert (historian.recording, historian.error) == (False, "over its memory")
    assert not historian.database.is_open
    assert not historian.submit(PAGES.read(40, 60))
    historian.flush()
    assert not historian.database.is_open, "it does not heal by itself"
    historian.resume()
    assert historian.recording
    read_on(historian, PAGES)
    historian.flush()
    assert stored_lsns(historian) == true_lsns(PAGES.records)


def test_it_writes_by_itself_each_period(path: Path, clock: ManualClock) -> None:
    historian = Historian(path, clock, period_s=0.05, bounds=ROOMY)
    historian.start()
    read_on(historian, PAGES)
    wait_until(lambda: stored_lsns(historian) == true_lsns(PAGES.records))
    historian.close()


def test_a_failing_commit_stops_it_with_a_reason_and_loses_nothing(
    historian: Historian, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_on(historian, PAGES, 30)
    historian.flush()
    assert (historian.error, historian.since_us) == (None, None)
    failing_write(monkeypatch)
    read_on(historian, PAGES, 60)
    historian.flush()
    failed_us = clock.wall_us()
    assert not historian.recording
    assert "No space left" in str(historian.error)
    assert historian.positions("agent") == {}
    assert not historian.submit(PAGES.read(60, 70))
    clock.advance_s(60)
    monkeypatch.setattr(Database, "checkpoint", lambda _: exec_refusal())
    historian.flush()
    assert not historian.recording
    assert historian.since_us == failed_us
    monkeypatch.undo()
    historian.flush()
    assert historian.recording
    assert historian.since_us is None
    assert not historian.submit(PAGES.read(60, 70))
    assert historian.positions("agent") == {1: PAGES.place(30)}
    read_on(historian, PAGES)
    historian.flush()
    assert stored_lsns(historian) == true_lsns(PAGES.records)
    assert stored_flows(historian) == true_flows(PAGES.records)


@pytest.mark.parametrize("after", ["restart", "failure"])
def test_a_new_segment_is_refused_until_the_older_one_was_asked_for(
    historian: Historian, path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    newer = Segment(mixed_records(20, first=91))
    if after == "restart":
        read_on(historian, PAGES, 30)
        historian.close()
        historian = open_historian(path)
    else:
        failing_write(monkeypatch)
        read_on(historian, PAGES, 30)
        historian.flush()
        monkeypatch.undo()
        historian.flush()
    assert historian.recording
    assert not historian.submit(newer.read(0, 20))
    read_on(historian, PAGES)
    assert historian.submit(newer.read(0, 20))
    historian.flush()
    assert stored_lsns(historian) == true_lsns(PAGES.records + newer.records)
    historian.close()


def exec_refusal() -> None:
    raise StoreError("still full")


def test_below_the_reserve_nothing_is_written_but_read(path: Path, clock: ManualClock) -> None:
    historian = open_historian(path, clock=clock)
    read_on(historian, PAGES, 30)
    historian.close()
    starved = open_historian(path, Bounds(reserve_bytes=1 << 62), clock)
    assert "stay free: make room" in str(starved.error)
    assert not starved.submit(PAGES.read(30, 40))
    assert stored_lsns(starved) == true_lsns(PAGES.records[:30])
    starved.close()


def test_a_disk_that_fills_up_and_is_cleared(
    historian: Historian, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 0

    read_on(historian, PAGES, 30)
    with monkeypatch.context() as patch:
        patch.setattr("memwatch.store.historian.disk_usage", lambda _: Usage)
        patch.setattr(historian, "_bounds", Bounds(reserve_bytes=1))
        historian.flush()
        assert not historian.recording
        historian.flush()
        assert not historian.recording
    historian.flush()
    assert historian.recording
    read_on(historian, PAGES)
    historian.flush()
    assert stored_flows(historian) == true_flows(PAGES.records)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_history_that_was_deleted_is_rebuilt(historian: Historian, path: Path, what: str) -> None:
    read_on(historian, PAGES, 30)
    historian.flush()
    for file in path.parent.iterdir():
        file.unlink()
    if what == "folder":
        path.parent.rmdir()
    historian.flush()
    assert "was removed" in str(historian.error)
    historian.flush()
    assert historian.recording
    assert historian.positions("agent") == {}
    read_on(historian, PAGES)
    historian.flush()
    assert path.is_file()
    assert stored_flows(historian) == true_flows(PAGES.records)


def test_damage_found_by_a_reader_leads_to_a_rebuild(historian: Historian, path: Path) -> None:
    read_on(historian, PAGES, 30)
    historian.flush()
    historian.database._damaged = True  # as a read sets it
    historian.flush()
    assert historian.recording
    assert historian.positions("agent") == {}
    read_on(historian, PAGES)
    historian.flush()
    assert stored_lsns(historian) == true_lsns(PAGES.records)
    assert len(list(path.parent.glob("history.duckdb.damaged-*"))) == 1


def test_a_history_in_use_elsewhere_is_tried_again(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Database, "open", lambda _: exec_refusal())
    historian = open_historian(path, clock=clock)
    assert historian.error == "still full"
    assert not historian.submit(PAGES.read(0, 10))
    monkeypatch.undo()
    historian.flush()
    assert historian.recording
    assert not historian.submit(PAGES.read(10, 20))
    read_on(historian, PAGES)
    historian.close()


def test_too_much_at_once_is_refused_until_it_is_written(path: Path, clock: ManualClock) -> None:
    historian = open_historian(path, Bounds(reserve_bytes=0, pending_rows=20), clock)
    assert historian.submit(PAGES.read(0, 60))
    assert not historian.submit(PAGES.read(60, 70))
    historian.flush()
    assert not historian.submit(PAGES.read(60, 70))
    read_on(historian, PAGES)
    historian.flush()
    assert stored_flows(historian) == true_flows(PAGES.records)
    historian.close()


def test_rows_of_a_segment_that_was_cut_are_void_in_the_file_too(historian: Historian) -> None:
    other = Segment(mixed_records(20, first=91))
    read_on(historian, PAGES)
    read_on(historian, other)
    historian.flush()
    cut = Fault("truncated", 1, 0, 0, "shorter", 1)
    assert not historian.submit(Batch("agent", [], [cut], PAGES.place(0), PAGES.place(0)))
    read_on(historian, PAGES, 40)
    historian.flush()
    assert stored_lsns(historian) == true_lsns(PAGES.records[:40] + other.records)
    assert stored_flows(historian) == true_flows(PAGES.records[:40]) + true_flows(other.records)
    assert select(historian, "count(*) FROM event WHERE kind = 'fault'") == [(1,)]


def test_positions_move_only_with_their_rows(historian: Historian, path: Path) -> None:
    read_on(historian, PAGES, 30)
    historian.flush()
    read_on(historian, PAGES, 60)
    assert select(historian, "max(byte_offset) FROM position") == [(3_000,)]
    historian.flush()
    assert select(historian, "max(byte_offset) FROM position") == [(6_000,)]


steps = st.lists(
    st.tuples(st.sampled_from(["read", "flush", "restart", "fail"]), st.integers(0, 90)),
    max_size=10,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_any_order_of_reads_and_restarts_gives_the_same_file(
    tmp_path: Path, history: list[tuple[str, int]]
) -> None:
    path = tmp_path / os.urandom(4).hex() / "history.duckdb"
    historian = open_historian(path)
    for step, where in history:
        if step == "read":
            historian.submit(PAGES.read(max(where - 35, 0), where))
        elif step == "flush":
            historian.flush()
        elif step == "restart":
            historian.close()
            historian = open_historian(path)
        else:
            historian._fail("as if a write had failed")
            historian.flush()
        historian.positions("agent")
    read_on(historian, PAGES)
    historian.flush()
    assert stored_lsns(historian) == true_lsns(PAGES.records)
    assert stored_flows(historian) == true_flows(PAGES.records)
    historian.close()
