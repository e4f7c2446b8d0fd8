"""A checkpoint that fails is logged, never raised, tried again later, and leaves nothing."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from memwatch.agent.checkpoints.checkpointer import Kind
from tests.agent.checkpoints.bench import Bench


def test_a_failure_is_logged_never_raised_and_tried_again_later(bench: Bench) -> None:
    bench.tiers["recent"].put("a", {"x": 1})
    assert bench.checkpoints.take("full").committed
    bench.files.fail_all("rename")
    bench.clock.advance_s(1000)
    outcome = bench.checkpoints.take("incremental")
    assert (outcome.committed, outcome.reason) == (False, "No space left on device")
    (abort,) = bench.records("checkpoint.abort")
    assert (abort.text("id"), abort.text("reason")) == (outcome.id, outcome.reason)
    assert bench.checkpoints.due() is None
    bench.clock.advance_s(11)
    assert bench.checkpoints.due() == "incremental"
    bench.files.heal()
    assert bench.checkpoints.take("incremental").committed


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_blob_that_cannot_be_written_aborts(bench: Bench, error: int) -> None:
    text = "".join(chr(33 + n % 90) for n in range(9000))
    bench.tiers["recent"].put("a", text)
    bench.tiers["recent"].put("a", text + "more")
    bench.blob_files.error = error
    bench.blob_files.fail_all("write")
    outcome = bench.checkpoints.take("full")
    assert not outcome.committed
    assert "cannot save a value" in outcome.reason
    bench.blob_files.heal()
    bench.blob_files.fail_all("fsync")
    assert not bench.checkpoints.take("full").committed
    assert bench.names() == []
    bench.blob_files.heal()
    assert bench.checkpoints.take("full").committed
    bench.check()


def test_a_full_disk_under_log_and_checkpoint_is_told_in_the_outcome(bench: Bench) -> None:
    bench.tiers["recent"].put("a", 1)
    bench.files.fail_all("write")
    outcome = bench.checkpoints.take("full")
    assert not outcome.committed
    assert "cannot append to the log" in outcome.reason
    bench.files.heal()
    assert bench.checkpoints.take("full").committed


def test_a_checkpoint_directory_that_is_removed_comes_back(bench: Bench) -> None:
    bench.tiers["recent"].put("a", "x" * 5000)
    bench.checkpoints.take("full")
    shutil.rmtree(bench.folder)
    bench.tiers["recent"].put("b", 1)
    outcome = bench.checkpoints.take("incremental")
    assert (outcome.committed, outcome.kind) == (True, "full")
    bench.check()


def test_blobs_that_are_removed_are_told_and_written_again_once_they_can_be(bench: Bench) -> None:
    bench.tiers["recent"].put("a", "x" * 5000)
    bench.checkpoints.take("full")
    shutil.rmtree(bench.path / "blobs")
    outcome = bench.checkpoints.take("full")
    assert not outcome.committed
    assert "cannot save a value in" in outcome.reason
    (bench.path / "blobs").mkdir()
    assert bench.checkpoints.take("full").committed
    bench.check()


def test_a_run_directory_that_is_removed_raises_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.tiers["recent"].put("a", 1)
    shutil.rmtree(bench.path)
    outcome = bench.checkpoints.take("full")
    assert not outcome.committed
    assert outcome.reason
    bench.path.mkdir()
    (bench.path / "wal").mkdir()
    bench.close()


@pytest.mark.parametrize("kind", ["full", "incremental"])
@pytest.mark.parametrize("short", [False, True])
def test_whichever_call_fails_the_committed_state_recovers(
    tmp_path: Path, kind: Kind, short: bool
) -> None:
    failed = 0
    for failing in range(34):
        bench = Bench(tmp_path / f"{failing}")
        bench.files.short = short
        recent = bench.tiers["recent"]
        recent.put("a", {"n": 1})
        bench.checkpoints.take("full")
        recent.put("b", {"n": 2})
        bench.files.fail_from({failing})
        failed += not bench.checkpoints.take(kind).committed
        bench.check()
        bench.files.heal()
        recent.put("c", {"n": 3})
        assert bench.checkpoints.take("incremental").committed
        bench.check()
        assert not [name for name in bench.names() if name.endswith(".draft")]
        bench.close()
    assert failed >= 6


def test_drafts_of_a_killed_checkpoint_are_swept(bench: Bench) -> None:
    bench.checkpoints.take("full")
    draft = bench.folder / ".full-00000000000000000009.draft"
    draft.mkdir()
    (draft / "recent.jsonl").write_text("half")
    name = ".delta-00000000000000000001-00000000000000000002.wal.draft"
    (bench.folder / name).write_text("half")
    bench.checkpoints.take("incremental")
    assert not [name for name in bench.names() if name.startswith(".")]
