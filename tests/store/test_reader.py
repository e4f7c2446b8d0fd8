"""Columns keep least, greatest and last value of what was recorded, and gaps stay gaps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memwatch.analytics.series import TimeSeries
from memwatch.domain.clock import ManualClock
from memwatch.domain.errors import StoreError
from memwatch.domain.record import Fault, Record
from memwatch.domain.sample import GAP, Column
from memwatch.store.historian import Historian
from memwatch.store.reader import Reader
from tests.builders import T0_US, record, tiers
from tests.store.model import Segment, open_historian

S = 1_000_000
HOUR_US = 3600 * S


@pytest.fixture(scope="module")
def historian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Historian]:
    path = tmp_path_factory.mktemp("r1") / "history.duckdb"
    historian = open_historian(path, clock=ManualClock(T0_US))
    yield historian
    historian.close()


@pytest.fixture(scope="module")
def numbers() -> Iterator[int]:
    return count(1, 1_000_000)


def store(historian: Historian, first: int, *records: Record, log: str = "agent") -> Reader:
    """Record under numbers from `first`, in a segment of their own."""
    named = [Record(first + i, r.t_us, r.m_us, r.kind, r.members) for i, r in enumerate(records)]
    segment = Segment(named, "guard" if log == "guard" else "agent")
    historian.positions(segment.log)
    assert historian.submit(segment.read(0, len(named)))
    historian.flush()
    assert historian.error is None
    return Reader(historian.database, deadline_s=30)


def tier_record(name: str, at_us: int, size: int) -> Record:
    return record(1, "sample", at_us / S, tiers={name: {"bytes": size, "entries": size % 7}})


courses = st.lists(
    st.tuples(st.integers(0, 2_000), st.integers(0, 1 << 50)), max_size=25, unique_by=lambda s: s[0]
).map(sorted)


@settings(max_examples=60)
@given(courses, st.integers(-300, 2_300), st.integers(1, 2_500), st.integers(1, 60))
def test_a_stored_course_is_cut_as_the_live_one_is(
    historian: Historian,
    numbers: Iterator[int],
    course: list[tuple[int, int]],
    start: int,
    span: int,
    columns: int,
) -> None:
    max_gap_us = span // 5
    first = next(numbers)
    live = TimeSeries(HOUR_US)
    for at_us, size in course:
        live.add(T0_US + at_us, size)
    records = [tier_record(f"course{first}", at_us, size) for at_us, size in course]
    reader = store(historian, first, record(1, "note"), *records)
    t0_us, t1_us = T0_US + start, T0_US + start + span
    stored = reader.series(f"tier:course{first}", t0_us, t1_us, columns, max_gap_us)
    assert stored == live.columns(t0_us, t1_us, columns, max_gap_us)


def test_a_value_is_held_over_short_silence_only(
    historian: Historian, numbers: Iterator[int]
) -> None:
    times = (0, 10, 100)
    records = (tier_record("held", at * S, at) for at in times)
    reader = store(historian, next(numbers), *records)
    columns = reader.series("tier:held", T0_US - 10 * S, T0_US + 130 * S, 14, 15 * S)
    zero, ten, hundred = (Column(at, at, at) for at in times)
    assert columns == [GAP, zero, ten, *[GAP] * 8, hundred, hundred, GAP]


def test_entries_are_a_course_of_their_own(historian: Historian, numbers: Iterator[int]) -> None:
    reader = store(historian, next(numbers), *(tier_record("own", s * S, s * 10) for s in range(4)))
    t0_us, t1_us = T0_US, T0_US + 4 * S
    assert [c.last for c in reader.series("tier:own", t0_us, t1_us, 4, S)] == [0, 10, 20, 30]
    assert [c.last for c in reader.series("entries:own", t0_us, t1_us, 4, S)] == [0, 3, 6, 2]
    latest = reader.latest_samples()["tier:own"]
    assert (latest.t_us, latest.used, latest.entries, latest.limit) == (T0_US + 3 * S, 30, 2, None)


@pytest.mark.parametrize(
    ("t0_us", "t1_us", "columns"),
    [(5, 5, 3), (9, 5, 3), (0, 9, 0), (-(1 << 80), -1, 4)],
)
def test_nothing_asked_is_nothing_answered(
    historian: Historian, t0_us: int, t1_us: int, columns: int
) -> None:
    assert Reader(historian.database).series("memory", t0_us, t1_us, columns, S) == []


def test_any_span_of_time_is_answered(historian: Historian) -> None:
    reader = Reader(historian.database, deadline_s=30)
    assert len(reader.series("tier:none", -(1 << 80), 1 << 80, 7, S)) == 7
    assert reader.events(-(1 << 80), 1 << 80, -1) == []


def test_events_come_oldest_first_and_the_newest_so_many(
    historian: Historian, numbers: Iterator[int]
) -> None:
    at_s = 50 * 3600
    notes = [record(1, "note", at_s + i, text=f"\x1b[31mnote {i}") for i in range(5)]
    first = next(numbers)
    reader = store(historian, first, *notes)
    store(historian, first, record(1, "level", at_s + 1.5, level="warn"), log="guard")
    t0_us = T0_US + at_s * S
    events = reader.events(t0_us, t0_us + 4 * S, 3)
    assert [e.text[-6:] for e in events] == ["note 1", "warn: ", "note 2", "note 3"][1:]
    assert [(e.origin, e.severity) for e in events] == [
        ("guard", "warning"),
        ("agent", "notice"),
        ("agent", "notice"),
    ]
    assert not any("\x1b" in e.text for e in events)


def test_experiments_that_only_the_history_knows_are_counted(
    historian: Historian, numbers: Iterator[int]
) -> None:
    first = next(numbers)
    before = Reader(historian.database, deadline_s=30).experiments_before(first)
    ends = [
        record(1, "experiment.end", i, x=i, status="kept" if i % 2 else "failed") for i in range(5)
    ]
    reader = store(historian, first, *ends)
    assert before == {}
    assert reader.experiments_before(first + 4) == {"failed": 2, "kept": 2}


def test_a_run_of_26_hours_fills_the_day(tmp_path: Path) -> None:
    historian = open_historian(tmp_path / "day" / "history.duckdb", clock=ManualClock(T0_US))
    probes = [
        record(1, "probe", at_s, rss_bytes=at_s + (10**6 if at_s % 600 == 0 else 0), processes=1)
        for at_s in range(0, 26 * 3600, 20)
    ]
    samples = [record(1, "sample", at_s, tiers=tiers(recent=at_s)) for at_s in range(0, 93_600, 60)]
    store(historian, 1, *samples)
    reader = store(historian, 1, *probes, log="guard")
    now_us = T0_US + 26 * HOUR_US
    coarse = reader.coarse(now_us - 24 * HOUR_US)
    assert set(coarse) == {"memory", "processes", "tier:recent", "entries:recent"}
    assert {name: len(points) for name, points in coarse.items()} == dict.fromkeys(coarse, 24 * 60)
    t_us, least, greatest, last = coarse["memory"][0]
    assert t_us == now_us - 24 * HOUR_US + 40 * S
    assert (least, greatest, last) == (7_220, 7_200 + 10**6, 7_240)
    day = reader.series("memory", now_us - 24 * HOUR_US, now_us, 160, 60 * S)
    assert not any(column.gap for column in day)
    assert sum((column.max or 0) > 10**6 for column in day) == 144
    historian.close()


def test_a_history_that_is_closed_says_so(tmp_path: Path) -> None:
    historian = open_historian(tmp_path / "r1" / "history.duckdb")
    historian.close()
    with pytest.raises(StoreError, match="not open"):
        Reader(historian.database).latest_samples()


def test_faults_are_kept_with_their_place(historian: Historian, numbers: Iterator[int]) -> None:
    first = next(numbers)
    note = Record(first, T0_US + 90 * HOUR_US, 1, "note", {"text": "then"})
    segment = Segment([note])
    historian.positions("agent")
    historian.submit(segment.read(0, 1, Fault("damaged", first, 7, 9, "checksum differs")))
    historian.flush()
    reader = Reader(historian.database, deadline_s=30)
    told = reader.events(T0_US + 90 * HOUR_US, T0_US + 91 * HOUR_US, 9)
    assert [(e.kind, e.origin) for e in told] == [("note", "agent"), ("fault", "guard")]
    assert f"damaged at segment {first} offset 7: checksum differs" in told[1].text
