"""What an agent embeds: log, tiers, checkpoints, recovery, control. Stdlib and msgspec only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memwatch.agent.control.mode import ExperimentAborted, RunEnded
from memwatch.agent.control.operation import Later, Operation, RefusedError, Request
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.entry import Entry, Source
from memwatch.agent.memory.tiers import Tier, Tiers
from memwatch.agent.options import RunOptions
from memwatch.agent.run import Run
from memwatch.agent.work.experiment import Experiment
from memwatch.agent.work.spans import Span
from memwatch.domain.errors import (
    CallInDoubtError,
    DamagedError,
    LogError,
    MemwatchError,
    ReadOnlyError,
    RecoveryError,
    TargetError,
    UnkeepableError,
    UsageError,
)
from memwatch.domain.policy import KEEP, Cadence, Keep
from memwatch.host.lock import LockHeldError

if TYPE_CHECKING:
    from memwatch.agent.recovery.recover import recover
    from memwatch.agent.recovery.report import Report

__all__ = [
    "KEEP",
    "Cadence",
    "CallInDoubtError",
    "DamagedError",
    "Entry",
    "Experiment",
    "ExperimentAborted",
    "Keep",
    "Later",
    "LockHeldError",
    "LogError",
    "LogWriter",
    "MemwatchError",
    "Operation",
    "ReadOnlyError",
    "RecoveryError",
    "RefusedError",
    "Report",
    "Request",
    "Run",
    "RunEnded",
    "RunOptions",
    "Source",
    "Span",
    "TargetError",
    "Tier",
    "Tiers",
    "UnkeepableError",
    "UsageError",
    "recover",
]


def __getattr__(name: str) -> Any:
    """Load what only a restart or a drill needs when it is asked for."""
    if name == "recover":
        from memwatch.agent.recovery.recover import recover

        return recover
    if name == "Report":
        from memwatch.agent.recovery.report import Report

        return Report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
