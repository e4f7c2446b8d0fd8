"""Room on the disk that is kept for `guard.wal`, so that a full disk does not forbid acting.

A guard may only do what it wrote down before. When it is to do something and the disk is full the
reserve is given up, at once and whole; it is made again as soon as there is room for it several
times. Source: D7; control, F46.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from memwatch.agent.files import SYSTEM_FILES, Files

RESERVE_FILE: Final = "reserve"
_ROOM_TIMES: Final = 4
"""The reserve is made where there is room for so many: it must not itself fill a disk."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class DiskReserve:
    """A file that holds nothing but its place. Thread-safe: each step is one system call."""

    def __init__(self, folder: Path, files: Files = SYSTEM_FILES) -> None:
        """`folder` is that of the log which the room is kept for."""
        self._path = folder / RESERVE_FILE
        self._files = files
        self.wanted_bytes = 0
        """How much is to be kept; 0 for nothing."""
        self._lacking = False

    @property
    def held_bytes(self) -> int:
        """Bytes that are kept for us now."""
        try:
            return self._path.lstat().st_size
        except OSError:
            return 0

    def give_up(self) -> bool:
        """Let the room be used now; False when there was none left."""
        held = self.held_bytes
        self._files.discard(self._path)
        return held > 0 and not self.held_bytes

    def look(self) -> str:
        """Make the reserve again where there is room; returns what changed, for people."""
        lacking = self.held_bytes != self.wanted_bytes and not self._make(self.wanted_bytes)
        if lacking == self._lacking:
            return ""
        self._lacking = lacking
        return "not there: the disk is full" if lacking else "is there again"

    def _make(self, size_bytes: int) -> bool:
        """Allocate exactly so much; False where there is no room."""
        self._files.discard(self._path)
        if not size_bytes:
            return True
        try:
            room = os.statvfs(self._path.parent)
            if room.f_bavail * room.f_frsize < _ROOM_TIMES * size_bytes:
                return False
            fd = self._files.open(self._path, _CREATE, 0o600)
            try:
                self._files.allocate(fd, 0, size_bytes)
            finally:
                self._files.close(fd)
        except OSError:
            self._files.discard(self._path)  # half of it may be there, and its room is needed
            return False
        return True
