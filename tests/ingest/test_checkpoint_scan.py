"""A checkpoint counts when all of it is there; no look follows what a log or a link names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from memwatch.ingest.checkpoint_scan import OnDisk, scan_checkpoints
from memwatch.wal.segment import CHECKPOINT_DIR, MANIFEST_FILE, full_lsn
from tests.agent.checkpoints.bench import Bench


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Return a run with a full checkpoint and an incremental one, as the agent writes them."""
    bench = Bench(tmp_path)
    bench.tiers["recent"].put("a", "value")
    assert bench.checkpoints.take("full").committed
    bench.tiers["recent"].put("b", "value")
    assert bench.checkpoints.take("incremental").committed
    bench.close()
    return tmp_path


def full_of(run_dir: Path) -> Path:
    (full,) = (run_dir / CHECKPOINT_DIR).glob("full-*")
    return full


def look(run_dir: Path) -> OnDisk:
    found = scan_checkpoints(run_dir, 99)
    assert found is not None
    assert found.known_lsn == 99
    return found


def whole(found: OnDisk) -> set[int]:
    return {lsn for lsn, full in found.fulls.items() if not full.wrong}


def test_what_the_agent_wrote_is_found(run_dir: Path) -> None:
    found = look(run_dir)
    assert whole(found) == {full_lsn(full_of(run_dir).name)}
    assert len(found.deltas) == 1


def test_a_full_that_was_removed_is_missing(run_dir: Path) -> None:
    shutil.rmtree(full_of(run_dir))
    found = look(run_dir)
    assert found.fulls == {}
    assert len(found.deltas) == 1


@pytest.mark.parametrize("name", [MANIFEST_FILE, "recent.jsonl"])
def test_a_full_without_all_of_its_files_is_missing(run_dir: Path, name: str) -> None:
    (full_of(run_dir) / name).unlink()
    assert whole(look(run_dir)) == set()


def test_a_full_with_a_short_or_damaged_file_is_missing(run_dir: Path) -> None:
    with (full_of(run_dir) / "recent.jsonl").open("ab") as file:
        file.write(b"x")
    assert whole(look(run_dir)) == set()
    (full_of(run_dir) / MANIFEST_FILE).write_bytes(b"{")
    assert whole(look(run_dir)) == set()


def test_links_and_pipes_are_no_checkpoints(run_dir: Path, tmp_path: Path) -> None:
    full = full_of(run_dir)
    outside = tmp_path / "outside"
    shutil.move(full, outside)
    full.symlink_to(outside, target_is_directory=True)
    assert whole(look(run_dir)) == set(), "never out of the run directory"
    full.unlink()
    shutil.move(outside, full)
    (full / MANIFEST_FILE).rename(full / "kept")
    (full / MANIFEST_FILE).symlink_to("kept")
    assert whole(look(run_dir)) == set()
    (full / MANIFEST_FILE).unlink()
    os.mkfifo(full / MANIFEST_FILE)
    assert whole(look(run_dir)) == set(), "nor does a pipe hold us up"


def test_a_manifest_cannot_name_files_elsewhere(run_dir: Path) -> None:
    full = full_of(run_dir)
    (full / "recent.jsonl").rename(full.parent / "recent.jsonl")
    text = (full / MANIFEST_FILE).read_text()
    (full / MANIFEST_FILE).write_text(text.replace("recent.jsonl", "../recent.jsonl"))
    assert whole(look(run_dir)) == set()


def test_a_run_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert look(tmp_path) == OnDisk(99)


def test_what_the_manifest_tells_and_what_lies_there_are_counted(run_dir: Path) -> None:
    found, full = look(run_dir), full_of(run_dir)
    (seen,) = found.fulls.values()
    own = sum(part.stat().st_size for part in full.iterdir())
    (delta,) = (run_dir / CHECKPOINT_DIR).glob("delta-*")
    assert (seen.bytes, seen.entries, seen.wrong) == (own, 1, "")
    assert seen.state_bytes > 0
    assert list(found.deltas.values()) == [delta.stat().st_size]
    assert found.bytes == own + delta.stat().st_size


def test_what_is_wrong_is_said(run_dir: Path) -> None:
    full = full_of(run_dir)
    size = (full / "recent.jsonl").stat().st_size
    (full / "recent.jsonl").write_bytes(b"")
    assert [one.wrong for one in look(run_dir).fulls.values()] == [
        f"recent.jsonl has 0 of {size} B"
    ]
    (full / "recent.jsonl").unlink()
    assert [one.wrong for one in look(run_dir).fulls.values()] == ["recent.jsonl is gone"]
    (full / MANIFEST_FILE).unlink()
    (seen,) = look(run_dir).fulls.values()
    assert seen.wrong == "its manifest is gone or cannot be read"


def test_values_are_not_counted_again_while_none_came_or_went(run_dir: Path) -> None:
    (run_dir / "blobs").mkdir(exist_ok=True)
    (run_dir / "blobs" / "a").write_bytes(b"12345")
    before = look(run_dir)
    assert (before.blobs.count, before.blobs.bytes) == (1, 5)
    again = scan_checkpoints(run_dir, 100, before=before)
    assert again is not None
    assert again.blobs is before.blobs
    assert again.known_lsn == 100
