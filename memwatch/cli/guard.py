"""`memwatch guard`: record and guard a run without a screen, or end the guard of one."""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

from memwatch.domain.errors import SessionError, TargetError, UsageError
from memwatch.runtime.target import newest_live, resolve

_EXAMPLE = """examples:
  memwatch guard ./runs/night-7            in the foreground, ctrl-c ends it
  memwatch guard ./runs/night-7 --detach   in the background, outlives this terminal
  memwatch guard ./runs/night-7 --stop     end it; the agent goes on

A guard ends by itself 60 s after its run ended and its last viewer left."""
_STOP_TIMEOUT_S = 15.0


def run(words: list[str]) -> int:
    """Guard a run until a signal or its end."""
    parser = argparse.ArgumentParser(
        prog="memwatch guard",
        description="Records and guards a run without a screen.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("target", nargs="?", help="run directory or run id")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--detach", action="store_true", help="start it in the background")
    what.add_argument("--stop", action="store_true", help="end the guard of the target")
    options = parser.parse_args(words)
    if options.stop:
        return _stop(resolve(options.target) if options.target else newest_live())
    if options.target is None:
        raise UsageError("name the run to guard, for example: memwatch guard ./runs/night-7")
    path = resolve(options.target)
    return _detach(path) if options.detach else _watch(path)


def _watch(path: Path) -> int:
    from memwatch.host.lock import LockHeldError
    from memwatch.runtime.guard import Guard

    try:
        guard = Guard(path)
    except LockHeldError as error:
        print(f"already guarded by process {error.pid}")
        return 0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: guard.stop())
    print(f"watching {guard.run_key}, pid {os.getpid()}; it does not act", flush=True)
    guard.run()
    return 0


def _detach(path: Path) -> int:
    from memwatch.runtime.attach import Attachment

    attachment = Attachment(path)
    attachment.ensure().close()
    print(
        f"guard {attachment.guard_pid} watches {attachment.run_id}; "
        f"end it with: memwatch guard --stop {attachment.run_id}"
    )
    return 0


def _stop(path: Path) -> int:
    from memwatch.domain.command import Command
    from memwatch.runtime.attach import Attachment

    attachment = Attachment(path)
    pid = attachment.guard_pid
    try:
        session = attachment.connect()
        session.submit(Command(op="guard.stop", why="memwatch guard --stop"))
        session.close()
    except SessionError:
        if pid is None:
            raise TargetError(f"no guard watches {attachment.run_id}") from None
        raise
    until = time.monotonic() + _STOP_TIMEOUT_S
    while attachment.guard_pid == pid and time.monotonic() < until:
        time.sleep(0.05)
    if attachment.guard_pid == pid and pid is not None:
        raise SessionError(f"guard {pid} was asked to end and has not yet")
    print(f"guard of {attachment.run_id} ended; the agent goes on")
    return 0
