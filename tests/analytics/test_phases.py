"""A mark of a phase stands where the phase really changed, and nowhere else."""

from __future__ import annotations

from memwatch.analytics.phases import PhaseChanges
from memwatch.domain.record import Batch, Record
from memwatch.runtime.views.ring import Ring
from memwatch.store.rows import RowFold
from tests.builders import batch, record
from tests.runtime.watched import Watched

PHASES = ["exploration", "exploration", "accumulation", "", "accumulation", "verification"]


def begins(first: int = 1) -> list[Record]:
    return [
        record(first + index, "experiment.begin", index, x=index, title="t", phase=phase)
        for index, phase in enumerate(PHASES)
    ]


CHANGES = ["phase accumulation (was exploration)", "phase verification (was accumulation)"]


def told(ring: Ring) -> list[str]:
    return [event.text for event in ring.events(0, 100) if event.kind == "phase"]


def test_a_change_is_told_once_and_a_first_phase_is_none() -> None:
    changes = PhaseChanges()
    events = [event for one in begins() if (event := changes.event_of(one))]
    assert [event.text for event in events] == CHANGES
    assert events[0].t_us == begins()[2].t_us


def test_numbers_that_come_again_tell_no_change() -> None:
    changes = PhaseChanges()
    assert changes.event_of(record(9, "experiment.begin", phase="verification")) is None
    assert changes.event_of(record(5, "experiment.begin", phase="exploration")) is None


def test_the_live_log_tells_changes_from_batch_to_batch() -> None:
    ring = Watched().ring
    for one in begins():
        ring.take(batch(one))
    assert told(ring) == CHANGES


def test_older_segments_that_are_read_backwards_invent_none() -> None:
    ring = Watched().ring
    ring.take(batch(record(50, "experiment.begin", 50, phase="exploration")))
    for lsn, phase in ((40, "verification"), (30, "exploration")):
        live = batch(record(lsn, "experiment.begin", lsn, phase=phase))
        older = Batch("agent", live.records, [], live.start, live.end, live=False)
        ring.take(older, news=True)
    assert told(ring) == []
    ring.take(batch(record(51, "experiment.begin", 51, phase="accumulation")))
    assert told(ring) == ["phase accumulation (was exploration)"]


def test_the_history_holds_the_changes_within_a_segment() -> None:
    fold = RowFold()
    fold.add("agent", 1, begins()[:2], {})
    fold.add("agent", 100, begins(100)[:1], {})
    fold.take()
    fold.add("agent", 1, begins()[2:], {})
    fold.add("agent", 200, [record(200, "experiment.begin", 9, phase="verification")], {})
    rows = fold.take().tables()["event"]
    assert [row[-1] for row in rows if row[5] == "phase"] == CHANGES
