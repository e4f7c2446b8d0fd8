"""A memory limit that the kernel enforces, where this machine lets a test make one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from tests.waiting import until

_ENTER = (
    "import os, sys; open(sys.argv[1], 'w').write('0'); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
)
_V1 = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
_V2 = ("memory.max", "memory.swap.max")


class EnforcedLimit:
    """A control group of its own: what is started within is killed over its limit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def within(self, words: list[str]) -> list[str]:
        """Return the words of a Python program that enters the group, then becomes another."""
        return ["-c", _ENTER, str(self.folder / "cgroup.procs"), *words]

    @property
    def kills(self) -> int:
        """How often the kernel killed in it."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                lines = (self.folder / name).read_text().splitlines()
                return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        return 0


@contextlib.contextmanager
def enforced_limit(limit_bytes: int) -> Iterator[EnforcedLimit | None]:
    """Make a group with that limit; None where this machine does not let us (no rights, no v1/v2).

    All processes of it must have ended when the block is left.
    """
    folder = next(filter(None, (_made(parent, limit_bytes) for parent in _parents())), None)
    if folder is None:
        yield None
        return
    try:
        yield EnforcedLimit(folder)
    finally:
        until(lambda: _removed(folder))


def _parents() -> Iterator[Path]:
    """Yield folders in which a group of ours could stand: version 1, then beside ours in 2."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "memory":
            top = Path("/sys/fs/cgroup/memory")
            yield from (top / group.strip("/"), top)
        elif not controllers:
            for top in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
                own = top / group.strip("/")
                yield from (own.parent, own) if own != top else (top,)


def _made(parent: Path, limit_bytes: int) -> Path | None:
    folder = parent / f"mw-test-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
    except OSError:
        return None
    names = next((names for names in (_V1, _V2) if (folder / names[0]).exists()), None)
    try:
        if names is None or not os.access(folder / "cgroup.procs", os.W_OK):
            raise PermissionError
        (folder / names[0]).write_text(str(limit_bytes))
    except OSError:
        folder.rmdir()
        return None
    with contextlib.suppress(OSError):  # without swap, or without its accounting
        (folder / names[1]).write_text("0" if names is _V2 else str(limit_bytes))
    return folder


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
