"""A ledger between a recorder and a real spool; the test answers in the agent's place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memwatch.agent.control.spool import Spool as AgentSpool
from memwatch.agent.files import SYSTEM_FILES
from memwatch.agent.log import LogWriter
from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command, CommandInfo
from memwatch.domain.record import Record
from memwatch.runtime.guard.ledger import GRACE_US, Ledger
from memwatch.runtime.guard.recorder import Recorder
from memwatch.wal.spool_format import (
    DEADLINE_US,
    HOLD,
    STATE_FILE,
    TTL_US,
    Ack,
    CommandFile,
    HoldState,
)
from tests.actuators.native_run import a_native_run, say_state
from tests.faults.failing_files import FailingFiles

RUN_ID = "run-1"
OPS: dict[str, Any] = {
    "checkpoint": {"dry_run": True},
    "purge": {"dry_run": True, "destructive": True},
    "abort_experiment": {"destructive": True},
    "end_run": {"destructive": True},
    "leak": {},
}
NAMES = (RUN_ID, "night-7")
CHECKPOINT = Command(op="checkpoint", origin="operator")
GIVEN_UP_S = (TTL_US + DEADLINE_US + GRACE_US) / 1e6 + 1


class Bench:
    """A ledger between a recorder and a real spool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.files = FailingFiles()
        self.agent = AgentSpool(folder / "control", SYSTEM_FILES)
        self.told: list[Record] = []
        log = LogWriter(folder / "wal", clock=self.clock, files=self.files, durability="os")
        self.recorder = Recorder(folder / "wal", self.clock, lambda: log)
        self.ledger = self.begin()
        self._seq = 0

    def begin(self) -> Ledger:
        """Make what a guard begins with."""
        self.actuator = a_native_run(self.folder, self.clock, OPS)
        self.actuator.claim_epoch()
        return Ledger(self.actuator, self.recorder, self.clock, tell=self.told.append, names=NAMES)

    def restart(self) -> None:
        """End this guard by a signal, and begin the next: it knows what was written."""
        self.ledger = self.begin()
        self.ledger.restore([record for record in self.told if record.lsn])

    def ask(self, command_id: str, op: str = "checkpoint", **members: Any) -> CommandInfo:
        """Submit a step of the engine; `<plan>.<place>` is its id."""
        plan = command_id.rpartition(".")[0]
        command = Command(op=op, id=command_id, origin="engine", plan=plan, **members)
        assert self.ledger.submit(command) == command_id
        return self.info(command_id)

    def info(self, name: str) -> CommandInfo:
        return self.ledger.commands()[name]

    def commands(self) -> list[CommandFile]:
        return [self.agent.read("new", name)[0] for name in self.agent.names("new")]

    def answer(self, name: str, state: str, detail: str = "") -> None:
        self._seq += 1
        self.agent.write_ack(
            Ack(
                id=name,
                run_id=RUN_ID,
                seq=self._seq,
                state=state,
                wall_us=0,
                boot_us=0,
                pid=1,
                detail=detail,
            )
        )

    def say(self, **members: Any) -> None:
        """Say as the agent what holds it: whatever lies in `hold/`."""
        known = {name: self.agent.read_hold(name) for name in self.agent.names(HOLD)}
        holds = [
            HoldState(id=hold.id, op=hold.op, owner=owner, effective=True)
            for owner, hold in known.values()
        ]
        before = self.agent.state() if (self.agent.path / STATE_FILE).exists() else None
        gen = before.gen + 1 if before else 1
        say_state(self.folder, self.clock, *holds, gen=gen, **members)

    def states(self, name: str) -> list[str]:
        """Return the states of a request as they were recorded."""
        return [r.members["state"] for r in self.told if r.members["id"] == name]
