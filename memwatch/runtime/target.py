"""A run directory -> the key under which its guard is found. Standard library only.

`status` starts with this: it must not cost more than reading one small file.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from memwatch.config.locations import home, run_home, socket_path
from memwatch.domain.errors import TargetError

RUN_FILE = "run.json"
META_FILE = "meta.json"
_MAX_BYTES = 1_000_000


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in a small file of JSON, or None when there is none."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def run_key(path: Path, run_id: str) -> str:
    """Return the key of a run directory: its run id, unless another directory has it already.

    A copied directory keeps the run id of its original; it gets a key of its own, so that the two
    never share a lock, a socket or a history.
    """
    known = read_json(run_home(run_id) / META_FILE)
    place = str(path.resolve())
    if known is None or known.get("path") in (place, None):
        return run_id
    if not Path(str(known["path"])).exists():
        return run_id  # moved, not copied
    return f"{run_id[:80]}-copy-{sha256(place.encode()).hexdigest()[:8]}"


def guard_socket(path: Path) -> Path | None:
    """Return where the guard of a run directory would listen, or None when it is no run."""
    manifest = read_json(path / RUN_FILE)
    run_id = manifest.get("run_id") if manifest else None
    if not isinstance(run_id, str) or not run_id:
        return None
    return socket_path(run_key(path, run_id))


def resolve(name: str) -> Path:
    """Return the run directory that a word means: a path, or the id of a run that `ls` knows.

    Raises TargetError when it is neither.
    """
    path = Path(name).expanduser()
    if "/" in name or path.exists():
        return path
    known = read_json(run_home(name) / META_FILE)
    if known is not None and isinstance(known.get("path"), str):
        return Path(known["path"])
    raise TargetError(f"{name!r} is no path and no run that `memwatch ls` knows")


def newest_live() -> Path:
    """Return the directory of the run that began last among those whose guard is alive.

    Raises TargetError when there is none.
    """
    found: list[tuple[int, str]] = []
    runs = home() / "runs"
    for folder in runs.iterdir() if runs.is_dir() else ():
        meta = read_json(folder / META_FILE)
        if meta and isinstance(meta.get("path"), str) and not meta.get("ended_us"):
            started_us = meta.get("started_us")
            if _exists(meta.get("guard_pid")):
                found.append((started_us if isinstance(started_us, int) else 0, meta["path"]))
    if not found:
        raise TargetError("no run is being watched; name a run directory, or try `memwatch demo`")
    return Path(max(found)[1])


def _exists(pid: object) -> bool:
    return isinstance(pid, int) and pid > 0 and Path(f"/proc/{pid}").exists()
