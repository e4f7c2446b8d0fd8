"""What a terminal program costs: time to a first useful screen, CPU, memory, bytes it writes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.")


@dataclass(frozen=True)
class Cost:
    """Figures of one run; CPU and memory are of the process alone, after the warm-up."""

    useful_s: float
    cpu_percent: float
    rss_bytes: int
    bytes_per_s: float


class Screen:
    """A program on a pseudo-terminal whose output is counted and thrown away."""

    def __init__(self, argv: Sequence[str], columns: int, rows: int, env: dict[str, str]) -> None:
        self.began = time.monotonic()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", **env)
            for name in ("LINES", "COLUMNS", "SSH_CONNECTION", "NO_COLOR"):
                os.environ.pop(name, None)
            os.execvp(argv[0], list(argv))
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, size)
        self.process = psutil.Process(self.pid)
        self.written = 0
        self._seen = b""

    def read(self, seconds: float, until: re.Pattern[bytes] | None = None) -> float | None:
        """Read for a time, or until the text matches; returns when it did, None if it never did."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._fd], [], [], min(left, 0.05))[0]:
                continue
            data = os.read(self._fd, 1 << 16)
            self.written += len(data)
            if b"\x1b[6n" in data:
                os.write(self._fd, b"\x1b[1;1R")
            if until is not None:
                self._seen = (self._seen + data)[-(1 << 18) :]
                if until.search(_ESCAPES.sub(b"", self._seen)):
                    return time.monotonic() - self.began
        return None

    def close(self) -> None:
        """End the program."""
        os.kill(self.pid, signal.SIGTERM)
        with contextlib.suppress(OSError):
            self.read(2.0)
        self.process.kill()
        os.waitpid(self.pid, 0)
        os.close(self._fd)


def measure(
    argv: Sequence[str],
    size: tuple[int, int],
    until: str,
    *,
    warm_s: float,
    seconds: float,
    env: dict[str, str] | None = None,
) -> Cost:
    """Run a program and measure it; raises TimeoutError when its screen never shows `until`."""
    screen = Screen(argv, *size, env or {})
    try:
        useful = screen.read(30.0, re.compile(until.encode()))
        if useful is None:
            raise TimeoutError(f"{argv[0]} never showed {until!r}")
        screen.read(warm_s)
        before, cpu, began = screen.written, cpu_s(screen.process), time.monotonic()
        screen.read(seconds)
        span = time.monotonic() - began
        return Cost(
            useful_s=useful,
            cpu_percent=(cpu_s(screen.process) - cpu) / span * 100,
            rss_bytes=screen.process.memory_info().rss,
            bytes_per_s=(screen.written - before) / span,
        )
    finally:
        screen.close()


def cpu_s(process: psutil.Process) -> float:
    """Return the processor time that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)
