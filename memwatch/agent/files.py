"""The system calls that the agent's library writes with, in one place: faults go in here.

Everything that must survive (log, checkpoints, manifests, acknowledgements) is written through a
`Files`. A test passes one whose calls fail as a full disk or a dying device makes them fail.
"""

from __future__ import annotations

import os
from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW


class Files:
    """System calls on files; every one raises OSError."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    write = staticmethod(os.write)
    fsync = staticmethod(os.fsync)
    sync_data = staticmethod(os.fdatasync)
    """Enough for an append: its length is part of the data."""
    truncate = staticmethod(os.ftruncate)
    allocate = staticmethod(os.posix_fallocate)
    """Really reserves the room: a later write into it does not meet a full disk."""
    rename = staticmethod(os.replace)
    link = staticmethod(os.link)
    unlink = staticmethod(os.unlink)

    def sync_directory(self, path: Path) -> None:
        """Make names in a directory (created, renamed, removed) survive a power loss."""
        fd = self.open(path, _DIRECTORY)
        try:
            self.fsync(fd)
        finally:
            self.close(fd)

    def write_all(self, fd: int, data: bytes | memoryview) -> None:
        """Write all of `data`; a short write goes on until the device refuses."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.write(fd, rest) :]

    def write_new(self, path: Path, data: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
        """Write a whole file and sync it; a half-written one may stay when this fails."""
        fd = self.open(path, _CREATE, mode)
        try:
            self.write_all(fd, data)
            if sync:
                self.fsync(fd)
        finally:
            self.close(fd)

    def replace(self, path: Path, data: bytes, *, mode: int = 0o644) -> None:
        """Put `data` under a name, atomically and durably: a reader sees the old or the new."""
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        try:
            self.write_new(draft, data, mode=mode)
            self.rename(draft, path)
        except OSError:
            self.discard(draft)
            raise
        self.sync_directory(path.parent)

    def discard(self, path: Path) -> None:
        """Remove a file of ours where that is possible; a leftover harms nobody."""
        try:
            self.unlink(path)
        except OSError:
            return


SYSTEM_FILES = Files()
