"""`memwatch guard`: record and guard a run without a screen, or end the guard of one."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memwatch.domain.errors import SessionError, TargetError, UsageError
from memwatch.domain.text import inert
from memwatch.runtime.runs.target import newest_live, resolve

_EXAMPLE = """examples:
  memwatch guard ./runs/night-7            in the foreground, ctrl-c ends it
  memwatch guard ./runs/night-7 --detach   in the background, outlives this terminal
  memwatch guard ./runs/night-7 --stop     end it; the agent goes on

A guard ends by itself 60 s after its run ended and its last viewer left."""
_STOP_TIMEOUT_S = 30.0
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


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
        return _stop(newest_live() if options.target is None else resolve(options.target))
    if options.target is None:
        raise UsageError("name the run to guard, for example: memwatch guard ./runs/night-7")
    path = resolve(options.target)
    return _detach(path) if options.detach else _watch(path)


def _watch(path: Path) -> int:
    from memwatch.host.lock import LockHeldError
    from memwatch.runtime.guard.guard import Guard

    ending = _signals_that_end_us()
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # all threads to come inherit this
    try:
        guard = Guard(path)
    except LockHeldError as error:
        print(f"already guarded by {f'process {error.pid}' if error.pid else 'another process'}")
        return 0
    failures = _end_on(ending, guard.stop)
    print(f"watching {inert(guard.run_key, 60)}, pid {os.getpid()}; it does not act", flush=True)
    _relax_collector()
    guard.run()
    return int(bool(failures))


def _relax_collector() -> None:
    """Let the collector skip what lives as long as we do: a sixth of the time of catching up."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _signals_that_end_us() -> set[signal.Signals]:
    """Return the signals that end a guard: not those that `nohup` or a shell made us ignore."""
    return {number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN}


def _end_on(ending: set[signal.Signals], stop: Callable[[], None]) -> list[str]:
    """Stop when a signal comes or a thread fails; returns where failures are noted.

    A thread waits for the signals: a handler could come while the main thread holds the very lock
    that waking it needs.
    """
    failures: list[str] = []

    def fail(failure: threading.ExceptHookArgs) -> None:
        failures.append(failure.exc_type.__name__)
        threading.__excepthook__(failure)
        stop()

    def wait() -> None:
        signal.sigwait(ending)
        stop()

    threading.excepthook = fail
    threading.Thread(target=wait, name="memwatch-signals", daemon=True).start()
    return failures


def _detach(path: Path) -> int:
    from memwatch.runtime.runs.attach import Attachment

    attachment = Attachment(path)
    attachment.ensure().close()
    name = attachment.shown
    print(f"guard {attachment.guard_pid} watches {name}; end it with: memwatch guard --stop {name}")
    return 0


def _stop(path: Path) -> int:
    from memwatch.domain.command import Command
    from memwatch.runtime.runs.attach import Attachment

    attachment = Attachment(path)
    pid = attachment.guard_pid
    if pid is None:
        raise TargetError(f"no guard watches {attachment.shown}")
    with suppress(SessionError):  # one that is ending already does not answer: its lock tells
        session = attachment.connect()
        session.submit(Command(op="guard.stop", why="memwatch guard --stop"))
        session.close()
    until = time.monotonic() + _STOP_TIMEOUT_S
    while attachment.guard_pid == pid:
        if time.monotonic() > until:
            raise SessionError(f"guard {pid} was asked to end and has not yet; look into guard.log")
        time.sleep(0.05)
    print(f"guard of {attachment.shown} ended; the agent goes on")
    return 0
