"""The viewer ends with its terminal, and gives it back where it can."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from memwatch.ui.terminal.lifeline import EXIT_HUNG_UP
from tests.waiting import until

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
APP = [sys.executable, "-m", "tests.ui.fake_app", "--theme", "plain16"]
PATIENCE_S = 10.0
"""How long a viewer may outlive its terminal."""


class Viewer:
    """The dashboard on a fake run in a process and a pseudo-terminal of its own."""

    def __init__(self, *command: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.seen = b""
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=lambda: os.login_tty(slave),
        )

    def read(self) -> bytes:
        """Read what came; returns all that was ever seen."""
        with contextlib.suppress(OSError):
            while select.select([self.master], [], [], 0)[0]:
                self.seen += os.read(self.master, 1 << 16)
        return self.seen

    def open_up(self) -> None:
        """Wait until the dashboard is drawn."""
        until(lambda: b"MEMORY" in self.read())

    def hang_up(self) -> None:
        """Let the terminal vanish."""
        os.close(self.slave)
        os.close(self.master)
        self.slave = self.master = -1

    def ended(self) -> int | None:
        """Return the exit status, None while it runs; keeps reading, as a terminal does."""
        if self.master >= 0:
            self.read()
        return self.process.poll()

    def close(self) -> None:
        """End the process if it still runs, by its id."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for fd in (self.slave, self.master):
            if fd >= 0:
                os.close(fd)


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    found = Viewer(*APP)
    try:
        found.open_up()
        yield found
    finally:
        found.close()


def wait_for_end(viewer: Viewer) -> int:
    until(lambda: viewer.ended() is not None, PATIENCE_S)
    status = viewer.ended()
    assert status is not None
    return status


def test_q_ends_it_and_the_terminal_is_as_before(viewer: Viewer) -> None:
    os.write(viewer.master, b"q")
    assert wait_for_end(viewer) == 0
    left = viewer.read().split(b"\x1b[?1049h")[1]
    for sequence in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1004l", b"\x1b[?1003l", b"\x1b[<u"):
        assert sequence in left
    assert termios.tcgetattr(viewer.slave) == viewer.before


def test_m_switches_the_mouse_on_and_off(viewer: Viewer) -> None:
    assert b"\x1b[?1000h" in viewer.seen
    os.write(viewer.master, b"m")
    until(lambda: b"\x1b[?1000l" in viewer.read())
    viewer.seen = b""
    os.write(viewer.master, b"m")
    until(lambda: b"\x1b[?1000h" in viewer.read())


def test_over_ssh_the_mouse_is_off_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    viewer = Viewer(*APP)
    try:
        viewer.open_up()
        assert b"\x1b[?1000h" not in viewer.seen
    finally:
        viewer.close()


def test_sigterm_ends_it_and_the_terminal_is_as_before(viewer: Viewer) -> None:
    viewer.process.send_signal(signal.SIGTERM)
    wait_for_end(viewer)
    assert b"\x1b[?1049l" in viewer.read()
    assert termios.tcgetattr(viewer.slave) == viewer.before


def test_it_ends_when_the_terminal_vanishes(viewer: Viewer) -> None:
    viewer.hang_up()
    wait_for_end(viewer)


def test_it_ends_when_the_terminal_vanishes_and_the_signal_is_ignored() -> None:
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    viewer = Viewer(sys.executable, "-c", ignoring, *APP[1:])
    try:
        viewer.open_up()
        viewer.hang_up()
        wait_for_end(viewer)
    finally:
        viewer.close()


def test_it_ends_when_its_parent_dies() -> None:
    parenting = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, *sys.argv[1:]]);"
        "print('CHILD', child.pid, flush=True); child.wait()"
    )
    viewer = Viewer(sys.executable, "-c", parenting, *APP[1:])
    try:
        viewer.open_up()
        child = int(viewer.seen.split(b"CHILD ")[1].split()[0])
        viewer.process.kill()
        viewer.process.wait()
        until(lambda: not _runs(child), PATIENCE_S)
    finally:
        viewer.close()


def test_it_ends_on_sigterm_although_the_terminal_takes_nothing(viewer: Viewer) -> None:
    termios.tcflow(viewer.slave, termios.TCOOFF)  # output blocks, as behind a stalled line
    os.write(viewer.master, b"\x0c")
    viewer.process.send_signal(signal.SIGTERM)
    assert wait_for_end(viewer) == EXIT_HUNG_UP
    assert termios.tcgetattr(viewer.slave) == viewer.before


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
