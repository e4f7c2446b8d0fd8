"""`memwatch guard`: record and guard a run without a screen, or end the guard of one."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memwatch.cli.amounts import duration
from memwatch.cli.asking import ask, status_of
from memwatch.cli.engine_text import will_text
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import Command
from memwatch.domain.errors import SessionError, TargetError, UsageError
from memwatch.domain.level import ACTING, ENGINE_MODES
from memwatch.domain.text import inert
from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.keeper import keeper_of
from memwatch.runtime.runs.target import newest_live, resolve

_EXAMPLE = """examples:
  memwatch guard ./runs/night-7            in the foreground, ctrl-c ends it
  memwatch guard ./runs/night-7 --detach --mode act --for 10h
  memwatch guard ./runs/night-7 --stop     end it; the agent goes on
  memwatch guard ./runs/night-7 --unit     a systemd unit, with how to install it

Detached it outlives this terminal, and is started again when it is killed.
A guard ends by itself 60 s after its run ended and its last viewer left."""
_STOP_TIMEOUT_S = 30.0
_ENDING_S = 5.0
"""One that does not take the request may be ending already: its lock tells."""
_LISTEN_TIMEOUT_S = 120.0
"""Reading a long log and its history comes before listening."""
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(words: list[str]) -> int:
    """Guard a run until a signal or its end."""
    options = _parser().parse_args(words)
    _check(options)
    if options.stop:
        return _stop(newest_live() if options.target is None else resolve(options.target))
    if options.target is None:
        raise UsageError("name the run to guard, for example: memwatch guard ./runs/night-7")
    path = resolve(options.target)
    if options.unit:
        return _unit(path, options)
    return _detach(path, options) if options.detach else _watch(path, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memwatch guard",
        description="Records and guards a run without a screen.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("target", nargs="?", help="run directory, checkpoint store or run id")
    add(
        "--mode",
        choices=ENGINE_MODES,
        help="what its engine may do; default: as before, else the policy",
    )
    add("--for", dest="until_s", type=duration, metavar="T", help="with --mode: 8h, 45m, …")
    add("--policy", type=Path, metavar="FILE", help="a policy that goes before all others")
    what = parser.add_mutually_exclusive_group()
    add = what.add_argument
    add("--detach", action="store_true", help="start it in the background")
    add("--stop", action="store_true", help="end the guard of the target")
    add("--unit", action="store_true", help="print a systemd user unit for it, start nothing")
    return parser


def _check(options: argparse.Namespace) -> None:
    """Refuse what makes no sense together; raises UsageError."""
    if options.until_s and options.mode not in ACTING:
        raise UsageError("--for goes with --mode act or ask, for example: --mode act --for 10h")
    if options.stop and (options.mode or options.policy):
        raise UsageError("--stop ends a guard: it takes neither --mode nor --policy")
    if options.unit and options.until_s:
        raise UsageError(
            "a unit begins again at each boot, and its time with it: leave --for out, and say "
            "memwatch ctl TARGET mode act --for 10h in the evening"
        )
    if options.policy and not options.policy.is_file():
        raise UsageError(f"{inert(str(options.policy))} is no file; name one that holds a policy")


def _words(options: argparse.Namespace, *, mode: bool) -> list[str]:
    """Return the options for another `memwatch guard`, which runs in another folder."""
    words = ["--policy", str(options.policy.absolute())] if options.policy else []
    return [*words, "--mode", options.mode] if mode and options.mode else words


def _mode_command(options: argparse.Namespace) -> Command:
    args: dict[str, Any] = {"mode": options.mode}
    if options.until_s:
        args["until_us"] = SystemClock().wall_us() + options.until_s * 1_000_000
    why = f"memwatch guard --mode {options.mode}"
    return Command(op="engine.mode", args=args, why=why, by="guard")


def _watch(path: Path, options: argparse.Namespace) -> int:
    from memwatch.host.lock import LockHeldError
    from memwatch.runtime.guard.guard import Guard

    ending = _signals_that_end_us()
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)  # all threads to come inherit this
    try:
        guard = Guard(path, policy=options.policy)
    except LockHeldError as error:
        return _is_watched(path, options, error.pid)
    failures = _end_on(ending, guard.stop)
    print(f"watching {inert(guard.run_key, 60)}, pid {os.getpid()}", flush=True)
    _say_what_it_may_do_once_it_listens(path, options)
    _relax_collector()
    guard.run()
    return int(bool(failures))


def _is_watched(path: Path, options: argparse.Namespace, pid: int | None) -> int:
    if options.policy:
        raise UsageError("--policy is for a guard that begins: end the present one, with --stop")
    print(f"already guarded by {f'process {pid}' if pid else 'another process'}", flush=True)
    return _set_mode(Attachment(path), options) if options.mode else 0


def _say_what_it_may_do_once_it_listens(path: Path, options: argparse.Namespace) -> None:
    """Print whether it will act; a mode is handed over before, as any viewer would hand it."""

    def say() -> None:
        attachment, until = Attachment(path), time.monotonic() + _LISTEN_TIMEOUT_S
        while time.monotonic() < until:
            status = status_of(attachment)
            if status and options.mode:
                _set_mode(attachment, options)
            elif status:
                print(will_text(status), flush=True)
            if status:
                return
            time.sleep(0.1)

    threading.Thread(target=say, name="memwatch-mode", daemon=True).start()


def _set_mode(attachment: Attachment, options: argparse.Namespace) -> int:
    known = ask(attachment, _mode_command(options))
    if known.state != "done":
        print(f"memwatch: the mode is not set: {inert(known.detail)}", file=sys.stderr, flush=True)
        return 1
    print(will_text(status_of(attachment)), flush=True)
    return 0


def _unit(path: Path, options: argparse.Namespace) -> int:
    from memwatch.cli.unit import unit

    attachment = Attachment(path)
    words = _words(options, mode=True)
    print(unit(attachment.path, attachment.key, attachment.shown, words), end="")
    return 0


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


def _detach(path: Path, options: argparse.Namespace) -> int:
    attachment = Attachment(path)
    if options.policy and attachment.guard_pid is not None:
        return _is_watched(path, options, attachment.guard_pid)
    attachment.ensure(*_words(options, mode=False)).close()
    failed = options.mode and ask(attachment, _mode_command(options)).state != "done"
    name = attachment.shown
    print(
        f"guard {attachment.guard_pid} watches {name}: {will_text(status_of(attachment))}; "
        f"end it with: memwatch guard --stop {name}"
    )
    return int(bool(failed))


def _stop(path: Path) -> int:
    attachment = Attachment(path)
    pid = attachment.guard_pid
    if pid is None:
        raise TargetError(f"no guard watches {attachment.shown}")
    asked = _ask_to_end(attachment)
    until = time.monotonic() + (_STOP_TIMEOUT_S if asked else _ENDING_S)
    while attachment.guard_pid == pid:
        if time.monotonic() > until:
            keeper = keeper_of(pid)
            force = f"kill {keeper}; kill -KILL {pid}" if keeper else f"kill -KILL {pid}"
            how = "was asked to end and has not yet" if asked else "does not answer: it goes on"
            raise SessionError(f"guard {pid} {how}; by force: {force}")
        time.sleep(0.05)
    print(f"guard of {attachment.shown} ended; the agent goes on")
    return 0


def _ask_to_end(attachment: Attachment) -> bool:
    """Return whether the guard took the request; one that is ending already takes none."""
    try:
        session = attachment.connect()
    except SessionError:
        return False
    try:
        session.submit(Command(op="guard.stop", why="memwatch guard --stop"))
    except SessionError:
        return False
    finally:
        session.close()
    return True
