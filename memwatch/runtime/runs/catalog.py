"""All runs that guards of this user have seen, from their `meta.json` files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memwatch.config.locations import home
from memwatch.domain.errors import SessionError, TargetError
from memwatch.domain.snapshot import PAST
from memwatch.host.holders import holders
from memwatch.host.lock import holder
from memwatch.host.process import is_alive
from memwatch.ingest.open_run import OpenedRun, open_run
from memwatch.runtime.protocol.numbers import GuardSilentError
from memwatch.runtime.protocol.thin_client import status_json
from memwatch.runtime.runs.meta import Meta, read_meta
from memwatch.runtime.runs.target import GUARD_LOCK, NATIVE, socket_of
from memwatch.runtime.runs.writer import writer_of

GONE = "gone"
"""Nobody watches, and its directory is no run any more."""
NOT_RUNNING = "not running"
UNWATCHED = "running, unwatched"


class Listed(NamedTuple):
    """A run, whether a guard watches it, and its state as far as it can be told now."""

    meta: Meta
    guard_pid: int | None
    state: str
    silent: bool = False
    """The guard is there and does not answer: what is known is as old as its last word."""

    @property
    def live(self) -> bool:
        """Whether its agent is at work."""
        return self.state not in PAST | {GONE, NOT_RUNNING}


def list_runs() -> list[Listed]:
    """Return all runs, live ones first, each group newest first."""
    folder = home() / "runs"
    if not folder.is_dir():
        return []
    found = ((run, read_meta(run)) for run in folder.iterdir() if run.is_dir())
    metas = [(run, meta) for run, meta in found if meta is not None]
    written = _written([meta.path for _, meta in metas if meta.source != NATIVE])
    runs = [_listed(run, meta, written) for run, meta in metas]
    runs.sort(key=lambda run: (run.live, run.meta.started_us), reverse=True)
    return runs


def _written(paths: list[str]) -> list[str]:
    """Return the files below these paths that a process holds open for writing."""
    return [one.path for one in holders(tuple(paths)) if one.writing] if paths else []


def _listed(folder: Path, meta: Meta, written: list[str]) -> Listed:
    try:
        pid = holder(folder / GUARD_LOCK)
    except OSError:
        pid = None
    if pid is not None:
        try:
            fresh = _fresh(meta)
        except GuardSilentError:
            return Listed(meta, pid, meta.state, silent=True)
        return Listed(fresh, pid, fresh.state)
    return Listed(meta, None, _unwatched_state(meta, written))


def _fresh(meta: Meta) -> Meta:
    """Ask the guard: its file may be a minute old. Raises GuardSilentError."""
    try:
        status = msgspec.json.decode(status_json(str(socket_of(meta.run_key))))
        memory: dict[str, Any] = next((r for r in status["resources"] if r["name"] == "memory"), {})
        middle = status["windows"][1]
        fresh = {
            "state": status["run"]["state"],
            "ended_us": status["run"]["ended_us"],
            "level": status["level"],
            "engine": status["engine"]["mode"],
            "experiments": sum(status["progress"]["experiments"].values()),
            "checkpoint_age_s": status["checkpoints"]["age_s"],
            "last_bytes": memory.get("used"),
            "growth_per_min": memory.get("growth_per_min", {}).get(middle),
            "time_to_limit_s": memory.get("time_to_limit_s"),
        }
        return msgspec.convert(msgspec.to_builtins(meta) | fresh, Meta)
    except GuardSilentError:
        raise
    except (SessionError, msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return meta


def _unwatched_state(meta: Meta, written: list[str]) -> str:
    """Return the state of a run that has no guard now: it may have begun again meanwhile."""
    try:
        opened = open_run(Path(meta.path))
    except TargetError:
        return meta.state if meta.ended_us is not None else GONE
    if _is_written(opened, written):
        return UNWATCHED
    return meta.state if meta.ended_us is not None else NOT_RUNNING


def _is_written(opened: OpenedRun, written: list[str]) -> bool:
    """Say whether its writer lives: a foreign one is known by a file that it holds open there."""
    if opened.foreign is not None:
        return any(path.startswith(os.fspath(opened.path)) for path in written)
    writer = writer_of(opened.path, opened.manifest)
    return writer is not None and is_alive(writer)
