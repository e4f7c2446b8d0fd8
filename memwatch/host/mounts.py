"""What is mounted where: /proc/self/mountinfo, one line a mount."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from memwatch.host.procfs import PROC

_MAX_BYTES = 1 << 22
_OCTAL = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """One mount of this machine."""

    root: str
    """Which directory of the file system lies at the mount point."""
    point: str
    kind: str
    """Type of file system: ext4, nfs4, fuse.sshfs, cgroup2, …"""
    options: frozenset[str]
    """Options of the file system itself; a cgroup of version 1 names its controllers here."""


def read_mounts(proc: Path = PROC) -> list[Mount]:
    """Return all mounts, later ones over earlier ones; none where the kernel tells none."""
    try:
        with Path(f"{proc}/self/mountinfo").open("rb") as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return []
    return [mount for line in text.splitlines() if (mount := _mount(line)) is not None]


def _mount(line: str) -> Mount | None:
    before, dash, after = line.partition(" - ")
    place, system = before.split(" "), after.split(" ")
    if not dash or len(place) < 6 or len(system) < 3:
        return None
    options = frozenset(system[2].split(","))
    return Mount(_plain(place[3]), _plain(place[4]), system[0], options)


def _plain(text: str) -> str:
    r"""Return a path as it is: blanks, tabs and backslashes stand in octal (`\040`)."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
