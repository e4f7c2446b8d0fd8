"""Keeps the demo tidy: starts the engine, and leaves nothing behind when it is over.

`python -m memwatch.demo.keeper RUN_DIR [--stay S] ENGINE_OPTION...` is a process of its own
session, so that a terminal that vanishes takes only the viewer with it, as with any other run. It
reads commands from its standard input: a line `quit` ends the demo now. When the other end closes
without a word (the terminal is gone), the demo goes on for `--stay` seconds, so that the next
login finds it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from memwatch.config.locations import run_home
from memwatch.domain.command import Command
from memwatch.domain.errors import MemwatchError, SessionError
from memwatch.runtime.runs.attach import Attachment

STAY_S = 600.0
"""How long the demo goes on when its terminal is gone."""
ENDED_S = 90.0
"""How long a demo whose engine has ended (out of memory, say) stays to be looked at unattended."""
_ENGINE = (sys.executable, "-m", "memwatch.demo", "--end-with-stdin")
_GRACE_S = 5.0
_GUARD_GRACE_S = 20.0


def main(words: list[str]) -> int:
    """Run the engine until it is told to quit; then remove the run and what was kept of it."""
    parser = argparse.ArgumentParser(prog="python -m memwatch.demo.keeper", allow_abbrev=False)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--stay", type=float, default=STAY_S)
    options, engine_options = parser.parse_known_args(words)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    engine = subprocess.Popen(
        [*_ENGINE, str(options.run_dir), *engine_options],
        stdin=subprocess.PIPE,  # closed by our death, whatever we die of
        stdout=subprocess.DEVNULL,
        cwd=os.sep,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        _wait(engine, options.stay)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end(engine)
        _clean(options.run_dir)
    return 0


def _wait(engine: subprocess.Popen[bytes], stay_s: float) -> None:
    """Return when a person said quit, or nobody can any more."""
    if os.read(sys.stdin.fileno(), 100):  # blocks as long as the other end is there
        return
    until = time.monotonic() + stay_s
    while time.monotonic() < until:
        if engine.poll() is not None:
            until = min(until, time.monotonic() + ENDED_S)
        time.sleep(min(1.0, max(until - time.monotonic(), 0.0)))


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
        _end_guard(attachment)
    shutil.rmtree(run_dir, ignore_errors=True)
    if key is not None:
        shutil.rmtree(run_home(key), ignore_errors=True)


def _end_guard(attachment: Attachment) -> None:
    """Ask again until none is left: one that a viewer is just starting may not listen yet."""
    until = time.monotonic() + _GUARD_GRACE_S
    while attachment.guard_pid is not None and time.monotonic() < until:
        with contextlib.suppress(SessionError):
            session = attachment.connect()
            session.submit(Command(op="guard.stop", why="the demo is over"))
            session.close()
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
