"""Positions alone decide what is new: no row comes twice, none is lost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.domain.record import Batch, Fault, LogName, Position
from memwatch.store.intake import Intake, Reached, Segment
from memwatch.store.rows import Row, RowFold
from tests.builders import record
from tests.store.model import Segment as Pages
from tests.store.model import mixed_records, true_flows, true_lsns

PAGES = Pages(mixed_records(90))
GUARD = Pages([record(lsn, "probe", lsn, rss_bytes=lsn) for lsn in range(1, 20)], log="guard")
NOW_US = 5


class File:
    """What transactions left behind, as the file of a history would hold it."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.stored: dict[Segment, Reached] = {}
        self.intake = self.open(())

    def open(self, behind: tuple[LogName, ...]) -> Intake:
        """Begin as after a start: behind in every log that the file holds a part of."""
        self.intake = Intake(self.stored, RowFold(), {*behind, *(log for log, _ in self.stored)})
        return self.intake

    def commit(self) -> None:
        handed = self.intake.hand_over()
        if handed is None:
            return
        for table, rows in self.rows.items():
            self.rows[table] = [row for row in rows if row[:2] not in handed.void]
        for table, rows in handed.pending.tables().items():
            self.rows.setdefault(table, []).extend(rows)
        self.stored |= handed.reached

    def take(self, batch: Batch) -> bool:
        return self.intake.take(batch, NOW_US)

    def lsns(self) -> list[int]:
        return sorted(int(row[2] or 0) for row in self.rows.get("experiment", []))

    def flows(self) -> Counter[tuple[Any, ...]]:
        sums: Counter[tuple[Any, ...]] = Counter()
        for _, _, _, *key, puts, updates, deletes, size, _ in self.rows.get("tier_flow", []):
            figures = {"put": puts, "update": updates, "delete": deletes, "bytes": size}
            sums.update({(*key, name): int(figure or 0) for name, figure in figures.items()})
        return +sums


@pytest.fixture
def file() -> File:
    return File()


def test_a_batch_behind_a_hole_is_refused_and_all_after_it(file: File) -> None:
    assert file.take(PAGES.read(0, 10))
    assert not file.take(PAGES.read(20, 30))
    assert not file.take(PAGES.read(10, 20))
    assert file.intake.positions("agent") == {1: PAGES.place(10)}
    assert file.take(PAGES.read(10, 20))


def test_a_hole_in_one_log_does_not_stop_the_other(file: File) -> None:
    assert not file.take(PAGES.read(20, 30))
    assert file.take(GUARD.read(0, 5))


def test_a_segment_begun_in_its_middle_is_a_hole(file: File) -> None:
    assert not file.take(PAGES.read(3, 9))
    assert file.intake.positions("agent") == {}


def test_what_is_known_is_taken_as_nothing(file: File) -> None:
    assert file.take(PAGES.read(0, 30))
    waiting = file.intake.count
    assert file.take(PAGES.read(0, 30))
    assert file.take(PAGES.read(5, 20))
    assert file.intake.count == waiting
    assert file.intake.positions("agent") == {1: PAGES.place(30)}


def test_a_batch_that_begins_earlier_gives_only_what_is_new(file: File) -> None:
    assert file.take(PAGES.read(0, 30))
    assert file.take(PAGES.read(10, 50))
    file.commit()
    assert file.lsns() == true_lsns(PAGES.records[:50])
    assert file.flows() == true_flows(PAGES.records[:50])


def test_what_cannot_be_told_apart_is_read_again_from_the_very_place(file: File) -> None:
    blind = PAGES.read(0, 30)
    blind = Batch("agent", blind.records, [], blind.start, Position(1, blind.end.offset, None))
    assert file.take(blind)
    assert not file.take(PAGES.read(10, 50))
    file.intake.positions("agent")
    assert file.take(PAGES.read(30, 50))


def test_after_a_start_reading_goes_on_where_the_file_ends(file: File) -> None:
    file.take(PAGES.read(0, 30))
    file.commit()
    intake = file.open(())
    assert not file.take(PAGES.read(30, 40))
    assert intake.positions("agent") == {1: PAGES.place(30)}
    assert file.take(PAGES.read(30, 40))
    assert file.take(GUARD.read(0, 5))


