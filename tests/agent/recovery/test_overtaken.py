"""A recovery of a run whose agent lives: it writes checkpoints, and prunes what is being read."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from memwatch.agent import Run, RunOptions, recover
from memwatch.agent.recovery.report import Progress
from memwatch.host.lock import RUN_LOCK
from tests.agent.recovery.building import Builder, a_run
from tests.agent.recovery.looking import recovered, whole

OVERTAKEN = 3
"""Times in a row."""


@pytest.fixture
def run(tmp_path: Path) -> Builder:
    return a_run(tmp_path / "run")


def test_an_agent_that_prunes_faster_than_we_read_makes_no_loss(tmp_path: Path) -> None:
    path, later = tmp_path / "run", []
    with Run.open(path, RunOptions(agent="a", durability="os")) as run:
        for number in range(2 + 2 * OVERTAKEN):
            run.tiers["recent"].put(f"key/{number}", number)
            run.checkpoints.take("full")
            if number and number % 2:
                later.append(shutil.copytree(path, tmp_path / f"later-{number}"))
    shutil.rmtree(path)
    later.pop(0).rename(path)
    begun = set[str]()

    def prune(progress: Progress) -> None:
        """Let the agent be two full checkpoints on, as soon as one is looked into."""
        folder = progress.what.rpartition("/")[0]
        if "full-" in folder and folder not in begun and later:
            begun.add(folder)
            shutil.rmtree(path)
            later.pop(0).rename(path)

    state, report = recover(path, progress=prune)
    assert not later
    assert (report.lost, report.matches) == ((), True)
    assert len(state["recent"]) == 2 + 2 * OVERTAKEN


def test_while_the_agent_lives_an_unfinished_checkpoint_is_one_in_progress(run: Builder) -> None:
    run.full(commit=False)
    (run.path / "checkpoints" / ".full-00000000000000000099.draft").mkdir()
    assert len(recovered(run).damaged) == 2
    hold = "import sys; from pathlib import Path; from memwatch.host.lock import FileLock; "
    hold += "lock = FileLock.acquire(Path(sys.argv[1])); print(); input()"
    command = [sys.executable, "-c", hold, str(run.path / RUN_LOCK)]
    with Popen(command, stdin=PIPE, stdout=PIPE) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()
        assert recovered(run).damaged == ()
        agent.communicate(b"\n")
    assert len(recovered(run).damaged) == 2


def test_whatever_lies_in_place_of_the_lock(run: Builder) -> None:
    lock = run.path / RUN_LOCK
    lock.symlink_to("nowhere")
    assert whole(run).damaged == ()
    lock.unlink()
    os.mkfifo(lock)
    assert whole(run).damaged == ()
