"""A start on a directory with a past: its state is found again, and what was left open is settled.

Imported only for such a directory: a first start does without the recovery's code.
"""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from memwatch.agent.checkpoints.checkpointer import Checkpointer
from memwatch.agent.context import Context
from memwatch.agent.journal import Journal
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.options import RunOptions
from memwatch.agent.past import last_experiment
from memwatch.agent.recovery.recover import recover
from memwatch.agent.recovery.report import FileState, Report
from memwatch.agent.recovery.state import State
from memwatch.agent.work.workspace import Workspace
from memwatch.domain.errors import LogError
from memwatch.wal.segment import WAL_DIR

_LOGGED = frozenset(("load", "read", "replay"))
"""Terms of a restart: it reads and decodes a persisted value when it is asked for."""


def find_state(path: Path, options: RunOptions) -> tuple[State, Report]:
    """Return the state of a run, its blobs looked for and proved when they are read."""
    return recover(path, types=options.types, verify_blobs=False)


def settle(
    report: Report,
    context: Context,
    journal: Journal,
    tiers: Tiers,
    checkpoints: Checkpointer,
    workspace: Workspace,
) -> Report:
    """Log the recovery, put files back, end what was open, go on with the chain of checkpoints.

    Where something was lost a full checkpoint is taken at once, or the start refused: the next
    recovery must not stop at the same hole. Returns the report with the files that differed.
    Raises LogError, OSError.
    """
    if report.lossy:  # what lies behind the hole had numbers, too
        newest = last_experiment(context.path / WAL_DIR)
        journal.experiments = max(journal.experiments, newest)
    files = workspace.restore()
    members = {
        "full": report.full,
        "deltas": len(report.deltas),
        "records": report.records,
        "lost": report.lost,
        "duration_us": round(report.total_s * 1e6),
        "terms": {
            term.name: {
                "us": round(term.seconds * 1e6),
                "bytes": term.bytes,
                "records": term.records,
            }
            for term in report.terms
            if term.name in _LOGGED
        },
        "state_bytes": report.memory_bytes,
    }
    context.record("recovery", members | ({"files": files} if files else {}))
    resume = report.resume
    checkpoints.resume(
        resume.base,
        resume.last_lsn,
        resume.chain_bytes,
        resume.experiments_since_any,
        resume.experiments_since_full,
    )
    if journal.open is not None:
        _end_open(journal.open, context, journal, tiers, checkpoints)
    if report.lossy or resume.full_due:
        outcome = checkpoints.take("full")
        if report.lossy and not outcome.committed:
            raise LogError(
                f"{context.path} lost something, and the full checkpoint that must stand behind "
                f"the hole cannot be taken: {outcome.reason}; without it all that follows would be "
                "lost, too: make room, then start again"
            )
    elif (kind := checkpoints.due()) is not None:
        # An agent that is killed again and again before its first safe point takes no other.
        checkpoints.take(kind)
    states = tuple(FileState(name, state) for name, state in files.items())
    return replace(report, files=states)


def _end_open(
    number: int, context: Context, journal: Journal, tiers: Tiers, checkpoints: Checkpointer
) -> None:
    """End the experiment that was in progress when the agent died."""
    journal.log(context.record, "experiment.end", {"x": number, "status": "crashed"})
    tiers.experiment_ended(number, {"status": "crashed"})
    checkpoints.experiment_finished()
