"""A run directory -> the key under which its guard is found. Standard library only.

`status` starts with this: it must not cost more than reading one small file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any

from memwatch.config.locations import home, run_home, socket_path
from memwatch.domain.errors import TargetError
from memwatch.domain.text import inert
from memwatch.host.lock import RUN_LOCK, holder

NATIVE = "native"
RUN_FILE = "run.json"
META_FILE = "meta.json"
GUARD_LOCK = "guard.lock"
_MAX_BYTES = 1_000_000
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a small file of JSON, or None when there is none."""
    try:
        fd = os.open(path, _OPEN_FLAGS)  # a pipe under that name keeps nobody waiting
        with os.fdopen(fd, "rb") as file:
            value = json.loads(file.read(_MAX_BYTES) if S_ISREG(os.fstat(fd).st_mode) else b"")
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def run_key(path: Path, run_id: str) -> str:
    """Return the key of a run directory: its run id, unless another directory has it already.

    A copied directory keeps the run id of its original; it gets a key of its own, so that the two
    never share a lock, a socket or a history. A moved one keeps the key.
    """
    place = os.fspath(path.resolve())
    copy_key = f"{run_id[:80]}-copy-{sha256(os.fsencode(place)).hexdigest()[:8]}"
    if _path_of(copy_key) == place:
        return copy_key  # it was a copy when it was first seen, whatever became of the original
    original = _path_of(run_id)
    if original is None or original == place or not _holds(original, run_id):
        return run_id
    return copy_key


def _path_of(key: str) -> str | None:
    path = (read_json(run_home(key) / META_FILE) or {}).get("path")
    return path if isinstance(path, str) else None


def _holds(path: str, run_id: str) -> bool:
    manifest = read_json(Path(path) / RUN_FILE)
    return manifest is not None and manifest.get("run_id") == run_id


def guard_socket(path: Path) -> Path | None:
    """Return where the guard of a run would listen, or None when no guard can be there.

    A run directory of ours names its run; whatever else a guard watches, its `meta.json` names.
    """
    manifest = read_json(path / RUN_FILE)
    run_id = manifest.get("run_id") if manifest else None
    if isinstance(run_id, str) and run_id:
        return socket_of(run_key(path, run_id))
    key = _key_of(path)
    return socket_of(key) if key else None


def _key_of(path: Path) -> str:
    """Return the key of what a guard has watched at a path; empty when none has."""
    try:
        place = os.path.realpath(path)  # Path.resolve raises for a loop of links
    except ValueError:
        return ""
    keys = (meta.get("run_key") for meta in _metas() if meta.get("path") == place)
    return next((key for key in keys if isinstance(key, str)), "")


def _metas() -> Iterator[dict[str, Any]]:
    return (read_json(meta) or {} for meta in (home() / "runs").glob(f"*/{META_FILE}"))


def socket_of(key: str) -> Path:
    """Return where the guard of a run says it listens, else where it would."""
    said = (read_json(run_home(key) / META_FILE) or {}).get("socket")
    return (
        Path(said) if isinstance(said, str) and said and Path(said).exists() else socket_path(key)
    )


def resolve(name: str) -> Path:
    """Return the run directory that a word means.

    That is a path, or of a run that `ls` knows its id, or the name of its directory. Raises
    TargetError when it is none of them, or the name of several.
    """
    path = Path(os.path.expanduser(name))  # noqa: PTH111 -- Path's raises for an unknown ~user
    if "/" in name or (name and os.path.exists(path)):  # noqa: PTH110 -- Path's raises for a name too long
        return path
    known = read_json(run_home(name) / META_FILE)
    if known is not None and isinstance(known.get("path"), str):
        return Path(known["path"])
    return _named(name)


def _named(name: str) -> Path:
    present = {
        str(meta["path"]): str(meta.get("run_key"))
        for meta in _metas()
        if isinstance(meta.get("path"), str) and Path(meta["path"]).name == name and _is_there(meta)
    }
    if len(present) > 1:
        keys = ", ".join(inert(key, 60) for key in sorted(present.values())[:4])
        raise TargetError(f"{inert(name, 60)!r} names {len(present)} runs; say which one: {keys}")
    if not present:
        raise TargetError(f"{inert(name, 60)!r} is no path and no run that `memwatch ls` knows")
    return Path(next(iter(present)))


def _is_there(meta: dict[str, Any]) -> bool:
    """Say whether what a guard watched lies where it was: a run directory, or another source."""
    path = Path(meta["path"])
    return path.exists() if meta.get("source", NATIVE) != NATIVE else (path / RUN_FILE).is_file()


def newest_live(agent: str | None = None) -> Path:
    """Return the directory of the run (of one kind of agent) that began last of those alive.

    Raises TargetError when there is none.
    """
    found: list[tuple[int, str]] = []
    runs = home() / "runs"
    for folder in runs.iterdir() if runs.is_dir() else ():
        meta = read_json(folder / META_FILE) or {}
        path, started_us = meta.get("path"), meta.get("started_us")
        if not isinstance(path, str) or agent not in (None, meta.get("agent")):
            continue
        watched = _is_held(folder / GUARD_LOCK) and not meta.get("ended_us")
        if watched or _is_held(Path(path) / RUN_LOCK):
            found.append((started_us if isinstance(started_us, int) else 0, path))
    if not found:
        what = f"no {agent} is" if agent else "no run is"
        raise TargetError(f"{what} alive here; name a run directory, or try `memwatch demo`")
    return Path(max(found)[1])


def newest() -> Path:
    """Return the directory of the newest live run, else of the run that was seen last.

    Raises TargetError when none was ever seen.
    """
    try:
        return newest_live()
    except TargetError:
        seen = [
            (meta["seen_us"], meta["path"])
            for meta in _metas()
            if isinstance(meta.get("seen_us"), int) and isinstance(meta.get("path"), str)
        ]
        if not seen:
            raise
        return Path(max(seen)[1])


def _is_held(lock: Path) -> bool:
    try:
        return holder(lock) is not None
    except OSError:
        return False
