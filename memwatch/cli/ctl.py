"""`memwatch ctl`: asks something of an agent or of its guard, waits for the answer, prints it.

Loads neither screen nor database: what it costs beside the round trip is its start-up.
Source: D6; contracts, "Operations" and "Plans".
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from memwatch.cli.amounts import amount, duration, whole
from memwatch.cli.asking import LONGEST_S, ask, refused, status_of
from memwatch.cli.ctl_request import ACTIONS, needs_name, request
from memwatch.cli.ctl_words import answer_line, answer_object, still_held
from memwatch.domain.clock import SystemClock
from memwatch.domain.command import FINAL_STATES, CommandInfo
from memwatch.domain.errors import UsageError
from memwatch.domain.level import ENGINE_MODES
from memwatch.domain.operations import CHECKPOINT_KINDS, PURGE_HOWS, RELEASES
from memwatch.domain.text import inert
from memwatch.host.process import is_alive
from memwatch.ingest.open_run import open_run
from memwatch.runtime.runs.attach import Attachment
from memwatch.runtime.runs.target import resolve
from memwatch.runtime.runs.writer import writer_of

_EXAMPLE = """examples:
  memwatch ctl night-7 pause                 no new experiment begins until `resume`
  memwatch ctl night-7 purge --tier workspace --how expired --dry-run
  memwatch ctl night-7 abort --yes night-7   the experiment, not the run
  memwatch ctl night-7 mode act --for 10h    the guard acts by itself until the morning
  memwatch ctl night-7 checkpoint --json | jq '.state'

abort, end and a purge of `verified` or of named keys take something away for good: they ask for
the run's name, or take it from --yes. A guard is started when none watches the run.

exit status: 0 done; 1 refused, failed, expired, or not known; 2 no such run, or words that make
no sense."""


def run(words: list[str]) -> int:
    """Ask, wait, print; returns 1 when it was not done."""
    options = _parser().parse_args(words)
    attachment = Attachment(resolve(options.target))
    if needs_name(options) and not attachment.no_commands:
        options.yes = _typed_name(attachment, options)
    command = request(options, SystemClock().wall_us(), _waiting_plan(options, attachment))
    if attachment.no_commands:
        known = refused(command, attachment.no_commands)
    elif _is_there(attachment):
        known = ask(attachment, command, options.wait)
    else:
        known = refused(command, "the agent is not running: nothing was asked")
    status = status_of(attachment) if known.state == "done" else {}
    released = known.op in RELEASES and not known.dry_run
    held = still_held(status, known.op) if released else ""
    if options.json:
        print(json.dumps(answer_object(known)))
    else:
        _print(known, options.action, attachment, status)
        if held:
            print(held, file=sys.stderr)
    waits = known.state not in FINAL_STATES and options.wait == 0
    return int(not waits and (known.state != "done" or bool(held)))


def _print(known: CommandInfo, action: str, attachment: Attachment, status: dict[str, Any]) -> None:
    line = answer_line(known, action, attachment.shown, status)
    if known.state == "done":
        print(line)
    else:
        print(f"memwatch: {line}", file=sys.stderr)


def _is_there(attachment: Attachment) -> bool:
    """Say whether anybody could answer: a guard is not started for an agent that is no more."""
    if attachment.guard_pid is not None:
        return True
    opened = open_run(attachment.path)
    writer = writer_of(opened.path, opened.manifest)
    return writer is not None and is_alive(writer)


def _typed_name(attachment: Attachment, options: argparse.Namespace) -> str:
    """Return the name that a person typed; raises UsageError when it is not that of the run."""
    names = (attachment.run_id, attachment.path.name)
    name = next((name for name in names if name.isprintable()), "")
    typed: str = options.yes
    if not typed:
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
            raise UsageError(f"{options.action} needs the run's name: add --yes {inert(name, 120)}")
        print(f"{options.action}: type {inert(name, 120)} to go on: ", end="", file=sys.stderr)
        sys.stderr.flush()
        typed = sys.stdin.readline().strip()
    if typed not in names:
        raise UsageError(f"that is not the name of the run ({inert(name, 120)}); nothing was asked")
    return typed


def _waiting_plan(options: argparse.Namespace, attachment: Attachment) -> str:
    if options.action not in ("approve", "decline") or options.value:
        return ""
    plan = status_of(attachment).get("engine", {}).get("plan") or {}
    return str(plan["id"]) if plan.get("state") == "proposed" else ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="memwatch ctl",
        description="Asks something of a run's agent or guard and waits for the answer.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("target", help="run directory or run id")
    add("action", choices=ACTIONS, metavar="action", help=", ".join(ACTIONS))
    add("value", nargs="?", help=f"of mode: {', '.join(ENGINE_MODES)}; of approve, decline: a plan")
    add("--tier", help="purge: only from this one")
    add("--how", choices=PURGE_HOWS, help="purge: only so; default: all of these in their order")
    add("--key", action="append", default=[], metavar="K", help="purge: only this one; repeatable")
    add("--target-bytes", type=whole, metavar="N", help="purge: until so much is free")
    add("--kind", choices=CHECKPOINT_KINDS, help="checkpoint: default incremental")
    add("--allow", action="append", default=[], metavar="OP,…", help="mode: what it may do itself")
    add("--for", dest="until_s", type=duration, metavar="T", help="mode: for 8h, 45m, …")
    add("--all", action="store_true", help="resume, read-write: release the holds of others, too")
    add("--dry-run", action="store_true", help="only say what would be done")
    add("--why", default="", help="a reason, kept with the request")
    add("--wait", type=amount, default=LONGEST_S, metavar="S", help="at most; 0: do not wait")
    add("--yes", default="", metavar="NAME", help="the run's name, where it would be asked for")
    add("--json", action="store_true", help="one JSON object, stable names")
    return parser
