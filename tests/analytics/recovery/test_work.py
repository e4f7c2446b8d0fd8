"""What a recovery has to do, now and right after a checkpoint."""

from __future__ import annotations

from memwatch.analytics.recovery.costs import amounts
from memwatch.analytics.recovery.work import Work, work_of
from tests.analytics.recovery.builders import machine, recovered, work


def test_a_recovery_tells_its_work_by_its_terms() -> None:
    done = work(10, 4)
    told = work_of(recovered(done, machine()).terms)
    for name in ("load", "blobs", "read"):
        assert amounts(name, told) == amounts(name, done), name
    assert told.replayed == done.replayed
    assert work_of(()) == Work()


def test_after_a_full_checkpoint_its_chain_is_gone() -> None:
    now = Work(full_bytes=900, full_entries=9, delta_bytes=50, log_bytes=400, segment_bytes=300,
               tail_bytes=120, tail_records=30, blob_bytes=70, blob_count=1)  # fmt: skip
    after = now.after("full")
    assert (after.full_bytes, after.full_entries, after.blob_bytes) == (900, 9, 70)
    assert (after.delta_bytes, after.tail_bytes, after.replayed) == (0, 0, 0)
    assert after.read_bytes == 300, "the segment that it ends is read once more"


def test_the_first_full_checkpoint_is_smaller_than_the_log_that_it_replaces() -> None:
    after = Work(log_bytes=1000, tail_bytes=1000, tail_records=10).after("full")
    assert 0 < after.full_bytes < 1000


def test_an_increment_takes_the_place_of_the_tail() -> None:
    now = Work(full_bytes=900, delta_bytes=50, delta_entries=5, delta_count=1, log_bytes=400,
               segment_bytes=400, tail_bytes=120, tail_records=30)  # fmt: skip
    after = now.after("incremental")
    assert (after.tail_bytes, after.tail_records, after.delta_count) == (0, 0, 2)
    assert now.delta_bytes < after.delta_bytes < now.delta_bytes + now.tail_bytes
    assert after.replayed < now.replayed
    assert after.full_bytes == 900


def test_entries_that_nobody_counted_go_by_size() -> None:
    assert Work(full_bytes=3_000_000).entries > 100
    assert Work(full_bytes=3_000_000, full_entries=7).entries == 7
