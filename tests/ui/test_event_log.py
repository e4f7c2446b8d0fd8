"""Events come in pieces, and are shown without a hole."""

from __future__ import annotations

from msgspec.structs import replace

from memwatch.domain.snapshot import Event, Snapshot
from memwatch.ui.event_log import KEPT, EventLog, with_answer, with_snapshot
from tests.ui.harness import snapshot_of


def event(seq: int) -> Event:
    return Event(seq=seq, t_us=seq, kind="note", text=str(seq))


def snapshot(*seqs: int, last: int | None = None) -> Snapshot:
    events = tuple(event(seq) for seq in seqs)
    newest = last if last is not None else max(seqs, default=0)
    return replace(snapshot_of(), events=events, event_seq=newest)


def seqs(log: EventLog) -> list[int]:
    return [one.seq for one in log.events]


def test_the_first_events_of_a_run_need_no_question() -> None:
    log = with_snapshot(EventLog(), snapshot(1, 2, 3))
    assert seqs(log) == [1, 2, 3]
    assert log.complete


def test_a_viewer_that_comes_late_asks_once() -> None:
    log = with_snapshot(EventLog(), snapshot(90, 91, 92))
    assert not log.complete
    log = with_answer(log, [event(seq) for seq in range(1, 92)], "")
    assert log.complete
    assert seqs(log) == list(range(1, 93))
    assert with_snapshot(log, snapshot(91, 92, 93)).complete


def test_a_burst_that_the_snapshot_does_not_hold_is_asked_for() -> None:
    log = with_answer(EventLog(), [event(seq) for seq in range(1, 10)], "")
    log = with_snapshot(log, snapshot(30, 31))
    assert not log.complete


def test_a_guard_that_counts_anew_starts_a_new_log() -> None:
    log = with_answer(EventLog(), [event(seq) for seq in range(1, 50)], "")
    log = with_snapshot(log, snapshot(1, 2))
    assert seqs(log) == [1, 2]


def test_no_more_is_kept_than_can_be_looked_at() -> None:
    log = with_answer(EventLog(), [event(seq) for seq in range(1, 2 * KEPT)], "")
    assert len(log.events) == KEPT
    assert log.last_seq == 2 * KEPT - 1
    assert with_snapshot(log, snapshot(2 * KEPT - 1)) is log


def test_an_event_of_the_snapshot_is_not_lost_to_a_late_answer() -> None:
    log = with_snapshot(EventLog(), snapshot(50, 51))
    assert seqs(with_answer(log, [event(49), event(50)], "")) == [49, 50, 51]


def test_two_guards_number_on_their_own_and_are_not_mixed() -> None:
    def of(start_id: str, *numbers: int) -> Snapshot:
        found = snapshot(*numbers)
        return replace(found, guard=replace(found.guard, start_id=start_id))

    log = with_snapshot(EventLog(), of("first", 1, 2, 3))
    log = with_snapshot(log, of("second", 3, 4))
    assert seqs(log) == [3, 4]
    assert not log.complete, "the new guard is asked for what is older"
    assert with_answer(log, [event(1)], "first") == log, "a late answer of the old one"
    assert seqs(with_answer(log, [event(1), event(2)], "second")) == [1, 2, 3, 4]
