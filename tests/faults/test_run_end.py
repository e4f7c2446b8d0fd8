"""The end of a run where its disk, or an interrupt, is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from memwatch.agent import LogError, Run, RunOptions
from memwatch.agent.checkpoints.checkpointer import Checkpointer
from tests.agent.reading import kinds
from tests.faults.failing_files import FailingFiles
from tests.faults.interrupts import Interrupt


@pytest.mark.parametrize("error", [ValueError("its own"), KeyboardInterrupt(), SystemExit(3)])
def test_the_agents_own_exception_leaves_a_run_that_cannot_log_its_end(
    tmp_path: Path, error: BaseException
) -> None:
    files = FailingFiles()
    run = Run.open(tmp_path / "run", RunOptions(agent="a"), files=files)

    def work() -> None:
        with run:
            files.fail_all("write", "fsync", "sync_data")
            raise error

    with pytest.raises(type(error)) as caught:
        work()
    assert caught.value is error
    (note,) = error.__notes__
    assert "not on record" in note
    assert run.mode == "ended"
    with Run.open(tmp_path / "run", RunOptions(agent="a")):  # the directory was let go
        pass


def test_a_run_without_one_raises_what_was_in_the_way(tmp_path: Path) -> None:
    files = FailingFiles()
    run = Run.open(tmp_path / "run", RunOptions(agent="a"), files=files)
    with pytest.raises(LogError, match="cannot append"), run:
        files.fail_all("write")


def test_an_interrupt_while_it_waits_for_a_checkpoint_ends_the_run_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Checkpointer) -> None:
        raise Interrupt

    monkeypatch.setattr(Checkpointer, "close", interrupted)
    run = Run.open(tmp_path / "run", RunOptions(agent="a"))
    with pytest.raises(Interrupt):
        run.close()
    monkeypatch.undo()
    assert kinds(run.path)[-1] == "run.end"
    assert run.mode == "ended"
    run.checkpoints.close()
    with Run.open(tmp_path / "run", RunOptions(agent="a")):
        pass
