"""Whether a command may be obeyed: as it is worded, by what it expects, and in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from memwatch.agent.context import Context
from memwatch.agent.control.operation import Later, Operation
from memwatch.domain.command import FINAL_STATES
from memwatch.domain.operations import ENGINE
from memwatch.wal.spool_format import Ack, CommandFile

UNKNOWN = Operation(run=lambda _: {})
"""In place of an operation that the agent does not have."""


class Job(Struct, kw_only=True):
    """A command in work."""

    name: str
    command: CommandFile
    operation: Operation
    written_us: int
    """When its file was written, wall clock."""
    accepted_us: int
    """Boot clock."""
    experiment: int | None
    """The one in progress when it was accepted."""
    ack: Ack
    begun_us: int = 0
    retry_us: int = 0
    later: Later | None = None

    @property
    def final(self) -> bool:
        """Whether it has its last answer."""
        return self.ack.state in FINAL_STATES


class Judge:
    """Changes nothing but the highest epoch that it saw."""

    def __init__(self, context: Context, facts: Callable[[], Mapping[str, Any]]) -> None:
        self._context = context
        self._clock = context.clock
        self._facts = facts
        self.epoch = 0

    def refusal(self, job: Job) -> str:
        """Return why a command cannot be taken as it is meant, or nothing.

        To act without a condition that was set would be worse than not to act.
        """
        command = job.command
        if command.run_id != self._context.run_id:
            return "wrong_run: it names another run"
        if job.operation is UNKNOWN:
            return f"unsupported: this agent has no {command.op}"
        if unknown := set(command.args) - set(job.operation.args):
            return f"unknown arguments: {', '.join(sorted(unknown))}"
        if command.dry_run and not job.operation.dry_runs:
            return "unsupported: this operation has no dry run; nothing was done"
        if command.confirm is not None:
            return "unsupported: this agent asks for no confirmation and can check none"
        return self.stale(command.epoch)

    def unmet(self, job: Job) -> str:
        """Return what is not so that the command needs, or nothing."""
        facts = self._facts()
        for name, wanted in job.command.expect.items():
            if name not in facts:
                return f"unsupported: this agent does not state {name}"
            if facts[name] != wanted:
                return f"precondition: {name} is {facts[name]}, not {wanted}"
        if job.operation.this_experiment:
            if job.experiment is None:
                # The engine means memory, not an experiment: what is left to do is to save (R8).
                by_engine = job.command.by.origin == ENGINE
                return "" if by_engine else "no experiment is in progress"
            if self._context.experiment not in (job.experiment, None):
                return f"experiment {job.experiment}, which it meant, has ended"
        return ""

    def is_overdue(self, job: Job) -> bool:
        """Say whether its time is over by any clock: too late is worse than not at all."""
        command, now_us = job.command, self._clock.wall_us()
        waited_us = self._clock.boot_us() - job.accepted_us
        age_us = max(now_us - command.issued_us, now_us - job.written_us, waited_us)
        return age_us > command.ttl_us or waited_us > command.deadline_us

    def stale(self, epoch: int | None) -> str:
        """Return why an epoch is over, or nothing; a higher one ends those before it."""
        if epoch is not None and epoch < self.epoch:
            return f"stale: epoch {epoch} is over, {self.epoch} was seen"
        self.epoch = max(self.epoch, epoch or 0)
        return ""
