"""Memory limits that are in force where a process really is: its cgroups, and this machine.

Version 2 and 1 of control groups are read side by side: a machine may have both mounted. Each
group up to the mount point counts, for a limit above binds all below. Source: metrics (binding
limit).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from memwatch.domain.snapshot import Limit
from memwatch.domain.text import inert
from memwatch.host.mounts import Mount, read_mounts
from memwatch.host.procfs import PROC, read

_UNLIMITED = 1 << 60  # version 1 says "no limit" with a number near 2^63
_SOFT = "soft: reclaims only while the machine is short of memory"
_APART = "its group does not bind those below it"


class HostMemory(NamedTuple):
    """Memory of this machine."""

    total_bytes: int
    available_bytes: int
    """What can be had without swapping, as the kernel estimates it."""


class _File(NamedTuple):
    name: str
    why: str = ""
    """Why the limit does not bind; empty for one that does."""


_V2 = (_File("memory.max"), _File("memory.high"))
_V1 = (
    _File("memory.limit_in_bytes"),
    _File("memory.memsw.limit_in_bytes"),
    _File("memory.soft_limit_in_bytes", _SOFT),
)


def memory_limits(pid: int, proc: Path = PROC, root: Path = Path("/")) -> list[Limit]:
    """Return the memory limits of the groups that hold a process, innermost first.

    `root` stands before mount points. Nothing when the process or its groups cannot be read.
    """
    found: list[Limit] = []
    mounts = read_mounts(proc)
    for controllers, group in _groups(proc, pid):
        mount = _mount_of(controllers, group, mounts)
        if mount is not None:
            files = _V2 if mount.kind == "cgroup2" else _V1
            found += _limits_up(root / mount.point.lstrip("/"), _below(mount, group), files)
    return found


def group_of(pid: int, proc: Path = PROC, root: Path = Path("/")) -> Path | None:
    """Return the folder of a process's group of version 2; None where it is not to be seen.

    `root` stands before mount points.
    """
    mounts = read_mounts(proc)
    for controllers, group in _groups(proc, pid):
        mount = None if controllers else _mount_of(controllers, group, mounts)
        if mount is not None and _holds(mount, group):
            return (root / mount.point.lstrip("/")).joinpath(*_below(mount, group))
    return None


def binding(limits: Iterable[Limit]) -> Limit | None:
    """Return the smallest limit in force."""
    in_force = (limit for limit in limits if limit.in_force)
    return min(in_force, key=lambda limit: limit.bytes, default=None)


def host_memory(proc: Path = PROC) -> HostMemory | None:
    """Return memory of this machine, or None where the kernel does not tell."""
    figures: dict[bytes, int] = {}
    for line in (read(f"{proc}/meminfo") or b"").splitlines():
        name, _, rest = line.partition(b":")
        words = rest.split()
        if words and words[0].isdigit():
            figures[name] = int(words[0]) * 1024
    if b"MemTotal" not in figures or b"MemAvailable" not in figures:
        return None
    return HostMemory(figures[b"MemTotal"], figures[b"MemAvailable"])


def _groups(proc: Path, pid: int) -> Iterator[tuple[frozenset[str], str]]:
    """Yield the controllers (none for version 2) and path of each hierarchy of a process."""
    text = read(f"{proc}/{pid}/cgroup") or b""
    for line in text.decode("utf-8", "surrogateescape").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            yield frozenset(filter(None, parts[1].split(","))), parts[2]


def _mount_of(controllers: frozenset[str], group: str, mounts: list[Mount]) -> Mount | None:
    if controllers and "memory" not in controllers:
        return None
    kind = "cgroup" if controllers else "cgroup2"
    fitting = [m for m in mounts if m.kind == kind and controllers <= m.options]
    # A container sees a part of the tree mounted: the part that holds the group goes first.
    return max(fitting, key=lambda mount: len(mount.root) * _holds(mount, group), default=None)


def _holds(mount: Mount, group: str) -> bool:
    root = mount.root.rstrip("/")
    return group == root or group.startswith(root + "/")


def _below(mount: Mount, group: str) -> list[str]:
    """Return the steps from the mount point down to the group."""
    steps = group[len(mount.root.rstrip("/")) :] if _holds(mount, group) else ""
    names = [name for name in steps.split("/") if name]
    return [] if ".." in names else names  # outside of what we see: only the top is ours to read


def _limits_up(point: Path, names: list[str], files: tuple[_File, ...]) -> Iterator[Limit]:
    for depth in range(len(names), -1, -1):
        group = point.joinpath(*names[:depth])
        inherited = depth == len(names) or _text(group / "memory.use_hierarchy") != b"0"
        shown = "/" + "/".join(names[:depth])
        for file in files:
            limit_bytes = _limit(group / file.name)
            if limit_bytes is None:
                continue
            why = file.why or ("" if inherited else _APART)
            name = f"cgroup {inert(shown, 120)} {file.name}"
            yield Limit(name=name, bytes=limit_bytes, in_force=not why, why=why)


def _limit(path: Path) -> int | None:
    text = _text(path)
    figure = int(text) if text.isdigit() else 0
    return figure if 0 < figure < _UNLIMITED else None


def _text(path: Path) -> bytes:
    return (read(str(path)) or b"").strip()
