"""A run whose log is gone: its checkpoints are all there is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memwatch.agent.recovery.recover import recover
from tests.agent.recovery.building import Builder, a_run
from tests.agent.recovery.looking import says


@pytest.fixture
def run(tmp_path: Path) -> Builder:
    return a_run(tmp_path / "run")


def test_without_a_log_the_newest_full_checkpoint_that_is_whole_is_all_there_is(
    run: Builder,
) -> None:
    shutil.rmtree(run.path / "wal")
    newest, older = sorted((run.path / "checkpoints").glob("full-*"), reverse=True)
    report = recover(run.path)[1]
    assert (report.full, report.lossy) == (newest.name, True)
    assert report.last_lsn == int(newest.name.removeprefix("full-"))
    assert says(report.lost, "the log is gone", newest.name, "all that came after it is lost")
    (newest / "MANIFEST.json").unlink()
    assert recover(run.path)[1].full == older.name
    shutil.rmtree(run.path / "checkpoints")
    (run.path / "checkpoints/full-1").mkdir(parents=True)
    report = recover(run.path)[1]
    assert (report.full, report.last_lsn) == (None, 0)
    assert says(report.lost, "the log is gone", "nothing is left")
