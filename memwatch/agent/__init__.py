"""What an agent embeds: log writer, tiers, checkpoints, control. Stdlib and msgspec only."""

from memwatch.agent.checkpoint import Cadence
from memwatch.agent.control import Operation
from memwatch.agent.log import LogWriter
from memwatch.agent.run import Run, RunOptions
from memwatch.agent.spans import Experiment, Span
from memwatch.agent.tiers import Entry, Keep, Tier, Tiers

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
