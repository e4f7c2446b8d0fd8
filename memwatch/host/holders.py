"""Which processes of this user hold files open, and whether for writing. Read-only, bounded.

Links of /proc/<pid>/fd are read, never followed: a dead mount behind one cannot hang us.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memwatch.host.procfs import PROC, list_pids, read

_DEADLINE_S = 0.5
_MOST_DESCRIPTORS = 50_000
_CLOCK_EVERY = 64
_GONE = " (deleted)"


class Holder(NamedTuple):
    """A process that has a file open."""

    pid: int
    path: str
    """As the kernel names it; bytes that are no UTF-8 stand as surrogates."""
    writing: bool


def holders(
    paths: tuple[str, ...], proc: Path = PROC, deadline_s: float = _DEADLINE_S
) -> tuple[Holder, ...]:
    """Return who has a file open whose absolute path begins with one of `paths`.

    Only processes of this user are looked at, and not this one. What was not reached before the
    deadline or the bound is missing: nobody found is no proof that there is nobody.
    """
    until = time.monotonic() + deadline_s
    found = []
    for count, (pid, number) in enumerate(_descriptors(proc)):
        if count >= _MOST_DESCRIPTORS:
            break
        if count % _CLOCK_EVERY == 0 and time.monotonic() > until:
            break
        try:
            path = os.readlink(f"{proc}/{pid}/fd/{number}")  # noqa: PTH115 -- Path's is five times slower
        except OSError:  # closed since it was listed
            continue
        if path.startswith(paths) and not path.endswith(_GONE):
            found.append(Holder(pid, path, _writes(proc, pid, number)))
    return tuple(found)


def _descriptors(proc: Path) -> Iterator[tuple[int, str]]:
    user, own = os.geteuid(), os.getpid()
    for pid in sorted(list_pids(proc), reverse=True):  # the young ones: agents, not daemons
        try:
            if pid == own or os.stat(f"{proc}/{pid}").st_uid != user:  # noqa: PTH116 -- as above
                continue
            with os.scandir(f"{proc}/{pid}/fd") as entries:
                names = [entry.name for entry in entries]
        except OSError:  # ended, or closed to us
            continue
        for name in names:
            yield pid, name


def _writes(proc: Path, pid: int, number: str) -> bool:
    for line in (read(f"{proc}/{pid}/fdinfo/{number}") or b"").splitlines():
        name, _, value = line.partition(b":")
        if name == b"flags":
            try:
                return int(value, 8) & os.O_ACCMODE != os.O_RDONLY
            except ValueError:
                return False
    return False
