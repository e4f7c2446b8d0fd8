"""A run directory with a control folder, without an agent: the test answers in its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from memwatch.actuators.native import NativeActuator
from memwatch.domain.clock import Clock
from memwatch.wal.segment import CONTROL_DIR, FORMAT, RUN_FILE
from memwatch.wal.spool_format import FOLDERS, STATE_FILE, AgentState, HoldState

RUN_ID = "run-1"
OPS: Mapping[str, Any] = {
    "checkpoint": {"about": "save the state", "dry_run": True},
    "purge": {"destructive": True, "dry_run": True},
    "abort_experiment": {"destructive": True},
    "leak": {},
}


def a_native_run(
    folder: Path, clock: Clock, ops: Mapping[str, Any] = OPS, run_id: str = RUN_ID
) -> NativeActuator:
    """Make the run directory as an agent does, and what controls it."""
    write_run_file(folder, run_id)
    control = folder / CONTROL_DIR
    for path in (control, *(control / name for name in FOLDERS)):
        path.mkdir(mode=0o700, exist_ok=True)
    return NativeActuator(folder, run_id, ops, clock)


def write_run_file(folder: Path, run_id: str = RUN_ID) -> None:
    manifest = {"format": FORMAT, "run_id": run_id, "agent": "tester"}
    (folder / RUN_FILE).write_bytes(msgspec.json.encode(manifest))


def say_state(folder: Path, clock: Clock, *holds: HoldState, **members: Any) -> AgentState:
    """Write what an agent says of itself, now."""
    said: dict[str, Any] = {
        "run_id": RUN_ID,
        "start_id": "s1",
        "wall_us": clock.wall_us(),
        "boot_us": clock.boot_us(),
        "holds": list(holds),
        **members,
    }
    state = AgentState(**said)
    path = folder / CONTROL_DIR / STATE_FILE
    path.write_bytes(msgspec.json.encode(state))
    path.chmod(0o600)
    return state
