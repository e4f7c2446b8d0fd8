"""Which checkpoints and records make the state of a run that is whole."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from memwatch.agent.recovery.recover import recover
from memwatch.agent.recovery.report import Progress
from memwatch.agent.recovery.state import State
from tests.agent.recovery.building import Builder, Kept, a_run


def kept(state: State) -> Kept:
    """Return a recovered state in the form of the builder's."""
    return {
        tier: {key: (entry.lsn, state[tier][key]) for key, entry in entries.items()}
        for tier, entries in state.tiers.items()
    }


def tree(path: Path) -> dict[str, Any]:
    """Return all that may be known of a directory's files."""
    found: dict[str, Any] = {}
    for file in sorted(path.rglob("*")):
        status = file.lstat()
        content = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        found[str(file)] = (status.st_mode, status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def test_newest_full_then_increments_then_log(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    state, report = recover(run.path)
    assert kept(state) == run.truth[run.lsn]
    assert (report.last_lsn, report.run_id, report.lossy) == (run.lsn, "run-1", False)
    assert report.full == run.base
    assert len(report.deltas) == 2
    assert not report.damaged
    assert report.verified is not None
    assert report.records == run.lsn - report.resume.last_lsn
