"""Room on the file system of a path, and what a directory holds; a dead mount cannot hang us."""

from __future__ import annotations

import os
import time
from pathlib import Path

from memwatch.domain.clock import Clock
from memwatch.domain.sample import DiskSample
from memwatch.host.deadline import ask

_DEADLINE_S = 2.0


def disk_sample(
    path: Path, clock: Clock, deadline_s: float = _DEADLINE_S, counted: int | None = None
) -> DiskSample | None:
    """Return the room around `path` and what lies below it; None when the disk does not answer.

    What lies below is `counted` where somebody counts it already; else its `run_bytes` is None
    when counting took longer than the deadline.
    """
    room = ask(f"room of {path}", lambda: os.statvfs(path), deadline_s)
    if room is None:
        return None
    return DiskSample(
        t_us=clock.wall_us(),
        total_bytes=room.f_blocks * room.f_frsize,
        free_bytes=room.f_bavail * room.f_frsize,
        free_inodes=room.f_favail if room.f_files else None,  # some file systems count none
        run_bytes=directory_bytes(path, deadline_s) if counted is None else counted,
    )


def directory_bytes(path: Path, deadline_s: float = _DEADLINE_S) -> int | None:
    """Return the bytes that the files below `path` occupy on disk, links not followed.

    None when the directory cannot be read or holds too much to be counted in time.
    """
    until = time.monotonic() + deadline_s
    return ask(f"bytes of {path}", lambda: _count(path, until), deadline_s)


def _count(path: Path, until: float) -> int | None:
    os.scandir(path).close()  # what cannot be read at all is no zero
    total = 0
    seen: set[tuple[int, int]] = set()  # files with several names, counted once
    waiting = [os.fspath(path)]
    while waiting:
        for entry in _entries(waiting.pop()):
            if time.monotonic() > until:
                return None
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            else:
                total += _file_bytes(entry, seen)
    return total


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:  # gone since it was listed, or closed to us
        return []


def _file_bytes(entry: os.DirEntry[str], seen: set[tuple[int, int]]) -> int:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:  # gone since it was listed
        return 0
    if status.st_nlink > 1:
        if (status.st_dev, status.st_ino) in seen:
            return 0
        seen.add((status.st_dev, status.st_ino))
    return status.st_blocks * 512
