"""`python -m tests.faults.doomed_guard RUN_DIR CALLS`: a guard that dies while it acts.

From the first tick that asks the agent for something, each function that the engine's thread and
the clerk's call or return from is counted, those of C included: with number CALLS the process is
killed. So it dies between decision, record, request, answer and the record of the answer.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from memwatch.runtime.guard.guard import Guard
from memwatch.runtime.guard.warden import Warden

ACTING = frozenset({"memwatch-warden", "memwatch-clerk"})
"""Threads whose calls count."""


class Doom:
    """Counts; called for each call and return of each thread."""

    def __init__(self, calls: int) -> None:
        self._left = calls
        self._armed = False
        self._asks = Warden._write.__code__

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        if not self._armed:
            self._armed = frame.f_code is self._asks and frame.f_locals.get("sync") is True
        elif threading.current_thread().name in ACTING:
            self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Guard until the end."""
    threading.setprofile(Doom(int(sys.argv[2])))
    Guard(Path(sys.argv[1])).run()


if __name__ == "__main__":
    main()
