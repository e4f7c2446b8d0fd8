"""An actuator over a run without an agent: the test writes what an agent would, or worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from memwatch.domain.clock import ManualClock
from memwatch.domain.command import Command
from memwatch.wal.spool_format import HoldState, parse_hold
from tests.actuators.native_run import RUN_ID, a_native_run, say_state

PAUSE = Command(op="pause", id="p1", by="tui")
ENGINE_PAUSE = Command(op="pause", id="p1", origin="engine")


class Bench:
    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.run.mkdir()
        self.clock = ManualClock()
        self.actuator = a_native_run(self.run, self.clock)
        self.control = self.run / "control"

    def begin(self, command: Command) -> None:
        self.actuator.begin(command, self.clock.wall_us())

    def keep(self, after_s: float = 0.0) -> tuple[str, ...]:
        self.clock.advance_s(after_s)
        return self.actuator.keep(self.clock.boot_us())

    def held(self, *holds: str, **members: Any) -> None:
        """Have the agent say that these are in force."""
        told = [HoldState(id=i, op="pause", owner="tui", effective=True) for i in holds]
        say_state(self.run, self.clock, *told, **members)

    def ack(self, text: bytes, name: str = "c1") -> Path:
        path = self.control / "ack" / f"{name}.json"
        path.write_bytes(text)
        path.chmod(0o600)
        return path

    def renewed(self, name: str = "engine-pause.json") -> int:
        return parse_hold((self.control / "hold" / name).read_bytes()).renewed


def ack(**members: Any) -> bytes:
    said = {"id": "c1", "run_id": RUN_ID, "seq": 1, "state": "done", "result": {}, **members}
    return msgspec.json.encode(said)


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
