"""`meta.json` of a run: what `memwatch ls` reads, kept beside the run's history.

There is no shared database: each guard rewrites its own file, whole and atomically.
"""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from memwatch.domain.level import Level
from memwatch.runtime.runs.target import META_FILE, NATIVE

FORMAT = 1


class Meta(Struct, frozen=True, kw_only=True):
    """One run as its guard last knew it. Unknown members are ignored."""

    format: int = FORMAT
    run_key: str
    path: str
    agent: str
    source: str = NATIVE
    """`native`, or the kind of a source that another program writes."""
    profile: str
    host: str
    pid: int
    started_us: int
    seen_us: int
    ended_us: int | None = None
    end: str = ""
    """done, crashed, killed, silent; empty while it runs."""
    state: str = "running"
    level: Level = "normal"
    peak_bytes: float | None = None
    last_bytes: float | None = None
    limit_bytes: int | None = None
    experiments: int = 0
    growth_per_min: float | None = None
    """Over the middle window of the profile."""
    time_to_limit_s: tuple[float, float] | None = None
    checkpoint_age_s: float | None = None
    engine: str = "observe"
    """Mode of the guard's engine: off, observe, shadow, ask, act."""
    guard_pid: int = 0
    socket: str = ""
    """Where that guard listens: its environment may name another place than ours."""


def write_meta(folder: Path, meta: Meta) -> None:
    """Replace the file; raises OSError."""
    draft = folder / f".{META_FILE}.{secrets.token_hex(4)}"
    try:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(meta), indent=1))
        draft.replace(folder / META_FILE)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def read_meta(folder: Path) -> Meta | None:
    """Return what is known of a run, or None when the file is missing or no meta.json."""
    try:
        return msgspec.json.decode((folder / META_FILE).read_bytes(), type=Meta)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
