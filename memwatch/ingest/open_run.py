"""A path -> the run that lies there, or one sentence that says why not. Writes nothing."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from memwatch.domain.errors import TargetError
from memwatch.domain.operations import HOLDS
from memwatch.domain.text import inert
from memwatch.ingest.foreign import FOREIGN, NATIVE, Foreign, foreign_at
from memwatch.wal.manifest import RunManifest, parse_run
from memwatch.wal.segment import CONTROL_DIR, FORMAT, RUN_FILE, WAL_DIR

_MAX_RUN_FILE_BYTES = 1_000_000
_MAX_LOOKED_AT = 1000  # entries of a folder that are looked at to find runs in it
_RUNS_NAMED = 3
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class OpenedRun(Struct, frozen=True):
    """A run directory of ours, or a source that another program writes: owned and readable."""

    path: Path
    """Absolute, links resolved."""
    manifest: RunManifest
    """Of a foreign source what its path tells."""
    source: str = NATIVE
    """`native`, or the name of a foreign kind."""

    @property
    def foreign(self) -> Foreign | None:
        """The foreign kind that it is of; None for a run directory of ours."""
        return FOREIGN.get(self.source)

    @property
    def ops(self) -> frozenset[str]:
        """What its agent takes: what it states, and the holds that each agent of ours keeps."""
        return frozenset() if self.foreign else frozenset([*self.manifest.ops, *HOLDS])

    @property
    def wal_dir(self) -> Path:
        """Where the segments of the agent's log lie."""
        return self.path / WAL_DIR

    @property
    def control_dir(self) -> Path:
        """The spool for commands."""
        return self.path / CONTROL_DIR


def open_run(path: Path) -> OpenedRun:
    """Return the run at `path`; raises TargetError with one sentence that says what to do."""
    shown = inert(str(path))
    try:
        place = path.resolve()
        status = place.stat()
        if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
            raise TargetError(f"{shown} is neither a directory nor a file; name a run directory")
        if status.st_uid != os.geteuid():
            raise TargetError(f"{shown} belongs to another user; run memwatch as its owner")
        if not _is_text(place):
            raise TargetError(
                f"{shown} has a path that is no UTF-8 and can be told nobody; rename it"
            )
        return _open(place, shown) if stat.S_ISDIR(status.st_mode) else _open_file(place, shown)
    except FileNotFoundError:
        raise TargetError(f"{shown} does not exist; `memwatch ls` lists the runs") from None
    except PermissionError as error:
        closed = inert(str(error.filename or path))
        raise TargetError(f"{closed} cannot be read; give yourself read permission") from None
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a zero byte, bad disk
        why = error.strerror if isinstance(error, OSError) else None
        raise TargetError(f"{shown} cannot be opened: {inert(why or str(error))}") from None


def _is_text(place: Path) -> bool:
    try:
        return bool(str(place).encode())
    except UnicodeEncodeError:
        return False


def _open(place: Path, shown: str) -> OpenedRun:
    with os.scandir(place) as entries:
        names = {entry.name for entry, _ in zip(entries, range(_MAX_LOOKED_AT), strict=False)}
    if not names:
        raise TargetError(f"{shown} is empty; name a run directory, one that holds {RUN_FILE}")
    if not (place / RUN_FILE).exists():
        return _open_folder(place, shown, names)
    manifest = _read_manifest(place, shown)
    wal_dir = place / WAL_DIR
    if not wal_dir.is_dir():
        raise TargetError(f"{shown} holds {RUN_FILE} but no {WAL_DIR}/; start its agent again")
    with os.scandir(wal_dir):
        return OpenedRun(place, manifest)


def _open_folder(place: Path, shown: str, names: set[str]) -> OpenedRun:
    """Open a directory that is no run of ours."""
    runs = sorted(_runs_among(place, names), reverse=True)
    kind = None if runs else foreign_at(place)
    if kind is not None:
        return _foreign_run(place, kind)
    raise TargetError(_no_run(shown, runs))


def _open_file(place: Path, shown: str) -> OpenedRun:
    kind = foreign_at(place)
    if kind is None:
        raise TargetError(f"{shown} is no run directory, nor a file that memwatch knows")
    return _foreign_run(place, kind)


def _foreign_run(place: Path, kind: Foreign) -> OpenedRun:
    """Return a foreign source as a run: its path is all that names it for good."""
    plain = re.sub(r"[^\w.-]+", "-", place.name, flags=re.ASCII).strip("-.")[:60]
    digest = sha256(os.fsencode(place)).hexdigest()[:8]
    manifest = RunManifest(
        format=FORMAT,
        run_id=f"{kind.name}-{plain or 'store'}-{digest}",
        agent=kind.name,
        profile=kind.name,
        host=os.uname().nodename,
    )
    return OpenedRun(place, manifest, kind.name)


def _read_manifest(place: Path, shown: str) -> RunManifest:
    path = place / RUN_FILE
    fd = os.open(path, _OPEN_FLAGS)
    with os.fdopen(fd, "rb") as file:
        regular = stat.S_ISREG(os.fstat(fd).st_mode)
        text = file.read(_MAX_RUN_FILE_BYTES + 1) if regular else b""
    if not regular or len(text) > _MAX_RUN_FILE_BYTES:
        raise TargetError(f"{shown}/{RUN_FILE} is not a file of a run; name another directory")
    try:
        return parse_run(text)
    except ValueError as error:
        raise TargetError(f"{shown}/{RUN_FILE}: {inert(str(error))}") from None


def _no_run(shown: str, runs: list[str]) -> str:
    if runs:
        named = ", ".join(inert(name, 60) for name in runs[:_RUNS_NAMED])
        more = f" and {len(runs) - _RUNS_NAMED} more" if len(runs) > _RUNS_NAMED else ""
        if len(runs) == 1:
            return f"{shown} is no run but holds one; name it: {named}"
        return f"{shown} holds several runs; name one of them: {named}{more}"
    return f"{shown} is not a run: it holds no {RUN_FILE} and no checkpoints; name a run directory"


def _runs_among(place: Path, names: set[str]) -> Iterator[str]:
    for name in names:
        try:
            if (place / name / RUN_FILE).is_file():
                yield name
        except OSError:
            continue
