"""A full checkpoint outlives hundreds of increments, in whatever order the log is read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memwatch.analytics.checkpoints.fold import CheckpointFold
from memwatch.analytics.run_state import RunState
from memwatch.analytics.tally import Sums, Tally
from memwatch.domain.record import Record
from tests.builders import record


def commit(lsn: int, kind: str = "incremental", size: int = 10, **members: Any) -> Record:
    told = {"id": f"c{lsn}", "kind": kind, "bytes": size, "entries": 2, **members}
    return record(lsn, "checkpoint.commit", lsn, **told)


def folded(records: list[Record]) -> CheckpointFold:
    state = RunState()
    state.fold(records)
    return state.saved


def test_a_full_checkpoint_is_still_known_after_500_increments_and_experiments() -> None:
    log = [commit(1, "full", size=1000)]
    for lsn in range(2, 1002, 2):
        log += [commit(lsn), record(lsn + 1, "experiment.end", x=lsn, status="kept")]
    saved = folded(log)
    assert [full.checkpoint.bytes for full in saved.fulls] == [1000]
    assert saved.deltas.between(1) == Sums(500, 5000, 1000, 5000)
    assert saved.experiments_since(1) == 500
    assert saved.experiments_since(900) == 51
    assert len(saved.known) == 501
    assert len(folded([commit(lsn) for lsn in range(1, 700)]).known) == 512


def test_a_commit_counts_by_the_last_record_it_holds() -> None:
    saved = folded([commit(9, "full", last_lsn=5)])
    assert saved.covered_lsn == 5
    assert folded([commit(9)]).covered_lsn == 9, "one that names none holds what came before it"
    assert folded([commit(9, last_lsn=10**9)]).covered_lsn == 9, "none holds what comes later"


def mixed() -> list[Record]:
    log: list[Record] = []
    for lsn in range(1, 60):
        kind = "full" if lsn % 13 == 0 else "incremental"
        ended = record(lsn, "experiment.end", lsn, x=lsn, status="aborted" if lsn % 5 else "kept")
        log.append(ended if lsn % 3 else commit(lsn, kind, size=lsn, last_lsn=lsn - 1))
    return log


@given(st.lists(st.integers(1, 58), unique=True, max_size=6), st.randoms())
def test_any_order_of_segments_gives_the_same_chain(cuts: list[int], dice: Any) -> None:
    edges = [0, *sorted(cuts), 59]
    pieces = [mixed()[low:high] for low, high in pairwise(edges)]
    dice.shuffle(pieces)
    whole, shuffled = folded(mixed()), folded([one for piece in pieces for one in piece])
    full = whole.fulls[-1].at.lsn
    assert shuffled.fulls == whole.fulls
    assert list(shuffled.known.values()) == list(whole.known.values())
    assert list(shuffled.at.values()) == sorted(shuffled.at.values())
    assert shuffled.newest == whole.newest
    assert shuffled.covered_lsn == whole.covered_lsn
    assert shuffled.deltas.between(full) == whole.deltas.between(full)
    assert shuffled.experiments_since(full) == whole.experiments_since(full)


def test_a_kind_that_only_the_beginning_names_is_believed_when_it_is_read() -> None:
    saved = CheckpointFold()
    saved.take(record(9, "checkpoint.commit", id="a", bytes=7))
    assert saved.deltas.between(0) == Sums(1, 7, 0, 7)
    saved.take(record(8, "checkpoint.begin", id="a", kind="full"))
    assert [full.checkpoint.id for full in saved.fulls] == ["a"]
    assert saved.deltas.between(0) == Sums()


def test_one_taken_for_an_experiment_is_an_increment_of_that_name() -> None:
    saved = folded([commit(1, "full"), commit(2, "experiment", 7), commit(3, "\x1b[2J", 5)])
    assert [one.kind for one in saved.known.values()] == ["full", "experiment", "incremental"]
    sums = saved.deltas.between(1)
    assert (sums.count, sums.bytes, sums.entries) == (2, 12, 4)


def test_a_tally_of_very_many_is_bounded_and_loses_nothing() -> None:
    tally = Tally()
    for lsn in range(1, 5001):
        tally.add(lsn, Sums(1, 2, 3))
    assert len(tally._lsns) == 4096
    assert tally.between(0) == Sums(5000, 10_000, 15_000)
    assert tally.between(4000, 4011) == Sums(10, 20, 30)
    tally.forget(4990)
    assert tally.between(0).count == 10


def test_the_best_that_an_experiment_measured_is_known() -> None:
    state = RunState()
    state.fold([record(1, "experiment.end", x=1, metrics={"checked": 5, "best": 6.12345})])
    assert state.best == "6.123"
    state.fold([record(2, "experiment.end", x=2, metrics={"ratio": 1.0})])
    state.fold([record(3, "experiment.end", x=2, metrics={"best": None})])
    assert state.best == "6.123"


def test_a_new_start_knows_nothing_of_the_tiers_and_the_work_of_the_former_one() -> None:
    former = [
        record(1, "run.begin", start_id="a"),
        record(2, "experiment.begin", x=1, title="t", phase="exploration"),
        record(3, "sample", tiers={"recent": {"bytes": 5}}),
    ]
    begin = [record(4, "run.begin", start_id="b")]
    for pieces in ([former, begin], [begin, former]):
        state = RunState()
        for piece in pieces:
            state.fold(piece)
        assert state.tiers == {}
        assert (state.experiment, state.experiment_title, state.phase) == (None, "", None)
