"""Who a process is: a number alone is given again, so boot id and start time belong to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from memwatch.domain.clock import Clock
from memwatch.host.procfs import PROC, read, read_peak, read_real_uid, read_stat


class Identity(Struct, frozen=True):
    """A process of this boot; `exe` and `uid` are checked where they are known."""

    boot_id: str
    pid: int
    start_ticks: int
    """Start time in clock ticks since boot."""
    exe: str = ""
    uid: int | None = None


class Registered(Protocol):
    """What a run says of its process (`run.json` does)."""

    @property
    def boot_id(self) -> str: ...
    @property
    def pid(self) -> int: ...
    @property
    def start_ticks(self) -> int: ...


def boot_id(proc: Path = PROC) -> str:
    """Return the id of this boot, or "" where the kernel tells none."""
    text = read(f"{proc}/sys/kernel/random/boot_id") or b""
    return text.decode("ascii", "replace").strip()


def identity_of(pid: int, proc: Path = PROC) -> Identity | None:
    """Return who has this number now, or None when nobody has or only a zombie."""
    stat = read_stat(proc, pid)
    if stat is None or stat.dead:
        return None
    return Identity(boot_id(proc), pid, stat.start_ticks, _exe(proc, pid), read_real_uid(proc, pid))


def peak_bytes(proc: Path = PROC) -> int:
    """Return the most that this process ever held resident; 0 where the kernel does not tell.

    Of its own program only: `getrusage` remembers the one that started it, too.
    """
    return read_peak(proc, os.getpid())


def age_us(clock: Clock, proc: Path = PROC) -> int | None:
    """Return for how long this process has been there, to a tick of the kernel (10 ms).

    `clock` is that of the machine: start times are counted on it. None where the kernel does not
    tell the start, or tells one that cannot be.
    """
    stat = read_stat(proc, os.getpid())
    if stat is None or stat.start_ticks < 1:
        return None
    age = clock.boot_us() - stat.start_ticks * 1_000_000 // os.sysconf("SC_CLK_TCK")
    return age if age >= 0 else None


def waited_s(proc: Path = PROC) -> float | None:
    """Return for how long this process could have run and others did; None where nobody counts.

    Of its main thread, since its start.
    """
    figures = (read(f"{proc}/self/schedstat") or b"").split()
    return int(figures[1]) / 1e9 if len(figures) > 1 and figures[1].isdigit() else None


def identity_of_run(run: Registered) -> Identity | None:
    """Return the identity that a run registered, or None when it names no process for certain."""
    if run.pid < 1 or run.start_ticks < 1 or not run.boot_id:
        return None
    return Identity(run.boot_id, run.pid, run.start_ticks)


def is_alive(identity: Identity, proc: Path = PROC) -> bool:
    """Say whether this very process lives; a zombie is dead.

    An identity without a start time or from another boot is never alive: its number may belong
    to a stranger by now.
    """
    stat = read_stat(proc, identity.pid)
    if stat is None or stat.dead or not 0 < identity.start_ticks == stat.start_ticks:
        return False
    if identity.boot_id != boot_id(proc):
        return False
    exe = _exe(proc, identity.pid) if identity.exe else ""
    if exe and exe != identity.exe:
        return False
    return identity.uid is None or identity.uid == read_real_uid(proc, identity.pid)


def _exe(proc: Path, pid: int) -> str:
    try:
        exe = Path(f"{proc}/{pid}/exe").readlink()
    except OSError:
        return ""
    return str(exe).removesuffix(" (deleted)")  # an upgrade of the program does not make it another
