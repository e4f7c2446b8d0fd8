"""What the agent really wrote, seen by a guard: amounts are those on disk, damage is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memwatch.config.schema import Lights
from memwatch.domain.checkpoints import Checkpoint
from memwatch.domain.policy import Cadence
from memwatch.ingest.checkpoint_scan import scan_checkpoints
from memwatch.ingest.tailer import LogTailer
from memwatch.runtime.views.checkpoint_view import CheckpointView
from memwatch.runtime.views.ring import Ring
from tests.agent.checkpoints.bench import Bench
from tests.builders import profile
from tests.runtime.watched import Watched


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "run")
    yield made
    made.close()


def seen(bench: Bench) -> CheckpointView:
    """Return a view of all that the agent has logged and of what lies on disk now."""
    ring = Ring(profile(), bench.clock, "boot")
    tailer = LogTailer(bench.path / "wal", "agent")
    try:
        while (batches := tailer.poll()) or tailer.more:
            for batch in batches:
                ring.take(batch)
        while (older := tailer.backfill()) is not None:
            ring.take(older)
    finally:
        tailer.close()
    found = scan_checkpoints(bench.path, ring.state.last_lsn)
    assert found is not None
    ring.take_checkpoints(found)
    return CheckpointView(ring, Cadence(), Lights())


def size_of(folder: Path) -> int:
    return sum(part.stat().st_size for part in folder.rglob("*") if part.is_file())


def fill(bench: Bench, first: int, count: int, length: int = 200) -> None:
    for number in range(first, first + count):
        bench.tiers["recent"].put(f"k{number}", f"{number} " + "v" * length)


def rows(bench: Bench) -> list[Checkpoint]:
    return list(seen(bench).rows(500))


def test_the_work_of_a_recovery_is_what_lies_there(bench: Bench) -> None:
    fill(bench, 0, 40)
    fill(bench, 100, 3, length=50_000)  # persisted values
    bench.checkpoints.take("full")
    for number in range(3):
        fill(bench, 200 + 10 * number, 10)
        bench.checkpoints.take("incremental")
    fill(bench, 300, 7)
    work = seen(bench).work()
    (full,) = bench.folder.glob("full-*")
    deltas = list(bench.folder.glob("delta-*"))
    assert (work.full_bytes, work.full_entries) == (size_of(full), 43)
    assert (work.blob_bytes, work.blob_count) == (size_of(bench.path / "blobs"), 3)
    assert work.delta_bytes == sum(delta.stat().st_size for delta in deltas)
    assert (work.delta_count, work.delta_entries) == (3, 30)
    assert 7 <= work.tail_records <= 9, "the puts, and the words of the checkpoint itself"
    assert 0 < work.tail_bytes < work.log_bytes <= size_of(bench.path / "wal")
    terms = {term.name: term for term in bench.recover()[1].terms}
    assert (terms["load"].bytes, terms["load"].records) == (work.full_bytes, work.full_entries)
    assert (terms["blobs"].bytes, terms["blobs"].records) == (work.blob_bytes, work.blob_count)
    # Bytes of the log are shared out evenly among its records.
    assert work.read_bytes == pytest.approx(terms["read"].bytes, rel=0.05)
    assert terms["replay"].records == work.replayed


def test_a_row_says_what_its_files_and_its_state_hold(bench: Bench) -> None:
    fill(bench, 0, 40)
    fill(bench, 100, 2, length=50_000)
    bench.checkpoints.take("full")
    (row,) = rows(bench)
    (full,) = bench.folder.glob("full-*")
    assert row.file_bytes == size_of(full)
    assert row.bytes == size_of(full) + size_of(bench.path / "blobs")
    assert row.state_bytes == sum(entry.bytes for entry in bench.tiers["recent"].entries())


def test_one_for_the_sake_of_an_experiment_is_said_as_such(bench: Bench) -> None:
    fill(bench, 0, 3)
    bench.checkpoints.take("full")
    fill(bench, 3, 3)
    bench.checkpoints.take("experiment")
    assert [row.kind for row in rows(bench)] == ["experiment", "full"]
    assert seen(bench).work().delta_count == 1, "it is an increment of the chain as any other"


@pytest.mark.parametrize("harm", ["cut", "gone", "no manifest"])
def test_a_damaged_full_one_is_said_and_the_older_chain_is_gone_by(bench: Bench, harm: str) -> None:
    fill(bench, 0, 20)
    bench.checkpoints.take("full")
    fill(bench, 20, 20)
    bench.checkpoints.take("full")
    newest, older = sorted(bench.folder.glob("full-*"), reverse=True)
    (part,) = newest.glob("recent.*")
    if harm == "cut":
        part.write_bytes(part.read_bytes()[:-1])
    elif harm == "gone":
        part.unlink()
    else:
        (newest / "MANIFEST.json").unlink()
    view = seen(bench)
    assert [(row.id, row.state) for row in view.rows(9)] == [
        (newest.name, "damaged"),
        (older.name, "committed"),
    ]
    assert view.rows(1)[0].reason != ""
    assert view.work().full_bytes == size_of(older)


def test_a_damaged_increment_ends_the_chain_before_it(bench: Bench) -> None:
    fill(bench, 0, 20)
    bench.checkpoints.take("full")
    for number in range(3):
        fill(bench, 100 * (number + 1), 5)
        bench.checkpoints.take("incremental")
    first, second, _ = sorted(bench.folder.glob("delta-*"))
    second.write_bytes(second.read_bytes()[:-20])
    view = seen(bench)
    states = {row.id: row.state for row in view.rows(9)}
    assert states[second.stem] == "damaged"
    assert list(states.values()).count("damaged") == 1
    work = view.work()
    assert (work.delta_count, work.delta_bytes) == (1, first.stat().st_size)


def test_a_damaged_full_one_of_the_older_chain_is_said_as_well(bench: Bench) -> None:
    fill(bench, 0, 20)
    bench.checkpoints.take("full")
    fill(bench, 20, 20)
    bench.checkpoints.take("full")
    older = min(bench.folder.glob("full-*"))
    (part,) = older.glob("recent.*")
    part.write_bytes(b"")
    view = seen(bench)
    assert [row.state for row in view.rows(9)] == ["committed", "damaged"]
    assert view.chain().missing == (), "nobody needs it now"


def test_the_next_full_one_and_the_room_on_disk_count_persisted_values(bench: Bench) -> None:
    fill(bench, 0, 40)
    fill(bench, 100, 3, length=50_000)
    bench.checkpoints.take("full")
    view = seen(bench)
    run = Watched().snapshot().run
    found = view.checkpoints(run, bench.clock.boot_us())
    (full,) = bench.folder.glob("full-*")
    whole = size_of(full) + size_of(bench.path / "blobs")
    assert found.last is not None
    assert found.last.bytes == found.next_bytes == whole
    assert found.stats.total_bytes == whole
