"""Small files of /proc, read in one go; a process that is gone or closed to us is None."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")

_READ_BYTES = 1 << 16
_KIB = 1024


def read(path: str) -> bytes | None:
    """Return the first 64 KB of a file, or None when it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, _READ_BYTES)
    except OSError:  # the process ended between open and read
        return None
    finally:
        os.close(fd)


class Stat(NamedTuple):
    """What /proc/<pid>/stat says."""

    pid: int
    command: bytes
    """Name in the kernel: 15 bytes at most, chosen by the process."""
    state: str
    ppid: int
    group: int
    session: int
    threads: int
    start_ticks: int

    @property
    def dead(self) -> bool:
        """A zombie holds no memory and does no work."""
        return self.state in "ZXx"


def read_stat(proc: Path, pid: int) -> Stat | None:
    """Return the state of a process, or None when there is none to be read."""
    text = read(f"{proc}/{pid}/stat")
    if text is None:
        return None
    # The name stands in brackets and may hold brackets itself: the last one ends it.
    head, bracket, tail = text.rpartition(b")")
    fields = tail.split()
    if not bracket or len(fields) < 20:
        return None
    try:
        ppid, group, session = (int(field) for field in fields[1:4])
        threads, start_ticks = int(fields[17]), int(fields[19])
    except ValueError:
        return None
    command = head.partition(b"(")[2]
    state = fields[0].decode("ascii", "replace")
    return Stat(pid, command, state, ppid, group, session, threads, start_ticks)


class Memory(NamedTuple):
    """Resident and swapped bytes of one process."""

    rss_bytes: int
    swap_bytes: int


def read_memory(proc: Path, pid: int) -> Memory:
    """Return what a process holds; zeros when it is gone."""
    text = read(f"{proc}/{pid}/status") or b""
    return Memory(_kib(text, b"\nVmRSS:"), _kib(text, b"\nVmSwap:"))


def read_peak(proc: Path, pid: int) -> int:
    """Return the most bytes that a process ever held resident; 0 when it is gone."""
    return _kib(read(f"{proc}/{pid}/status") or b"", b"\nVmHWM:")


def read_real_uid(proc: Path, pid: int) -> int | None:
    """Return the user who runs a process, or None when it is gone."""
    uid = _figure(read(f"{proc}/{pid}/status") or b"", b"\nUid:")
    return int(uid) if uid else None


def read_arguments(proc: Path, pid: int) -> list[str]:
    """Return the command line of a process, as it stands in its memory now: untrusted text."""
    text = read(f"{proc}/{pid}/cmdline") or b""
    return [part.decode("utf-8", "replace") for part in text.rstrip(b"\0").split(b"\0") if part]


def count_descriptors(proc: Path, pid: int) -> int | None:
    """Return how many descriptors a process has open, or None where that is not ours to know."""
    try:
        with os.scandir(f"{proc}/{pid}/fd") as entries:
            return sum(1 for _ in entries)
    except OSError:
        return None


def list_pids(proc: Path) -> list[int]:
    """Return the processes of this machine that we see."""
    try:
        names = os.listdir(proc)  # noqa: PTH208 -- names only: a Path for each costs more than the rest
    except OSError:
        return []
    return [int(name) for name in names if name.isascii() and name.isdecimal()]


def _kib(text: bytes, name: bytes) -> int:
    return int(_figure(text, name) or 0) * _KIB


def _figure(text: bytes, name: bytes) -> bytes:
    """Return the first figure behind a name, or nothing."""
    start = text.find(name)
    if start < 0:
        return b""
    words = text[start + len(name) : start + len(name) + 32].split(maxsplit=1)
    return words[0] if words and words[0].isdigit() else b""
