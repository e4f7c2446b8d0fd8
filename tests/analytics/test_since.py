"""What happened since a viewer left: counts of both logs, in words, in whatever order."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.since import SinceFold
from memwatch.domain.control import SinceLeft
from memwatch.domain.record import Fault, Record
from tests.builders import T0_US, record

AGENT = [
    record(1, "experiment.end", -5, x=1, status="kept"),
    record(2, "run.begin", 1),
    record(3, "recovery", 1, lost=["a tail"]),
    record(4, "experiment.end", 2, x=2, status="kept", metrics={"best": 0.5}),
    record(5, "experiment.end", 3, x=3, status="crashed", metrics={"best": 0.412}),
    record(6, "checkpoint.commit", 4, id="c1"),
    record(7, "purge.end", 5, tier="workspace", cause="retention", freed_bytes=7),
    record(8, "purge.end", 6, tier="workspace", cause="engine", freed_bytes=400_000_000),
    record(9, "mode", 7, mode="paused"),
    record(10, "mode", 8, mode="running"),
]
GUARD = [
    record(1, "level", -1, level="warn"),
    record(2, "level", 1, level="warn", resource="memory"),
    record(3, "level", 2, level="intervene"),
    record(4, "level", 3, level="warn"),
    record(5, "level", 3, level="emergency", resource="tier:workspace"),
    record(6, "plan", 4, id="p1", state="proposed"),
    record(7, "plan", 4, id="p1", state="asked"),
    record(8, "plan", 5, id="p1", state="done"),
    record(9, "plan", 6, id="p2", state="asked", dry=True),
    record(10, "alert", 7, key="memory", state="raised"),
    record(11, "alert", 8, key="memory", state="cleared"),
    record(12, "alert", 9, key="memory", state="stands"),
    record(13, "gap", 9),
]


def folded(agent: list[Record], guard: list[Record]) -> SinceLeft:
    fold = SinceFold(T0_US)
    fold.take(agent)
    for one in guard:
        fold.take_guard(one)
    return fold.since()


def test_both_logs_are_counted_from_the_moment_on() -> None:
    found = folded(AGENT, GUARD)
    assert (found.highest, found.levels) == ("intervene", {"warn": 2, "intervene": 1})
    assert (found.experiments, found.best) == ({"kept": 1, "crashed": 1}, "0.412")
    assert (found.checkpoints, found.purges, found.freed_bytes) == (1, 1, 400_000_000)
    assert (found.plans, found.holds, found.alerts) == (1, 1, 1)
    assert (found.lost, found.starts) == (2, 1)
    assert found.lines == (
        "2 losses of records: see the log",
        "the agent began 1 time",
        "intervene 1×, warn 2×, 1 plan, held 1 time",
        "2 experiments (1 crashed, 1 kept), best 0.412",
        "1 checkpoint, 1 purge freed 400M",
        "1 alert",
    )


def test_a_quiet_night_is_said() -> None:
    found = folded([], [])
    assert found.lines == ("nothing of note happened",)
    assert (found.from_us, found.first, found.highest) == (T0_US, False, "normal")
    assert SinceFold(1, first=True).since().first


@given(st.randoms(use_true_random=False))
def test_the_order_of_segments_does_not_matter(chance: random.Random) -> None:
    agent = AGENT.copy()
    chance.shuffle(agent)
    assert folded(agent, GUARD) == folded(AGENT, GUARD)


@given(st.integers(0, len(AGENT)), st.integers(0, len(GUARD)))
def test_a_guard_that_begins_anew_counts_nothing_twice(agent_at: int, guard_at: int) -> None:
    fold = SinceFold(T0_US)
    fold.take(AGENT[:agent_at])
    for one in GUARD[:guard_at]:
        fold.take_guard(one)
    written = msgspec.json.decode(msgspec.json.encode(fold.known()))
    again = SinceFold.resume(written)
    assert again is not None
    again.take(AGENT)  # the agent's log is read from its begin
    for one in GUARD[guard_at:]:
        again.take_guard(one)
    assert again.since() == folded(AGENT, GUARD)


def test_faults_of_the_live_end_are_losses_a_torn_end_is_none() -> None:
    fold = SinceFold(T0_US)
    fold.take_faults([Fault("gap", 1, 0), Fault("torn", 1, 0), Fault("pruned", 1, 0)])
    assert fold.since().lost == 1
    fold.take([record(50, "note", 1)])
    again = SinceFold.resume(fold.known())
    assert again is not None
    again.take_faults([Fault("gap", 1, 0, lsn=50), Fault("gap", 1, 0, lsn=51)])
    assert again.since().lost == 2, "one of them was counted before"


def test_what_is_not_a_tally_is_not_taken_over() -> None:
    assert SinceFold.resume({"from_us": "soon"}) is None
    assert SinceFold.resume("kept") is None


def test_words_of_a_log_are_inert_and_bounded() -> None:
    fold = SinceFold(T0_US)
    for place in range(100):
        fold.take([record(place + 1, "experiment.end", 1, status=f"\x1b[31m{place}", best="\x07")])
    found = fold.since()
    assert len(found.experiments) <= 17
    assert sum(found.experiments.values()) == 100
    assert all(line.isprintable() for line in found.lines)


def test_checkpoints_of_another_program_are_counted_as_a_guard_tells_them() -> None:
    fold = SinceFold(T0_US)
    for told in (
        record(1, "store", -1, event="committed", id="c0"),
        record(2, "store", 1, event="committed", id="30 more", count=30),
        record(3, "store", 2, event="committed", id="c31"),
        record(4, "store", 3, event="deleted", id="c0"),
        record(5, "store", 4, event="incomplete", id="c32"),
    ):
        fold.take_guard(told)
    since = fold.since()
    assert since.checkpoints == 31
    assert since.lines == ("1 checkpoint left incomplete", "31 checkpoints")
