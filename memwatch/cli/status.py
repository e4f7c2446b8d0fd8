"""`memwatch status`: one look at a run. Loads no more than it must: its cost is its start-up."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from memwatch.runtime.protocol.numbers import GuardSilentError, NoGuardError
from memwatch.runtime.protocol.thin_client import status_json
from memwatch.runtime.runs.target import guard_socket, newest, resolve

_EXAMPLE = """examples:
  memwatch status                      the newest live run, else the one seen last
  memwatch status night-7 --line       for a tmux status bar
  memwatch status ./runs/night-7 --json

exit status: 0 fine; 1 memory at intervene or above, crashed, killed, silent, or not recorded;
2 no such run."""


def run(words: list[str]) -> int:
    """Print what the dashboard shows; returns 1 when the run is not fine."""
    parser = argparse.ArgumentParser(
        prog="memwatch status",
        description="One look at a run: everything the dashboard shows.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target", nargs="?", help="run directory, checkpoint store or run id; default: the newest"
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object, stable names")
    shape.add_argument("--line", action="store_true", help="one line of at most 80 characters")
    options = parser.parse_args(words)
    path = newest() if options.target is None else resolve(options.target)
    status = json.loads(read_status(path))
    if options.json:
        print(json.dumps(status))  # plain ASCII: no name in it can act on a terminal
    else:
        from memwatch.cli.status_text import status_line, status_text

        print(status_line(status) if options.line else status_text(status))
    return exit_status(status)


def exit_status(status: dict[str, Any]) -> int:
    """Return 1 when a run is not fine."""
    state = status["run"]["state"]
    high = status["level"] in ("intervene", "emergency", "hard")
    if state == "ended":
        return 0
    lost = state in ("crashed", "killed", "silent")
    return int(high or lost or status["guard"]["recording"] is False)


def read_status(path: Path) -> bytes:
    """Return the snapshot of a run as JSON: of its guard, else by a look of our own."""
    socket = guard_socket(path)
    if socket is not None and socket.exists():
        try:
            return status_json(str(socket))
        except NoGuardError:
            pass  # a dead guard's socket: look for ourselves
        except GuardSilentError as error:
            return _look(path, str(error))
    return _look(path)


def _look(path: Path, silent: str = "") -> bytes:
    """Look at a run ourselves; `silent` says why its guard was of no help."""
    import msgspec

    from memwatch.runtime.runs.one_look import Look

    return msgspec.json.encode(Look(path).snapshot(silent))
