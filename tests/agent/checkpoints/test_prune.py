"""What is dropped, what stays, and that nothing goes unless what stays was read again (R7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.wal.segment import full_lsn
from tests.agent.checkpoints.bench import Bench, flip_a_bit
from tests.agent.reading import read_log


def take_both(bench: Bench, number: int) -> list[str]:
    taken = []
    for key, kind in (("a", "full"), ("b", "incremental")):
        bench.tiers["recent"].put(key, {"n": number})
        outcome = bench.checkpoints.take("full" if kind == "full" else "incremental")
        assert outcome.committed
        taken.append(outcome.id)
    return taken


def test_one_older_chain_stays_and_the_log_says_what_went(bench: Bench) -> None:
    taken = [name for number in range(4) for name in take_both(bench, number)]
    assert [name.removesuffix(".wal") for name in bench.names()] == sorted(taken[4:])
    records, faults = read_log(bench.path / "wal")
    assert faults == []
    kept_lsn = full_lsn(taken[4])
    assert kept_lsn is not None
    assert records[0].lsn == kept_lsn + 1
    spans = [(t.number("first_lsn"), t.number("last_lsn")) for t in bench.records("truncate")]
    assert spans[-1][1] == kept_lsn
    bench.check()
    flip_a_bit(bench.folder / taken[6] / "MANIFEST.json")
    assert bench.check().full == taken[4]


def test_full_ones_of_earlier_starts_count(tmp_path: Path) -> None:
    taken = []
    for number in range(4):
        bench = Bench(tmp_path)
        taken += take_both(bench, number)
        bench.check()
        bench.close()
    names = [name.removesuffix(".wal") for name in bench.names()]
    assert names == sorted(taken[4:])


@pytest.mark.parametrize("part", ["MANIFEST.json", "recent.jsonl"])
def test_nothing_goes_while_what_would_stay_is_damaged(bench: Bench, part: str) -> None:
    first, _, second, _ = take_both(bench, 0) + take_both(bench, 1)
    flip_a_bit(bench.folder / second / part)
    third = take_both(bench, 2)[0]
    assert {first, second, third} <= set(bench.names())
    flip_a_bit(bench.folder / third / part)
    assert bench.check().full == first
    fourth, fifth = take_both(bench, 3)[0], take_both(bench, 4)[0]
    fulls = [name for name in bench.names() if name.startswith("full")]
    assert fulls == [fourth, fifth]
    bench.check()


def test_one_that_was_never_committed_counts_for_nothing(bench: Bench) -> None:
    first = take_both(bench, 0)[0]
    stray = bench.folder / "full-00000000000000000007"
    stray.mkdir()
    for part in (bench.folder / first).iterdir():
        (stray / part.name).write_bytes(part.read_bytes())
    second = take_both(bench, 1)[0]
    assert {first, second} <= set(bench.names())
    third = take_both(bench, 2)[0]
    assert [name for name in bench.names() if name.startswith("full")] == [second, third]
    bench.check()


def test_a_prune_that_fails_costs_no_checkpoint_and_is_made_up_for(bench: Bench) -> None:
    take_both(bench, 0)
    take_both(bench, 1)
    bench.files.fail_all("unlink")
    third = take_both(bench, 2)
    assert len([name for name in bench.names() if name.startswith("full")]) == 3
    (error, *_) = bench.records("error")
    assert error.text("message") == "nothing older was dropped: [Errno 28] No space left on device"
    bench.files.heal()
    bench.checkpoints.take("incremental")
    assert len([name for name in bench.names() if name.startswith("full")]) == 2
    assert third[0] in bench.names()
    bench.check()


def test_blobs_go_with_the_last_chain_that_refers_to_them(bench: Bench) -> None:
    entry = bench.tiers["recent"].put("a", "x" * 5000)
    assert entry.blob is not None
    blob = bench.path / "blobs" / entry.blob.sha256
    bench.checkpoints.take("full")
    bench.tiers["recent"].put("a", 1)
    bench.checkpoints.take("full")
    assert blob.exists(), "the older chain needs it"
    bench.checkpoints.take("full")
    assert not blob.exists()
