"""What an earlier start left in a run directory that the next one must know."""

from __future__ import annotations

from pathlib import Path

from memwatch.domain.errors import TargetError
from memwatch.domain.record import Position, Record
from memwatch.host.lock import RUN_LOCK
from memwatch.wal.manifest import parse_run
from memwatch.wal.segment import RUN_FILE, WAL_DIR, segment_name, segments
from memwatch.wal.stream import SegmentStream

_CHUNK_BYTES = 1_000_000
_OF_A_FIRST_START = frozenset({RUN_LOCK, WAL_DIR})  # all that one leaves that dies at once


def known_run(path: Path) -> str | None:
    """Return the run id of a directory, None for a new or empty one.

    Raises TargetError for a directory that is something else: we do not write into it.
    """
    try:
        return parse_run((path / RUN_FILE).read_bytes()).run_id
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise TargetError(f"{path} cannot be gone on with: {error}") from None
    if path.is_dir() and any(entry.name not in _OF_A_FIRST_START for entry in path.iterdir()):
        raise TargetError(f"{path} is not empty and no run; name a new directory")
    return None


def last_experiment(wal_dir: Path) -> int:
    """Return the number of the newest experiment, 0 for none: looks from the newest segment on."""
    for first in reversed(segments(path.name for path in wal_dir.iterdir())):
        newest = _newest_in(wal_dir / segment_name(first), first)
        if newest:
            return newest
    return 0


def _newest_in(path: Path, first: int) -> int:
    stream, newest = SegmentStream(Position(first)), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            numbers = (i.experiment or 0 for i in stream.feed(chunk) if isinstance(i, Record))
            newest = max(newest, *numbers, 0)
    return newest
