"""An agent that listens, driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memwatch.agent.context import Context
from memwatch.agent.control.listener import ControlListener
from memwatch.agent.control.operation import Later, Operation, Request
from memwatch.agent.log import Durability, LogWriter
from memwatch.domain.clock import ManualClock, SystemClock
from tests.agent.reading import read_log
from tests.faults.failing_files import FailingFiles


class Agent:
    """A listener with one operation `mark`, polled by hand."""

    def __init__(
        self, path: Path, clock: ManualClock | None = None, durability: Durability = "os"
    ) -> None:
        self.path = path
        # Begins at the system's time: the files of the spool have that, too.
        self.clock = clock or ManualClock(SystemClock().wall_us())
        self.files = FailingFiles()
        self.marks: list[dict[str, Any]] = []
        self.inside: Callable[[], None] = lambda: None
        log = LogWriter(path / "wal", clock=self.clock, durability=durability, files=self.files)
        self.context = Context(path, "run-1", log, self.clock, self.files)
        args = {"n": "a number", "fail": "whether to fail"}
        self.later = Later()
        self.listener = ControlListener(
            self.context,
            {
                "mark": Operation(run=self.mark, args=args, dry_runs=True),
                "once": Operation(run=self.mark, idempotent=False),
                "slow": Operation(run=lambda _: self.later),
                "stop_it": Operation(run=self.mark, this_experiment=True, anywhere=True),
            },
        )
        self.mode = self.listener.mode

    def mark(self, args: Request) -> dict[str, Any]:
        """Do what is asked."""
        self.inside()
        if args.dry_run:
            return {"would": "mark"}
        if args.get("fail"):
            raise ValueError("told to \x1b[31mfail")
        self.marks.append(args)
        return {"count": len(self.marks)}

    @property
    def state(self) -> str:
        """The mode."""
        return self.mode.state

    def begin_experiment(self, number: int) -> None:
        """Do as a run does where an experiment begins."""
        self.context.experiment = number
        self.mode.experiment_began()

    def end_experiment(self) -> None:
        """Do as a run does where it ends."""
        self.context.experiment = None
        self.mode.experiment_ended()

    def comes_by(self) -> bool:
        """Come to a safe point; true, for use in conditions."""
        self.listener.safe_point()
        return True

    def turn(self) -> None:
        """Poll, then come to a safe point."""
        self.listener.poll()
        self.listener.safe_point()

    def logged(self) -> list[tuple[str, str]]:
        """Return id and state of each command record."""
        records = read_log(self.path / "wal")[0]
        return [(r.text("id"), r.text("state")) for r in records if r.kind == "command"]
