"""`memwatch [TARGET]`: the dashboard on a run, with its guard started when there is none."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from memwatch.cli.amounts import span
from memwatch.cli.asking import status_of
from memwatch.cli.engine_text import will_text
from memwatch.domain.errors import TargetError, UsageError
from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.target import newest_live, resolve
from memwatch.runtime.session import Session


def add_screen_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every command with a screen takes."""
    parser.add_argument("--view", action="store_true", help="look only: no key acts on the agent")
    parser.add_argument("--theme", help="name of a theme (memwatch, plain16, or one of your own)")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument(
        "--refresh",
        type=span,
        metavar="S",
        help="seconds between two frames (default 1, over SSH 2)",
    )


def run(words: list[str]) -> int:
    """Open the dashboard; returns when the viewer ends."""
    from memwatch.cli.entry import usage

    parser = argparse.ArgumentParser(prog="memwatch", usage="memwatch [TARGET] [options]")
    parser.format_help = usage  # type: ignore[method-assign]  # one help text for the whole program
    parser.add_argument("target", nargs="?")
    add_screen_options(parser)
    options = parser.parse_args(words)
    require_terminal()
    path = resolve(options.target) if options.target is not None else _newest()
    attachment = Attachment(path)
    show(attachment, options)
    print(farewell(attachment))
    return 0


def require_terminal() -> None:
    """Refuse, before anything is started, to draw where there is no screen."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    screen = all(stream is not None and stream.isatty() for stream in streams)
    if not screen or os.environ.get("TERM") == "dumb":  # one that takes no cursor movements
        raise UsageError(
            "the dashboard needs a terminal; without one there are "
            "`memwatch status --json` and `memwatch demo --headless`"
        )


def farewell(attachment: Attachment) -> str:
    """Return the one line said at exit: who still watches, whether it will act, how to end it."""
    pid, name = attachment.guard_pid, attachment.shown
    if pid is None:
        return f"no guard watches {name} any more"
    status = status_of(attachment)
    will = will_text(status) if status else "it does not answer now"
    return (
        f"guard {pid} goes on watching {name}: {will}; "
        f"back: memwatch {name}; end it: memwatch guard --stop {name}"
    )


def show(attachment: Attachment, options: argparse.Namespace) -> None:
    """Run the viewer on a session that is opened first; later ones are made by reconnecting."""
    attachment.introduce(f"screen-{os.getpid()}", view_only=options.view)
    session = attachment.ensure()

    from memwatch.ui.app import DashboardApp

    app = DashboardApp(
        connect=_first(session, attachment.connect),
        target=attachment.run_id,
        theme=options.theme or "auto",
        ascii_only=options.ascii or _ascii_locale(),
        view_only=options.view,
        refresh_s=options.refresh or (2.0 if "SSH_CONNECTION" in os.environ else 1.0),
    )
    app.run()


def _first(session: Session, connect: Callable[[], Session]) -> Callable[[], Session]:
    """Return `connect`, with a session that is there already as its first answer."""
    ready = [session]

    def next_session() -> Session:
        try:
            return ready.pop()
        except IndexError:
            return connect()

    return next_session


def _newest() -> Path:
    try:
        return newest_live()
    except TargetError as error:
        raise TargetError(f"{error} (`memwatch --help` says more)") from None


def _ascii_locale() -> bool:
    """Say whether a locale without Unicode was asked for.

    The interpreter itself turns C into C.UTF-8, so only what a person set counts.
    """
    said = os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    return bool(said) and "utf" not in said.lower()
