"""Files that a run wrote, as they lie in its workspace now, against what its log says (R7)."""

from __future__ import annotations

import hashlib
from pathlib import Path, PurePosixPath

from memwatch.agent.journal import Journal
from memwatch.agent.recovery.place import Place
from memwatch.agent.recovery.report import FileState
from memwatch.domain.errors import DamagedError


def compare_files(workspace: Path, journal: Journal) -> tuple[FileState, ...]:
    """Return the state of each file that should exist; a name that leads out is `missing`."""
    place = Place(workspace)
    found = []
    for path, members in sorted(journal.files().items()):
        there = _hash(place, path)
        if there is None:
            found.append(FileState(path, "missing"))
        else:
            found.append(FileState(path, "same" if there == members.get("hash") else "changed"))
    return tuple(found)


def _hash(place: Place, path: str) -> str | None:
    """Return the hash of a file's content, None where there is no file that may be read."""
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or PurePosixPath(path).is_absolute():
        return None
    content = hashlib.sha256()
    try:
        with place.open(*parts) as file:
            for piece in place.pieces(file, *parts):
                content.update(piece)
    except DamagedError:
        return None
    return content.hexdigest()
