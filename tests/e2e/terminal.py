"""A command on a terminal of its own.

The screen is drawn through stderr, so that it must be on the terminal, too; errors that come before
anything is drawn can be read apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

from tests.e2e.stage import Process, Stage


class OnTerminal(Process):
    """`memwatch` on a pseudo-terminal of 100 columns."""

    def __init__(self, stage: Stage, *words: str, errors_apart: bool = False) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.shown = b""
        popen = subprocess.Popen(
            [sys.executable, "-m", "memwatch", *words],
            stdin=slave,
            stdout=slave,
            stderr=subprocess.PIPE if errors_apart else slave,
            env={**stage.env, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
            cwd=stage.folder,
            start_new_session=True,
            text=True,
        )
        os.close(slave)
        super().__init__(popen)
        stage.processes.append(self)

    def read_until(self, text: str, seconds: float = 20.0) -> None:
        """Read what is drawn until a text appears."""
        until = time.monotonic() + seconds
        while text.encode() not in self.shown:
            if time.monotonic() > until:
                raise AssertionError(f"{text!r} was not drawn; last: {self.shown[-2000:]!r}")
            ready, _, _ = select.select([self._master], [], [], 0.2)
            if ready:
                with contextlib.suppress(OSError):  # the other end is closed
                    self.shown += os.read(self._master, 1 << 16)

    def rest(self) -> str:
        """Return all that a command that has ended wrote."""
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while piece := os.read(self._master, 1 << 16):
                self.shown += piece
        return self.shown.decode()

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def hang_up(self) -> None:
        """Let the terminal vanish."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def end(self) -> None:
        super().end()
        self.hang_up()
