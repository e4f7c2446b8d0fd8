"""A start on a directory with a past, each of its calls failing once: whole, or one sentence."""

from __future__ import annotations

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from memwatch.agent import Cadence, Run, RunOptions, recover
from memwatch.domain.errors import LogError, ReadOnlyError
from tests.faults.failing_files import FailingFiles

OPTIONS = RunOptions(agent="a", durability="os", cadence=Cadence(incremental_experiments=1))


def a_past(path: Path) -> None:
    """Leave a full checkpoint, an increment, blobs, and an experiment that a crash cut short."""
    with Run.open(path, OPTIONS) as run:
        for number in range(3):
            with run.experiment("one", "p"):
                run.tiers["verified"].put(f"key/{number}", str(number) * 9_000)
            if number < 2:
                run.checkpoints.take("incremental")
        run.journal.log(run.record, "experiment.begin", {"x": 9, "phase": "p"})


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_start_whose_disk_fails_opens_whole_or_says_one_sentence_and_harms_nothing(
    tmp_path: Path, error: int
) -> None:
    a_past(tmp_path / "past")
    before = recover(tmp_path / "past")[0].hashes()
    number, refused = 0, list[str]()
    while True:
        path, files = tmp_path / f"run-{number}", FailingFiles()
        shutil.copytree(tmp_path / "past", path)
        files.error = error
        files.fail_from({number})
        acknowledged = False
        try:
            run = Run.open(path, OPTIONS, files=files)
        except LogError as failure:
            refused.append(str(failure).replace(str(path), "HERE"))
            assert recover(path)[0].hashes() == before
        else:
            with suppress(LogError, ReadOnlyError):
                run.tiers["verified"].put("new", 1)
                acknowledged = True
            with suppress(LogError, ReadOnlyError):
                run.close()
        state, report = recover(path)
        assert not report.lossy
        assert "new" in state["verified"] or not acknowledged
        with Run.open(path, OPTIONS) as run:
            assert all(f"key/{n}" in run.tiers["verified"] for n in range(3))
        assert not recover(path)[1].lossy
        shutil.rmtree(path)
        if len(files.calls) <= number:
            break
        number += 1
    assert number > 20
    assert len(refused) > 5
    assert all("HERE" in sentence for sentence in refused)
