"""What all parts of a run share: where it lies, its log, and how a record gets into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from memwatch.agent.files import Files
from memwatch.agent.log import LogWriter
from memwatch.agent.receipt import UNREAD, Receipt
from memwatch.domain.clock import Clock
from memwatch.domain.errors import LogError


class Context(Struct, eq=False):
    """Handed by a run to its checkpointer, sampler and control listener."""

    path: Path
    """The run directory."""
    run_id: str
    log: LogWriter
    clock: Clock
    files: Files
    experiment: int | None = None
    """Number of the experiment in progress."""
    phase: str = ""
    """Phase that the agent declared last (R10)."""
    check_writable: Callable[[], None] = lambda: None
    """Raises ReadOnlyError where the run must not change now."""
    log_failed: Callable[[LogError], None] = lambda _: None
    """Told that a record could not be written."""
    start_id: str = ""
    """Of this start of the agent."""

    def record(self, kind: str, members: dict[str, Any], receipt: Receipt = UNREAD) -> int:
        """Append a record of any kind; the number of the experiment in progress goes with it."""
        number = self.experiment
        if number is not None:
            members = {"x": number, **members}
        try:
            return self.log.append(kind, members, receipt)
        except LogError as error:
            self.log_failed(error)
            raise
