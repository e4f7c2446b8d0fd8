"""Whether files of a policy changed: one look at each is cheap enough for every two seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

Stamp = tuple[int, int, int, int] | None
"""Times of change, size and inode of a file; None where there is none."""


def stamp_of(path: Path) -> Stamp:
    """Return what a file looks like from outside; one that cannot be looked at is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


class PolicyFile:
    """All files that may hold a layer of one policy, those that do not exist yet among them."""

    def __init__(self, files: Iterable[Path], stamps: Mapping[Path, Stamp] | None = None) -> None:
        """`stamps` are those from before the files were read; without them, those of now."""
        known = stamps or {}
        self._stamps = {path: known.get(path, stamp_of(path)) for path in files}

    def changed(self) -> bool:
        """Return whether a file changed, came or went since the last call."""
        now = {path: stamp_of(path) for path in self._stamps}
        before, self._stamps = self._stamps, now
        return now != before
