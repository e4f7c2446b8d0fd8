"""What all parts of a run share: where it lies, its log, and how a record gets into it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from memwatch.agent.files import Files
from memwatch.agent.log import LogWriter
from memwatch.agent.tiers import Recorder
from memwatch.domain.clock import Clock


@dataclass(frozen=True)
class Context:
    """Handed by a run to its checkpointer, sampler and control listener."""

    path: Path
    """The run directory."""
    run_id: str
    log: LogWriter
    record: Recorder
    """`log.append` with the number of the experiment in progress."""
    clock: Clock
    files: Files
