"""An agent that listens, driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from memwatch.agent.control.listener import ControlListener
from memwatch.agent.control.operation import Later, Operation, Request
from memwatch.domain.clock import ManualClock
from tests.agent.reading import context_at, read_log
from tests.faults.failing_files import FailingFiles


class Agent:
    """A listener with one operation `mark`, polled by hand."""

    def __init__(self, path: Path, clock: ManualClock | None = None) -> None:
        self.path = path
        self.clock = clock or ManualClock()
        self.files = FailingFiles()
        self.marks: list[dict[str, Any]] = []
        self.inside: Callable[[], None] = lambda: None
        self.context = context_at(path, clock=self.clock, files=self.files)
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

    def turn(self) -> None:
        """Poll, then come to a safe point."""
        self.listener.poll()
        self.listener.safe_point()

    def logged(self) -> list[tuple[str, str]]:
        """Return id and state of each command record."""
        records = read_log(self.path / "wal")[0]
        return [(r.text("id"), r.text("state")) for r in records if r.kind == "command"]
