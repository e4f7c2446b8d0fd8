"""What an earlier start left in a run directory that the next one must know."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memwatch.agent.files import Files
from memwatch.domain.errors import TargetError
from memwatch.domain.record import Position, Record
from memwatch.host.lock import RUN_LOCK
from memwatch.wal.manifest import parse_run
from memwatch.wal.segment import (
    CHECKPOINT_DIR,
    CONTROL_DIR,
    RUN_FILE,
    WAL_DIR,
    delta_range,
    full_lsn,
    segment_name,
    segments,
)
from memwatch.wal.stream import SegmentStream

_CHUNK_BYTES = 1_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OF_A_FIRST_START = frozenset({RUN_LOCK, WAL_DIR, CONTROL_DIR})
"""All that one leaves that dies at once."""


def known_run(path: Path) -> str | None:
    """Return the run id of a directory, None for a new or empty one.

    Where `run.json` is gone the log tells it, as for a recovery.
    Raises TargetError for a directory that is something else: we do not write into it.
    """
    try:
        return parse_run((path / RUN_FILE).read_bytes()).run_id
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise TargetError(f"{path} cannot be gone on with: {error}") from None
    named = _named_in_log(path / WAL_DIR)
    if named is not None:
        return named
    if path.is_dir() and any(not _is_of_a_first_start(entry) for entry in path.iterdir()):
        raise TargetError(f"{path} is not empty and no run; name a new directory")
    return None


def run_drafts(path: Path) -> Iterator[Path]:
    """Yield what starts left that were killed while they wrote `run.json`."""
    return path.glob(f".{RUN_FILE}.*.draft")


def _named_in_log(wal_dir: Path) -> str | None:
    """Return the run id that the newest start in a log states."""
    if not wal_dir.is_dir():
        return None
    for first in reversed(segments(path.name for path in wal_dir.iterdir())):
        records = _records(wal_dir / segment_name(first), Position(first))
        named = [r.members.get("run_id") for r in records if r.kind == "run.begin"]
        if named and isinstance(named[-1], str):
            return named[-1]
    return None


def _is_of_a_first_start(entry: Path) -> bool:
    return entry.name in _OF_A_FIRST_START or entry in run_drafts(entry.parent)


def last_lsn(wal_dir: Path) -> int:
    """Return the last good lsn of the newest segment of a log, 0 for a log that has none.

    Looks at the end first: a restart need not read a whole segment.
    """
    first = max(segments(path.name for path in wal_dir.iterdir()), default=None)
    if first is None:
        return 0
    path = wal_dir / segment_name(first)
    size = path.stat().st_size
    for start in sorted({max(size - _CHUNK_BYTES, 0), 0}, reverse=True):
        found = max((record.lsn for record in _records(path, Position(first, start))), default=0)
        if found >= first:
            return found
    return first - 1


def bring_to_device(wal_dir: Path, files: Files) -> None:
    """Sync the segments of earlier starts; raises OSError.

    One that was killed may have left records in the system's memory alone. A power loss would
    take them, and leave a hole before what this start has made durable. A segment that goes
    meanwhile was pruned.
    """
    with suppress(FileNotFoundError):
        for first in segments(path.name for path in wal_dir.iterdir()):
            with suppress(FileNotFoundError):
                _sync(wal_dir / segment_name(first), files)


def _sync(path: Path, files: Files) -> None:
    fd = files.open(path, _READ)
    try:
        files.sync_data(fd)
    finally:
        files.close(fd)


def cleared(path: Path, fd: int, files: Files) -> bool:
    """Empty a segment that holds only the start of its first line; says whether it is empty now.

    Whoever wrote that died before it was acknowledged; left there it would look like a loss.
    """
    try:
        with path.open("rb") as file:
            if any(b"\n" in chunk for chunk in iter(lambda: file.read(_CHUNK_BYTES), b"")):
                return False
        files.truncate(fd, 0)
    except OSError:
        return False
    return True


def last_given(path: Path, recovered_lsn: int, *, lossy: bool) -> int:
    """Return the last number that earlier starts of a run gave, as far as can be told.

    Behind a hole in the log checkpoints may tell of more than it does. Without one the log alone
    counts, whatever an uncommitted one is called: numbers left out would look like a loss.
    """
    return max(recovered_lsn, _newest_named_lsn(path)) if lossy else recovered_lsn


def _newest_named_lsn(path: Path) -> int:
    try:
        names = [entry.name for entry in (path / CHECKPOINT_DIR).iterdir()]
    except OSError:
        return 0
    fulls = [full_lsn(name) or 0 for name in names]
    return max([*fulls, *((delta_range(name) or (0, 0))[1] for name in names)], default=0)


def last_experiment(wal_dir: Path) -> int:
    """Return the number of the newest experiment, 0 for none: looks from the newest segment on."""
    for first in reversed(segments(path.name for path in wal_dir.iterdir())):
        records = _records(wal_dir / segment_name(first), Position(first))
        newest = max((record.experiment or 0 for record in records), default=0)
        if newest:
            return newest
    return 0


def _records(path: Path, position: Position) -> Iterator[Record]:
    stream = SegmentStream(position)
    with path.open("rb") as file:
        file.seek(position.offset)
        while chunk := file.read(_CHUNK_BYTES):
            yield from (item for item in stream.feed(chunk) if isinstance(item, Record))
