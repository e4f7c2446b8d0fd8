"""The parts of a run that commands work on, driven by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memwatch.agent.checkpoints.checkpointer import Checkpointer
from memwatch.agent.context import Context
from memwatch.agent.control.listener import ControlListener
from memwatch.agent.control.mode import Mode
from memwatch.agent.control.operations import Operations
from memwatch.agent.control.reclaim import Reclaimer
from memwatch.agent.journal import Journal
from memwatch.agent.memory.blobs import BlobStore
from memwatch.agent.memory.tiers import Tiers
from memwatch.agent.memory.values import Types
from memwatch.domain.clock import ManualClock
from memwatch.domain.policy import Keep
from tests.agent.control.sending import a_command, ack_of, publish
from tests.agent.reading import context_at, read_log
from tests.faults.failing_files import FailingFiles
from tests.waiting import until

KEEP = {"workspace": Keep(), "verified": Keep(delete=False)}


class Parts:
    """Tiers, checkpoints, mode and a listener; no thread listens."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock, self.files = ManualClock(), FailingFiles()
        self.context: Context = context_at(path, clock=self.clock, files=self.files)
        blobs = BlobStore(path / "blobs", self.files)
        self.tiers = Tiers(KEEP, self.context, types=Types(), blobs=blobs)
        self.checkpoints = Checkpointer(
            self.context, self.tiers, types=Types(), blobs=blobs, journal=Journal()
        )
        self.mode, self.reclaimer = Mode(self.context), Reclaimer()
        own = Operations(self.context, self.tiers, self.checkpoints, self.mode, self.reclaimer)
        self.listener = ControlListener(self.context, own.all(), self.mode)
        self.asked = 0

    def ask(self, op: str, **members: Any) -> str:
        """Publish a command and have it accepted; returns its id."""
        self.asked += 1
        command_id = f"c{self.asked}"
        publish(self.path, a_command(self.clock, command_id, op=op, **members))
        self.listener.poll()
        return command_id

    def answer(self, command_id: str) -> tuple[str, str, Any]:
        """Return state, detail and result of the last answer, once it is there."""

        def final() -> bool:
            return (ack_of(self.path, command_id) or {}).get("state") not in ("running", None)

        until(final)
        ack = ack_of(self.path, command_id) or {}
        return ack["state"], ack["detail"], ack["result"]

    def do(self, op: str, **members: Any) -> tuple[str, str, Any]:
        """Ask, come to a safe point, and return the answer."""
        command_id = self.ask(op, **members)
        self.listener.safe_point()
        return self.answer(command_id)

    def close(self) -> None:
        """Let go of threads and files."""
        self.checkpoints.close()
        self.context.log.close()

    def begin_experiment(self, number: int = 1) -> None:
        """Do as a run does where an experiment begins."""
        self.context.experiment = number
        self.mode.experiment_began()

    def end_experiment(self) -> None:
        """Do as a run does where it ends."""
        self.context.experiment = None
        self.mode.experiment_ended()

    def modes(self) -> list[str]:
        """Return the modes that were logged."""
        return [r.text("mode") for r in read_log(self.path / "wal")[0] if r.kind == "mode"]
