"""All runs that guards of this user have seen, from their `meta.json` files."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple

import msgspec

from memwatch.config.locations import home, run_folder, socket_path
from memwatch.domain.errors import SessionError, TargetError
from memwatch.host.lock import holder
from memwatch.host.process import identity_of_run, is_alive
from memwatch.ingest.open_run import open_run
from memwatch.runtime.meta import Meta, read_meta
from memwatch.runtime.thin_client import status_json


class Listed(NamedTuple):
    """A run, whether a guard watches it, and its state as far as it can be told now."""

    meta: Meta
    guard_pid: int | None
    state: str


def list_runs() -> list[Listed]:
    """Return all runs, live ones first, each group newest first."""
    folder = home() / "runs"
    if not folder.is_dir():
        return []
    metas = (read_meta(run) for run in folder.iterdir() if run.is_dir())
    runs = [_listed(folder, meta) for meta in metas if meta is not None]
    runs.sort(key=lambda run: (run.meta.ended_us is None, run.meta.started_us), reverse=True)
    return runs


def _listed(folder: Path, meta: Meta) -> Listed:
    pid = None
    with contextlib.suppress(OSError):
        pid = holder(folder / run_folder(meta.run_key) / "guard.lock")
    if pid is not None:
        return Listed(_fresh(meta), pid, meta.state)
    if meta.ended_us is not None:
        return Listed(meta, None, meta.state)
    return Listed(meta, None, _unwatched_state(meta))


def _fresh(meta: Meta) -> Meta:
    """Ask the guard: its file may be a minute old."""
    try:
        status = msgspec.json.decode(status_json(str(socket_path(meta.run_key))))
        memory = next((r for r in status["resources"] if r["name"] == "memory"), None)
    except (SessionError, msgspec.DecodeError, KeyError, TypeError):
        return meta
    fresh = msgspec.to_builtins(meta) | {"state": status["run"]["state"], "level": status["level"]}
    if memory:
        middle = status["windows"][1]
        fresh |= {
            "last_bytes": memory["used"],
            "growth_per_min": memory["growth_per_min"].get(middle),
            "time_to_limit_s": memory["time_to_limit_s"],
        }
    return msgspec.convert(fresh, Meta)


def _unwatched_state(meta: Meta) -> str:
    """Return the state of a run whose guard is gone before it saw the end."""
    try:
        opened = open_run(Path(meta.path))
    except TargetError:
        return "gone"
    identity = identity_of_run(opened.manifest)
    return "running, unwatched" if identity is not None and is_alive(identity) else "not running"
