"""`python -m tests.faults.obedient_agent DIR [--at N --moment M] [--serve]`: an agent to kill.

It takes commands until none is left and leaves a file for each time that one had an effect. With
`--at` it dies by SIGKILL at its N-th system call that changes something; with `--serve` it goes
on until it is ended, and says "ready" when it listens.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from pathlib import Path

from memwatch.agent.context import Context
from memwatch.agent.control.listener import ControlListener
from memwatch.agent.control.operation import Operation, Request, Result
from memwatch.agent.files import SYSTEM_FILES, Files
from memwatch.agent.log import LogWriter
from memwatch.domain.clock import SystemClock
from memwatch.wal.spool_format import CUR, NEW
from tests.faults.killing_files import MOMENTS, KillingFiles

EFFECTS = "effects"
_EFFECT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_EVIL = re.compile(r"(a|a)+$")
"""Matching it against many a's and something else takes for ever, and never lets go of the GIL."""


def main() -> int:
    """Obey; returns 0 when nothing waits any more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--at", type=int)
    parser.add_argument("--moment", choices=MOMENTS, default="before")
    parser.add_argument("--serve", action="store_true")
    args = parser.parse_args()
    files = SYSTEM_FILES if args.at is None else KillingFiles(args.at, args.moment)
    listener = _listener(args.directory, files)
    listener.start()
    if args.serve:
        print("ready", flush=True)
    while args.serve or _waiting(args.directory):
        if not args.serve:
            listener.poll()
        listener.safe_point()
        time.sleep(0.001)
    listener.stop()
    return 0


def _listener(path: Path, files: Files) -> ControlListener:
    clock = SystemClock()
    log = LogWriter(path / "wal", clock=clock, durability="os", files=files)
    context = Context(path, "run-1", log, clock, files, start_id=str(os.getpid()))

    def effect(request: Request) -> Result:
        """Leave a file that tells whose effect it is, and of which start."""
        name = f"{request.command_id}.{os.getpid()}"
        files.close(files.open(path / EFFECTS / name, _EFFECT, 0o600))
        return {"effect": name}

    def hog(request: Request) -> Result:
        began = time.monotonic()
        letters = 18
        while time.monotonic() - began < request["seconds"]:
            _EVIL.match("a" * letters + "b")
            letters += 1
        return {}

    operations = {
        "repeat": Operation(run=effect),
        "destroy": Operation(run=effect, idempotent=False, destructive=True),
        "hog": Operation(run=hog, args={"seconds": "how long at least"}),
    }
    return ControlListener(context, operations)


def _waiting(path: Path) -> bool:
    return any(any((path / "control" / folder).iterdir()) for folder in (NEW, CUR))


if __name__ == "__main__":
    sys.exit(main())