def test_numbers_reported_as_pruned_keep_their_place(file: File) -> None:
    fault = Fault("pruned", 1, 0, 0, "lsn 1 to 40 were dropped", 41, 40)
    gone = Batch("agent", [], [fault], Position(1), Position(1, 0, 41), live=False)
    assert file.take(gone)
    assert file.intake.positions("agent") == {1: Position(1, 0, 41)}
    file.commit()
    assert len(file.rows["event"]) == 1


def test_a_fault_gets_the_time_of_the_record_behind_it(file: File) -> None:
    faults = [
        Fault("gap", 1, 500, 0, "", 6),
        Fault("damaged", 1, 900),
        Fault("torn", 1, 950, 0, "", 99),
    ]
    file.take(PAGES.read(0, 10, *faults))
    file.take(GUARD.read(0, 0, Fault("vanished", 1, 0)))
    file.commit()
    times = [row[3] for row in file.rows["event"] if row[5] == "fault"]
    last = PAGES.records[9].t_us
    assert times == [PAGES.records[5].t_us, last, last, NOW_US]


def test_a_segment_that_was_cut_is_forgotten_and_read_again(file: File) -> None:
    other = Pages(mixed_records(20, first=91))
    file.take(PAGES.read(0, 60))
    file.take(other.read(0, 20))
    file.commit()
    file.take(PAGES.read(60, 70))
    cut = Fault("truncated", 1, 0, 0, "shorter", 1)
    assert not file.take(Batch("agent", [], [cut], PAGES.place(70), Position(1, 4_000, 41)))
    assert not file.take(other.read(20, 20))
    assert file.intake.positions("agent") == {1: PAGES.place(0), 91: other.place(20)}
    assert file.take(PAGES.read(0, 40))
    file.commit()
    assert file.lsns() == true_lsns(PAGES.records[:40] + other.records)
    assert file.flows() == true_flows(PAGES.records[:40]) + true_flows(other.records)
    assert [row[5] for row in file.rows["event"] if row[2] is None] == ["fault"]


def test_a_file_replaced_by_its_own_copy_is_no_news(file: File) -> None:
    file.take(PAGES.read(0, 60))
    same = Fault("replaced", 1, 6_000, 0, "another file with the same content")
    assert file.take(Batch("agent", [], [same], PAGES.place(60), PAGES.place(60)))
    assert file.take(PAGES.read(60, 90))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 90), st.integers(0, 40)),
        st.tuples(st.just("go on"), st.integers(1, 40), st.just(0)),
        st.tuples(st.sampled_from(["commit", "crash", "fail", "cut"]), st.just(0), st.just(0)),
    ),
    max_size=30,
)


@given(steps)
def test_any_order_of_reads_commits_failures_and_restarts_gives_the_same(
    history: list[tuple[str, int, int]],
) -> None:
    file = File()
    for step, where, length in history:
        take_step(file, step, where, length)
    while (at := PAGES.index(file.intake.positions("agent").get(1))) < len(PAGES):
        assert file.take(PAGES.read(at, at + 25))
    file.commit()
    assert file.lsns() == true_lsns(PAGES.records)
    assert file.flows() == true_flows(PAGES.records)


def take_step(file: File, step: str, where: int, length: int) -> None:
    place = file.intake.positions("agent").get(1, PAGES.place(0)) if step == "go on" else None
    if place is not None:
        at = PAGES.index(place)
        assert file.take(PAGES.read(at, at + where))
    elif step == "read":
        file.take(PAGES.read(where, where + length))
    elif step == "commit":
        file.commit()
    elif step == "crash":
        file.open(())
    elif step == "fail":  # what was handed over never reached the file
        file.intake.hand_over()
        file.open(("agent", "guard"))
    else:
        cut = Fault("truncated", 1, 0, 0, "read again", 1)
        file.take(Batch("agent", [], [cut], PAGES.place(0), PAGES.place(0)))
