"""The journal: what of files and calls stays, and that a checkpoint chain gives it again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memwatch.agent.journal import CALLS_OUTSIDE, Journal, Line

Record = tuple[str, dict[str, Any]]


def journal_of(*records: Record) -> Journal:
    journal = Journal()
    for lsn, (kind, members) in enumerate(records, 1):
        journal.take(lsn, kind, members)
    return journal


def began(number: int) -> Record:
    return "experiment.begin", {"x": number, "title": "t", "phase": "exploration"}


def ended(number: int, status: str) -> Record:
    return "experiment.end", {"x": number, "status": status}


def called(name: str, number: int | None, state: str = "done", **more: Any) -> Record:
    where = {} if number is None else {"x": number}
    return "call", {"id": name, "service": "s", "request": "r", "state": state, **where, **more}


def names(journal: Journal) -> list[str]:
    return [str(call["id"]) for call in journal.calls()]


@pytest.mark.parametrize(
    ("status", "left"),
    [("done", []), ("kept", []), ("discarded", []), ("failed", ["a"]), ("crashed", ["a"])],
)
def test_a_settled_experiment_takes_its_calls_along(status: str, left: list[str]) -> None:
    journal = journal_of(began(1), called("a", 1, "begun"), called("a", 1), ended(1, status))
    assert names(journal) == left
    assert (journal.experiments, journal.open, journal.phase) == (1, None, "exploration")


def test_calls_of_a_given_up_experiment_go_when_its_start_goes_on() -> None:
    failed: tuple[Record, ...] = (began(1), called("a", 1), ended(1, "failed"))
    assert names(journal_of(*failed, began(2))) == []
    assert names(journal_of(*failed, ("run.begin", {}), began(2))) == ["a"]


def test_a_crashed_experiment_is_answered_for_until_one_succeeds() -> None:
    crashed: tuple[Record, ...] = (began(1), called("a", 1), ("run.begin", {}), ended(1, "crashed"))
    assert names(journal_of(*crashed, began(2), ended(2, "failed"), began(3))) == ["a"]
    assert names(journal_of(*crashed, began(2), ended(2, "kept"))) == []


def test_a_repeated_call_stands_for_the_first_but_only_while_it_stands_itself() -> None:
    crashed: tuple[Record, ...] = (began(1), called("a", 1), ("run.begin", {}), ended(1, "crashed"))
    again = (*crashed, began(2), called("b", 2, again="a"))
    assert names(journal_of(*again)) == ["b"]
    assert names(journal_of(*again, ended(2, "failed"), began(3))) == ["a"]


def test_calls_outside_of_experiments_stay_until_the_run_is_done() -> None:
    outside: tuple[Record, ...] = (called("a", None), began(1), ended(1, "done"), ("run.begin", {}))
    assert names(journal_of(*outside)) == ["a"]
    assert names(journal_of(*outside, called("b", None, again="a"))) == ["b"]
    assert names(journal_of(*outside, ("run.end", {"status": "stopped"}))) == ["a"]
    assert names(journal_of(*outside, ("run.end", {"status": "done"}))) == []


def test_settled_calls_outside_are_bounded_those_in_doubt_are_not() -> None:
    doubtful = called("doubt", None, "begun")
    journal = journal_of(doubtful, *(called(f"{n}", None) for n in range(CALLS_OUTSIDE + 5)))
    assert names(journal) == ["doubt", *(f"{n}" for n in range(5, CALLS_OUTSIDE + 5))]


def test_files_newest_record_and_what_it_no_longer_refers_to() -> None:
    journal = Journal()
    wrote = {"path": "a", "op": "write", "hash": "1", "bytes": 1, "blob": "1"}
    assert journal.take(1, "file", wrote) == []
    assert journal.take(1, "file", wrote) == [], "taken twice, once"
    assert journal.blobs() == ["1"]
    assert journal.take(2, "file", {**wrote, "blob": "2", "t": 7, "lsn": 2}) == ["1"]
    assert journal.files() == {"a": {**wrote, "blob": "2"}}
    assert journal.take(3, "file", {"path": "a", "op": "delete"}) == ["2"]
    assert (journal.files(), journal.blobs(), journal.lines()) == ({}, [], [])


RECORDS = st.lists(
    st.one_of(
        st.tuples(st.just("begin")),
        st.tuples(st.just("end"), st.sampled_from(["done", "failed", "aborted", "crashed"])),
        st.tuples(st.just("start")),
        st.tuples(st.just("call"), st.integers(0, 3), st.sampled_from(["begun", "done"])),
        st.tuples(st.just("file"), st.integers(0, 2), st.sampled_from(["write", "delete"])),
        st.tuples(st.just("full")),
        st.tuples(st.just("delta")),
    ),
    max_size=40,
)


class Past:
    """A live journal that is told of one step of a plan after the other."""

    def __init__(self) -> None:
        self.live = Journal()
        self.chain: list[list[Line]] = []
        self.lsn = self.position = self.number = 0

    def step(self, what: str, *details: Any) -> None:
        if what == "full" or (what == "delta" and self.chain):
            self.chain = (
                [self.live.lines()]
                if what == "full"
                else [*self.chain, self.live.lines(self.position)]
            )
            self.position = self.lsn
        elif (record := self.record(what, *details)) is not None:
            self.lsn += 1
            self.live.take(self.lsn, *record)

    def record(self, what: str, *details: Any) -> Record | None:
        running = self.live.open is not None
        if what == "begin" and not running:
            self.number += 1
            return began(self.number)
        if what == "end" and running:
            return ended(self.number, details[0])
        if what == "call":
            return called(f"{details[0]}", self.number if running else None, details[1])
        if what == "file":
            blob = {"blob": f"{self.lsn}"} if details[1] == "write" else {}
            return "file", {"path": f"{details[0]}", "op": details[1], **blob}
        return ("run.begin", {}) if what == "start" else None

    def recovered(self) -> Journal:
        journal = Journal()
        for lines in [*self.chain, self.live.lines(self.position)]:
            for line in lines:
                journal.take(*line)
        return journal


def state(journal: Journal) -> tuple[Any, ...]:
    newest = (journal.experiments, journal.open, journal.phase)
    return journal.calls(), journal.files(), sorted(journal.blobs()), newest


@given(RECORDS)
def test_full_and_deltas_give_the_state_that_the_records_gave(plan: list[tuple[Any, ...]]) -> None:
    past = Past()
    for step in plan:
        past.step(*step)
    again = past.recovered()
    assert state(again) == state(past.live)
    for journal in (past.live, again):  # and what follows must come out the same as well
        journal.take(past.lsn + 1, *began(past.number + 1))
    assert state(again) == state(past.live)
