"""Publish commands into a spool as a dashboard does, well-formed or not."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from memwatch.domain.clock import Clock
from memwatch.wal.spool_format import AgentState, parse_state


def a_command(clock: Clock, command_id: str = "c1", **members: Any) -> dict[str, Any]:
    """Return the members of a command for the run `run-1`."""
    return {
        "proto": 1,
        "id": command_id,
        "run_id": "run-1",
        "op": "mark",
        "args": {},
        "issued_us": clock.wall_us(),
        "ttl_us": 60_000_000,
        "deadline_us": 300_000_000,
        "by": {"uid": os.getuid(), "host": "box", "pid": 1, "origin": "operator"},
        **members,
    }


def publish(
    run_dir: Path, command: dict[str, Any], priority: int = 3, written_us: int | None = None
) -> Path:
    """Write a draft and link it into `new/`, as old as it says."""
    name = f"{priority}-{command['id']}.json"
    at_us = command["issued_us"] if written_us is None else written_us
    return publish_bytes(run_dir, name, json.dumps(command).encode(), at_us)


def publish_bytes(run_dir: Path, name: str, text: bytes, written_us: int | None = None) -> Path:
    """Put any bytes under a name in `new/`; `written_us` is the time of the test's clock."""
    draft, path = run_dir / "control" / "tmp" / name, run_dir / "control" / "new" / name
    draft.write_bytes(text)
    draft.chmod(0o600)
    if written_us is not None:
        os.utime(draft, ns=(written_us * 1000, written_us * 1000))
    os.link(draft, path)
    draft.unlink()
    return path


def a_hold(hold_id: str = "h1", op: str = "pause", **members: Any) -> dict[str, Any]:
    """Return the members of a hold for the run `run-1`."""
    return {"proto": 1, "id": hold_id, "run_id": "run-1", "op": op, **members}


def put_hold(run_dir: Path, hold: dict[str, Any], owner: str = "ann") -> Path:
    """Put a hold in place, or renew it, as a dashboard does: by rename from `tmp/`."""
    return put_hold_bytes(run_dir, f"{owner}-{hold['op']}.json", json.dumps(hold).encode())


def put_hold_bytes(run_dir: Path, name: str, text: bytes) -> Path:
    """Put any bytes under a name in `hold/`."""
    draft, path = run_dir / "control" / "tmp" / name, run_dir / "control" / "hold" / name
    draft.write_bytes(text)
    draft.chmod(0o600)
    draft.rename(path)
    return path


def told(run_dir: Path) -> AgentState:
    """Return what `state.json` says."""
    return parse_state((run_dir / "control" / "state.json").read_bytes())


def ack_of(run_dir: Path, command_id: str = "c1") -> dict[str, Any] | None:
    """Return the answer to a command, None while there is none."""
    try:
        found: dict[str, Any] = json.loads(
            (run_dir / "control/ack" / f"{command_id}.json").read_text()
        )
    except FileNotFoundError:
        return None
    return found


def state_of(run_dir: Path, command_id: str = "c1") -> str | None:
    """Return the state that a command is answered with."""
    ack = ack_of(run_dir, command_id)
    return None if ack is None else str(ack["state"])
