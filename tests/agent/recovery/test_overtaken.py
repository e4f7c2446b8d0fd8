"""A recovery of a run whose agent lives, and prunes what is being read."""

from __future__ import annotations

import shutil
from pathlib import Path

from memwatch.agent import Run, RunOptions, recover
from memwatch.agent.recovery.report import Progress

OVERTAKEN = 3
"""Times in a row."""


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
