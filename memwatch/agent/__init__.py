"""What an agent embeds: log writer, tiers, checkpoints, control. Stdlib and msgspec only."""

from memwatch.agent.checkpoints.checkpointer import Cadence
from memwatch.agent.control.listener import Operation
from memwatch.agent.log import LogWriter
from memwatch.agent.memory.tiers import Entry, Keep, Tier, Tiers
from memwatch.agent.run import Run, RunOptions
from memwatch.agent.work.experiment import Experiment
from memwatch.agent.work.spans import Span

__all__ = [
    "Cadence",
    "Entry",
    "Experiment",
    "Keep",
    "LogWriter",
    "Operation",
    "Run",
    "RunOptions",
    "Span",
    "Tier",
    "Tiers",
]
