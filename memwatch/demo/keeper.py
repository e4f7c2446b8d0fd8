"""Keeps the demo tidy: starts the engine, and leaves nothing behind when it is over.

`python -m memwatch.demo.keeper RUN_DIR ENGINE_OPTION...` is a process of its own session, so that
a terminal that vanishes takes only the viewer with it, as with any other run. It reads commands
from its standard input: a line `quit` ends the demo now. When the other end closes without a
word (the terminal is gone), the demo goes on for a while, so that the next login finds it.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from memwatch.config.locations import run_home
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError
from memwatch.runtime.attach import Attachment

ORPHANED_S = 600.0
"""How long the demo goes on when its terminal is gone."""
ENDED_S = 90.0
"""How long a demo whose engine has ended (out of memory, say) stays to be looked at unattended."""
_GRACE_S = 5.0


def main(words: list[str]) -> int:
    """Run the engine until it is told to quit; then remove the run and what was kept of it."""
    run_dir = Path(words[0])
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    engine = subprocess.Popen(
        [sys.executable, "-m", "memwatch.demo", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd=os.sep,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        _wait(engine)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end(engine)
        _clean(run_dir)
    return 0


def _wait(engine: subprocess.Popen[bytes]) -> None:
    """Return when a person said quit, or nobody can any more."""
    attended = True
    until = float("inf")
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.buffer.fileno(), selectors.EVENT_READ)
        while time.monotonic() < until:
            if attended and selector.select(timeout=1.0):
                if os.read(sys.stdin.fileno(), 100):
                    return
                attended = False
                selector.unregister(sys.stdin.fileno())
                until = time.monotonic() + ORPHANED_S
            elif not attended:
                time.sleep(1.0)
            if not attended and engine.poll() is not None:
                until = min(until, time.monotonic() + ENDED_S)


def _end(engine: subprocess.Popen[bytes]) -> None:
    if engine.poll() is None:
        engine.terminate()
        try:
            engine.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            engine.kill()
            engine.wait()


def _clean(run_dir: Path) -> None:
    """End the demo's guard and remove its run: both are ours, made for this demo alone."""
    key = None
    with contextlib.suppress(MemwatchError, OSError):
        attachment = Attachment(run_dir)
        key = attachment.key
        session = attachment.connect()
        session.submit(Command(op="guard.stop", why="the demo is over"))
        session.close()
        until = time.monotonic() + _GRACE_S
        while attachment.guard_pid is not None and time.monotonic() < until:
            time.sleep(0.05)
    shutil.rmtree(run_dir, ignore_errors=True)
    if key is not None:
        shutil.rmtree(run_home(key), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
