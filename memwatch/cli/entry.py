"""Finds the command that the first word names, and words errors for people.

Exit status: 0 fine, 1 the thing asked about is not fine, 2 usage or environment.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from memwatch import __version__
from memwatch.domain.errors import MemwatchError
from memwatch.domain.text import inert

COMMANDS = {
    "demo": "a real agent under watch: starts it, opens the dashboard, cleans up",
    "guard": "record and guard a run without a screen; --stop ends its guard",
    "ls": "your runs on this machine, live ones first",
    "status": "one look at a run, as text, one line or JSON",
    "ctl": "ask something of an agent or its guard: pause, purge, abort, mode, …",
    "tonight": "the check before bed: would it hold until the morning?",
    "policy": "when the guard does what, and where each value comes from; check, set, edit",
    "inspect": "read a run or a store of checkpoints once, damage included",
    "report": "the night in ten lines, then tables: what helped, what was lost, what to change",
    "drill": "recover a run for practice: proved, measured, nothing written to it",
}

_HEAD = """usage: memwatch [TARGET] [--view] [--theme NAME] [--ascii] [--refresh S]
       memwatch COMMAND [--help]

Watches the memory of autonomous agents that run for hours.

Without a command the dashboard opens: on TARGET, else on the newest run that is alive. A TARGET is
a run directory, a store of another program's checkpoints (a directory of them, or the SQLite file
of LangGraph), or of a run that `memwatch ls` shows its id or its directory's name.

dashboard options:
  --view         look only: no key acts on the agent
  --theme NAME   memwatch, plain16, or one of your own (default: by the terminal)
  --ascii        draw with ASCII characters only
  --refresh S    seconds between two frames (default 1, over SSH 2)

commands:
"""
_TAIL = """
examples:
  memwatch demo                 see everything on a real agent within two minutes
  memwatch ./runs/night-7       watch a run
  memwatch status night-7 --line

The first word is a command or a TARGET; write ./ls for a directory of that name.
"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    try:
        status = _flushed(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone: nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except MemwatchError as error:
        return _refuse(str(error))
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        return _refuse(f"{error.strerror or error}{place}; mend that and try again")
    return status


def _flushed(words: list[str]) -> int:
    """Run, and write out what was printed while errors can still be worded."""
    try:
        return _run(words)
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def _refuse(why: str) -> int:
    print(f"memwatch: {inert(why, 400)}", file=sys.stderr)
    return 2


def usage() -> str:
    """Return the text of `memwatch --help`."""
    lines = "".join(f"  {name:<9} {line}\n" for name, line in COMMANDS.items())
    return _HEAD + lines + _TAIL


def _run(words: list[str]) -> int:
    first = words[0] if words else ""
    if first in ("-h", "--help", "help"):
        print(usage(), end="")
        return 0
    if first in ("-V", "--version"):
        print(f"memwatch {__version__}")
        return 0
    name, rest = (first, words[1:]) if first in COMMANDS else ("dashboard", words)
    command = import_module(f"memwatch.cli.{name}")
    return int(command.run(rest))
